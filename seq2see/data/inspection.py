"""What is in a table: lengths, scripts, Unicode forms, odd characters, blanks, duplicates, rows that dev shares.

One pass over at most `MAX_ROWS` rows, in memory that does not grow with their number; nothing here needs torch.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from seq2see.data.formats import Row, as_text
from seq2see.data.tables import Table
from seq2see.errors import counted
from seq2see.files import shortened

MAX_ROWS = 1_000_000
"""Rows that are read, and whose hashes are kept."""
MAX_READ = 10_000
"""Characters of a cell that are looked at one by one; lengths count all."""
MAX_SYMBOLS = 100_000
"""Different characters (or values) of a column that are counted."""
SHOWN = 3
"""Examples of a column."""
LABELS, REPEATED = 100, 5
"""A column of labels has at most so many values, each so often on average."""

MEDIA = {
    "image": (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    "sound": (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"),
    "video": (".mp4", ".avi", ".mkv", ".webm", ".mov", ".mpg", ".mpeg"),
}
_SUFFIXES = {suffix: kind for kind, suffixes in MEDIA.items() for suffix in suffixes}
_NUMBER = re.compile(r"\s*[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?\s*")
_ONE_OF_SEVERAL = r"(?:[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|\?|nan|null|NA)"
_NUMBERS = re.compile(rf"(?=.*\d)[\s\[]*+{_ONE_OF_SEVERAL}(?:[\s,;\[\]]++{_ONE_OF_SEVERAL})*+[\s;\]]*+", re.DOTALL)
"""Numbers with spaces, commas or semicolons between them; a date, a time and a sum are none."""
_TOGETHER = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"}
"""Scripts that stand in one word by custom."""
_NO_SCRIPTS = {"MODIFIER", "FULLWIDTH", "HALFWIDTH", "MATHEMATICAL", "FEMININE", "MASCULINE", "DOUBLE-STRUCK", "SCRIPT"}
_ODD_SPACES = "\u00a0\u2007\u202f\u3000"


@lru_cache(maxsize=1 << 17)
def script_of(character: str) -> str:
    """The script of a letter, in the words of its Unicode name; empty for digits, marks and signs.

    >>> script_of("a"), script_of("द"), script_of("3")
    ('latin', 'devanagari', '')
    """
    if not unicodedata.category(character).startswith("L"):
        return ""
    word = unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
    return "" if not word or word in _NO_SCRIPTS else word.lower()


@lru_cache(maxsize=1 << 17)
def oddity(character: str) -> str:
    """What is odd about a character; empty for most.

    >>> oddity("\\u200b"), oddity("a")
    ('ZERO WIDTH SPACE', '')
    """
    kind = unicodedata.category(character)
    odd = kind in ("Cc", "Cf", "Co", "Cn", "Cs") and character not in "\n\t\u200c\u200d"  # joiners are letters' own
    if not odd and character not in _ODD_SPACES and character != "\N{REPLACEMENT CHARACTER}":
        return ""
    names = {"Cc": "control character", "Co": "private use character", "Cn": "unassigned character"}
    return unicodedata.name(character, names.get(kind, "unnamed character"))


@dataclass
class Found:
    """Rows in which something was found, and the first of them."""

    rows: int = 0
    where: str = ""
    example: str = ""

    def add(self, where: str, example: str) -> None:
        if not self.rows:
            self.where, self.example = where, shortened(example, 60, quotes=False)
        self.rows += 1

    def to_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "first": self.where, "example": self.example}


@dataclass
class ColumnFacts:
    """What one column holds."""

    name: str
    rows: int = 0
    blanks: int = 0
    lengths: Counter[int] = field(default_factory=Counter)
    words: int = 0
    word_lengths: int = 0
    characters: Counter[str] = field(default_factory=Counter)
    scripts: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    odd: dict[str, Found] = field(default_factory=dict)
    mixed: Found = field(default_factory=Found)
    spaces: Found = field(default_factory=Found)
    examples: list[str] = field(default_factory=list)

    def add(self, value: Any, where: str) -> None:
        """Read a cell."""
        self.rows += 1
        text = as_text(value)
        if not text.strip():
            self.blanks += 1
            return
        self.lengths[min(len(text), MAX_READ)] += 1
        if len(self.values) < MAX_SYMBOLS or text[:200] in self.values:
            self.values[text[:200]] += 1
        if len(self.examples) < SHOWN:
            self.examples.append(shortened(text, 80, quotes=False))
        self._add_text(text[:MAX_READ], where, listed=isinstance(value, list))

    def _add_text(self, text: str, where: str, *, listed: bool) -> None:
        parts = text.split()
        self.words += len(parts)
        self.word_lengths += sum(map(len, parts))
        self.kinds[_kind_of(text, listed=listed)] += 1
        if text != text.strip():
            self.spaces.add(where, text)
        if len(self.characters) < MAX_SYMBOLS:
            self.characters.update(text)
        for character in set(text):
            if odd := oddity(character):
                self.odd.setdefault(f"U+{ord(character):04X} {odd}", Found()).add(where, text)
        self.scripts.update({script for character in set(text) if (script := script_of(character))})
        if text.isascii():
            return
        composed, apart = (unicodedata.is_normalized(form, text) for form in ("NFC", "NFD"))
        if not (composed and apart):
            self.forms["NFC" if composed else "NFD" if apart else "neither"] += 1
        if any(len(_scripts(part)) > 1 for part in parts):
            self.mixed.add(where, next(part for part in parts if len(_scripts(part)) > 1))

    @property
    def filled(self) -> int:
        return self.rows - self.blanks

    @property
    def kind(self) -> str:
        """What the column seems to hold: text, word, label, number, numbers, or files of a kind."""
        if not self.filled:
            return "empty"
        kind, rows = self.kinds.most_common(1)[0]
        if kind != "text" and rows >= 0.95 * self.filled:
            repeated = len(self.values) <= LABELS and self.filled >= REPEATED * len(self.values)
            whole = all("." not in value and "," not in value for value in self.values)
            return "label" if kind == "number" and repeated and whole else kind
        if len(self.values) <= LABELS and self.filled >= REPEATED * len(self.values):
            return "label"
        return "word" if self.words < 1.3 * self.filled else "text"

    @property
    def mean_words(self) -> float:
        return self.words / max(self.filled, 1)

    @property
    def mean_word_length(self) -> float:
        return self.word_lengths / max(self.words, 1)

    @property
    def main_script(self) -> str:
        return self.scripts.most_common(1)[0][0] if self.scripts else ""

    def quantile(self, share: float) -> int:
        """The length that this share of the values does not exceed."""
        left = share * self.filled
        for length in sorted(self.lengths):
            left -= self.lengths[length]
            if left <= 0:
                return length
        return 0

    def problems(self) -> list[str]:
        """What may be wrong with the column."""
        name = f"'{self.name}'"
        found = []
        if self.blanks:
            found.append(f"{name}: {counted(self.blanks, 'blank cell')}, whose rows are left out")
        if len(self.forms) > 1:
            forms = ", ".join(f"{form} {rows:,}" for form, rows in self.forms.most_common())
            found.append(f"{name}: mixed Unicode forms ({forms} rows): the same letter is written in two ways")
        for what, rows in sorted(self.odd.items(), key=lambda pair: -pair[1].rows)[:5]:
            found.append(f"{name}: {what} in {counted(rows.rows, 'row')}, the first at {rows.where}")
        if self.mixed.rows:
            example = f"{self.mixed.example} at {self.mixed.where}"
            found.append(f"{name}: {counted(self.mixed.rows, 'row')} with words of several scripts, such as {example}")
        if self.spaces.rows:
            found.append(f"{name}: {counted(self.spaces.rows, 'row')} with spaces around the value")
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "rows": self.rows,
            "blanks": self.blanks,
            "distinct": len(self.values),
            "lengths": {
                "least": min(self.lengths, default=0),
                "median": self.quantile(0.5),
                "p95": self.quantile(0.95),
                "most": max(self.lengths, default=0),
            },
            "histogram": self._histogram(),
            "words": round(self.mean_words, 2),
            "characters": len(self.characters),
            "alphabet": "".join(sorted(c for c, _ in self.characters.most_common(200) if not c.isspace())),
            "scripts": dict(self.scripts.most_common()),
            "forms": dict(self.forms.most_common()),
            "odd": {what: rows.to_dict() for what, rows in self.odd.items()},
            "mixed_scripts": self.mixed.to_dict(),
            "outer_spaces": self.spaces.to_dict(),
            "common": [[shortened(value, 40, quotes=False), rows] for value, rows in self.values.most_common(5)],
            "examples": self.examples,
        }

    def _histogram(self, bins: int = 24) -> list[list[int]]:
        """(length from, rows) of bins of equal width up to the 99th percentile; the last has all beyond."""
        top = max(self.quantile(0.99), 1)
        width = -(-top // bins)
        rows = Counter[int]()
        for length, times in self.lengths.items():
            rows[min(length // width, bins - 1)] += times
        return [[place * width, rows[place]] for place in range(min(bins, top // width + 1))]


def _scripts(word: str) -> set[str]:
    scripts = {script for character in word if (script := script_of(character))}
    return {"east asian" if script.upper() in _TOGETHER else script for script in scripts}


def _kind_of(text: str, *, listed: bool) -> str:
    suffix = Path(text[-20:]).suffix.lower()
    if suffix in _SUFFIXES and "\n" not in text:
        return _SUFFIXES[suffix]
    if _NUMBER.fullmatch(text):
        return "number"
    return "numbers" if _NUMBERS.fullmatch(text) else "list" if listed else "text"


@dataclass
class TableFacts:
    """What is in a table. inputs, output: the columns that pairs are made of; empty where they are not known."""

    path: str
    columns: list[ColumnFacts]
    inputs: list[str]
    output: str | None
    rows: int = 0
    complete: bool = True
    duplicates: Found = field(default_factory=Found)
    ambiguous: Found = field(default_factory=Found)
    notes: list[str] = field(default_factory=list)
    _pairs: set[int] = field(default_factory=set)
    _inputs: dict[int, int] = field(default_factory=dict)
    _several: set[int] = field(default_factory=set)

    def add(self, row: Row, where: str) -> None:
        self.rows += 1
        for column in self.columns:
            column.add(row.values.get(column.name), where)
        if not any(as_text(row.values.get(name)).strip() for name in self.inputs):
            return  # a blank is no input
        inputs, pair = self._hashes(row.values)
        shown = " | ".join(shortened(as_text(row.values.get(name)), 30, quotes=False) for name in self.inputs)
        if pair in self._pairs:
            self.duplicates.add(where, shown)
        elif self._inputs.setdefault(inputs, pair) != pair and self.output is not None and inputs not in self._several:
            self._several.add(inputs)
            self.ambiguous.add(where, shown)
        self._pairs.add(pair)

    def _hashes(self, values: Mapping[str, Any]) -> tuple[int, int]:
        inputs = _hash(as_text(values.get(name)) for name in self.inputs)
        names = [*self.inputs, *([] if self.output is None else [self.output])]
        return inputs, _hash(as_text(values.get(name)) for name in names)

    def shared_with(self, dev: Iterable[Row]) -> dict[str, int]:
        """How many rows of dev this table has too, and of how many it has the inputs."""
        seen = Counter({"rows": 0, "same": 0, "same_inputs": 0})
        for row in islice(dev, MAX_ROWS):
            inputs, pair = self._hashes(row.values)
            seen["rows"] += 1
            seen["same"] += pair in self._pairs
            seen["same_inputs"] += pair not in self._pairs and inputs in self._inputs
        return dict(seen)

    def column(self, name: str) -> ColumnFacts:
        return next(column for column in self.columns if column.name == name)

    @property
    def problems(self) -> list[str]:
        found = [problem for column in self.columns for problem in column.problems()]
        if self.duplicates.rows:
            found.append(
                f"{counted(self.duplicates.rows, 'row')} equal to an earlier one, the first at {self.duplicates.where}"
            )
        if self.ambiguous.rows:
            example = f"such as {self.ambiguous.example} at {self.ambiguous.where}"
            found.append(f"{counted(self.ambiguous.rows, 'input')} with several outputs, {example}")
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.path,
            "rows": self.rows,
            "complete": self.complete,
            "inputs": self.inputs,
            "output": self.output,
            "columns": [column.to_dict() for column in self.columns],
            "duplicates": self.duplicates.to_dict(),
            "several_outputs": self.ambiguous.to_dict(),
            "problems": self.problems,
            "notes": self.notes,
        }


def _hash(values: Iterable[str]) -> int:
    """Of values in Unicode form NFC with single spaces, as training and evaluation compare them."""
    digest = blake2b(digest_size=8)
    for value in values:
        content = " ".join(unicodedata.normalize("NFC", value).split()).encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)
    return int.from_bytes(digest.digest(), "little")


def inspect_table(table: Table, *, inputs: Sequence[str] = (), output: str | None = None) -> TableFacts:
    """Read a table once. inputs, output: the columns of pairs (default: of two columns the first and the second, else
    all as inputs)."""
    if not inputs:
        pair = len(table.columns) == 2
        inputs, output = (table.columns[:1], table.columns[1]) if pair else (list(table.columns), None)
    facts = TableFacts(str(table.path), [ColumnFacts(name) for name in table.columns], list(inputs), output)
    for row in table:
        if facts.rows == MAX_ROWS:
            facts.complete = False
            break
        facts.add(row, table.place_inside(row.line))
    facts.notes = [*table.notes]
    return facts
