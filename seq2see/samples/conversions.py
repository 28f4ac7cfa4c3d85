"""Spellings to convert, made by rules: dates, numbers in words, sums. Every row has one right answer."""

from __future__ import annotations

import random
from calendar import monthrange
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from seq2see.data.tables import write as write_table
from seq2see.samples import Written
from seq2see.samples.texts import Row, write_rows

# ---------------- Dates

DATES = {"train": 8000, "dev": 800}
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
YEARS = (1900, 2099)
FORMS = (
    "{day} {month} {year}",
    "{day}{th} {month} {year}",
    "{month} {day} , {year}",
    "{month} {day}{th} {year}",
    "the {day}{th} of {month} {year}",
    "{weekday} , {day} {month} {year}",
    "on {weekday} the {day}{th} of {month} , {year}",
    "{day} {short} {year}",
    "{short} {day} {year}",
    "{day}/{number}/{year}",
    "{day}.{number}.{year}",
    "{year}/{number}/{day}",
)
"""Ways to write a date. In those of numbers alone the day stands first, or the year."""


def write_dates(folder: Path, rows: Mapping[str, int] = DATES, *, seed: int = 1) -> Written:
    """A date as people write it (`the 3rd of march 2021`), and as ISO 8601 has it (`2021-03-03`)."""
    return write_rows(folder, draw_date, ("written", "iso"), rows, seed)


def draw_date(draw: random.Random) -> Row:
    year, month = draw.randint(*YEARS), draw.randint(1, 12)
    day = draw.randint(1, monthrange(year, month)[1])
    name = MONTHS[month - 1]
    written = draw.choice(FORMS).format(
        day=day,
        th=ordinal_ending(day),
        month=name,
        short=name[:3],
        number=month,
        year=year,
        weekday=draw.choice(WEEKDAYS),  # any: the date does not depend on it
    )
    return {"written": written.replace(" ,", ","), "iso": f"{year}-{month:02}-{day:02}"}


def ordinal_ending(number: int) -> str:
    """What makes a number in digits an ordinal.

    >>> [f"{number}{ordinal_ending(number)}" for number in (1, 2, 3, 4, 11, 12, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '112th']
    """
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


# ---------------- Numbers in words

NUMBERS = {"train": 8000, "dev": 800}
SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = (
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
)
MOST_DIGITS = 6


def write_numbers(folder: Path, rows: Mapping[str, int] = NUMBERS, *, seed: int = 1) -> Written:
    """A number below a million in words (`three hundred and twelve`), and in digits (`312`). Numbers of one to six
    digits are equally frequent."""
    return write_rows(folder, draw_number, ("words", "digits"), rows, seed)


def draw_number(draw: random.Random) -> Row:
    digits = draw.randint(1, MOST_DIGITS)
    number = draw.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
    return {"words": number_in_words(number), "digits": str(number)}


def number_in_words(number: int) -> str:
    """A number below a million in British English.

    >>> number_in_words(0), number_in_words(45_312), number_in_words(700_001)
    ('zero', 'forty-five thousand three hundred and twelve', 'seven hundred thousand and one')
    """
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _below_thousand(rest)
    words = f"{_below_thousand(thousands)} thousand"
    if not rest:
        return words
    return f"{words}{' and' if rest < 100 else ''} {_below_thousand(rest)}"


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    if hundreds:
        words = f"{SMALL[hundreds]} hundred"
        return f"{words} and {_below_hundred(rest)}" if rest else words
    return _below_hundred(rest)


def _below_hundred(number: int) -> str:
    if number < len(SMALL):
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens - 2]}-{SMALL[ones]}" if ones else TENS[tens - 2]


# ---------------- Sums

SUMMANDS = 100
DEV_SHARE = 0.1


def write_sums(folder: Path, *, seed: int = 1) -> Written:
    """Sums and differences of two numbers below 100 (`12+35`, `35-12`), each once, and their results. The tenth that is
    in dev is drawn by the seed; differences are not negative."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(_sums())
    random.Random(f"sums {seed}").shuffle(rows)
    held = round(DEV_SHARE * len(rows))
    parts = {"train.tsv": rows[held:], "dev.tsv": rows[:held]}
    for name, part in parts.items():
        write_table(folder / name, part, ("sum", "result"))
    return {name: len(part) for name, part in parts.items()}


def _sums() -> Iterator[Row]:
    for first, second in product(range(SUMMANDS), repeat=2):
        yield {"sum": f"{first}+{second}", "result": str(first + second)}
        if first >= second:
            yield {"sum": f"{first}-{second}", "result": str(first - second)}
