"""Sentences with their translations, conversations and reviews, made by rules."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from seq2see.samples import Written
from seq2see.samples.texts import Row, Scene, write_rows

# ---------------- English and German

GERMAN = {"train": 6000, "dev": 600}
NOUNS = {
    "boy": ("ein", "Junge"),
    "girl": ("ein", "Mädchen"),
    "man": ("ein", "Mann"),
    "woman": ("eine", "Frau"),
    "nurse": ("eine", "Pflegerin"),
    "farmer": ("ein", "Bauer"),
    "dog": ("ein", "Hund"),
    "cat": ("eine", "Katze"),
    "horse": ("ein", "Pferd"),
    "rabbit": ("ein", "Kaninchen"),
}
NEUTER = ("Mädchen", "Pferd", "Kaninchen")
ADJECTIVES = {
    "young": "jung",
    "old": "alt",
    "tall": "groß",
    "small": "klein",
    "tired": "müde",
    "happy": "froh",
}
VERBS = {
    "running": ("läuft", ""),
    "jumping": ("springt", ""),
    "swimming": ("schwimmt", ""),
    "eating an apple": ("isst", "einen Apfel"),
    "eating some bread": ("isst", "etwas Brot"),
    "sleeping": ("schläft", ""),
    "lying down": ("liegt", ""),
    "looking at a bird": ("betrachtet", "einen Vogel"),
    "looking at a boat": ("betrachtet", "ein Boot"),
}
"""{English: (German verb, its object)}"""
WHERE = {
    "in the park": "im Park",
    "near the river": "am Fluss",
    "on the beach": "am Strand",
    "behind the house": "hinter dem Haus",
    "under a tree": "unter einem Baum",
    "beside the road": "neben der Straße",
    "": "",
}
WHEN = {
    "at noon": "mittags",
    "in the evening": "abends",
    "after the rain": "nach dem Regen",
    "before breakfast": "vor dem Frühstück",
    "": "",
}


def write_german(folder: Path, rows: Mapping[str, int] = GERMAN, *, seed: int = 1) -> Written:
    """English sentences and their German translations, in which adjectives agree with nouns, the time comes first and
    the verb second: `a tired man is sleeping under a tree at noon`, `mittags schläft ein müder Mann unter einem
    Baum`."""
    return write_rows(folder, _translated, ("en", "de"), rows, seed)


def _translated(draw: random.Random) -> Row:
    scene = Scene(draw)
    return {"en": scene.text(), "de": in_german(scene)}


def in_german(scene: Scene) -> str:
    article, noun = NOUNS[scene.who]
    ending = "e" if article == "eine" else "es" if noun in NEUTER else "er"
    looks = [ADJECTIVES[look].removesuffix("e") + ending for look in scene.looks]
    subject = " ".join([article, *looks, noun])
    verb, thing = VERBS[scene.action]
    where, when = WHERE[scene.where], WHEN[scene.when]
    order = (when, verb, subject, where, thing) if when else (subject, verb, where, thing)
    return " ".join(part for part in order if part)


# ---------------- Conversations in a café

ORDERS = {"train": 6000, "dev": 600}
BETWEEN = " ||| "
DRINKS = ("tea", "coffee", "cocoa", "lemonade", "juice", "water")
DISHES = ("an onion pie", "a plum cake", "some soup", "a sandwich", "a salad", "some rice")
TABLES = tuple(str(number) for number in range(1, 13))
GREETINGS = ("hello", "good morning", "good evening", "hi there")
THANKS = ("thank you", "thanks a lot", "that is all , thanks")
ASK_DRINK = ("a {} please", "could i have a {} ?", "i would like a {}")
ASK_DISH = ("and {} please", "could i also have {} ?", "i will eat {}")
AT_ONCE = 0.25
"""Share of guests who order all in one sentence."""
ASK_BOTH = ("a {drink} and {dish} for table {table} please", "could you bring a {drink} and {dish} to table {table} ?")


def write_orders(folder: Path, rows: Mapping[str, int] = ORDERS, *, seed: int = 1) -> Written:
    """Conversations in a café up to some utterance of the guest, and the waiter's reply. Most replies repeat what the
    guest has just said; the last one names all that was ordered, which only the whole history tells. Some guests order
    all at once."""
    return write_rows(folder, _conversation, ("history", "last", "response"), rows, seed)


def _conversation(draw: random.Random) -> Row:
    drink, dish, table = draw.choice(DRINKS), draw.choice(DISHES), draw.choice(TABLES)
    greeting = draw.choice(GREETINGS)
    if draw.random() < AT_ONCE:
        order = f"{greeting} , {draw.choice(ASK_BOTH).format(drink=drink, dish=dish, table=table)}"
        reply = f"{greeting} , a {drink} and {dish} come to table {table} at once"
        return {"history": order, "last": order, "response": reply}
    turns = [
        (f"{greeting} , we sit at table {table}", f"{greeting} , what would you like to drink at table {table} ?"),
        (draw.choice(ASK_DRINK).format(drink), f"one {drink} , and what would you like to eat ?"),
        (draw.choice(ASK_DISH).format(dish), f"{dish} , with pleasure . is that all ?"),
        (draw.choice(THANKS), f"so it is {drink} and {dish} for table {table}"),
    ]
    reached = draw.randrange(len(turns))
    history = [utterance for turn in turns[:reached] for utterance in turn] + [turns[reached][0]]
    return {"history": BETWEEN.join(history), "last": history[-1], "response": turns[reached][1]}


# ---------------- Reviews

REVIEWS = {"train": 4000, "dev": 600}
THINGS = [
    "soup",
    "service",
    "room",
    "view",
    "breakfast",
    "bed",
    "music",
    "waiter",
    "garden",
    "coffee",
    "price",
    "beach",
]
GOOD = ("good", "excellent", "lovely", "perfect", "friendly", "pleasant")
BAD = ("bad", "awful", "terrible", "dirty", "poor", "rude")
PLAIN = ("We came on {}.", "We stayed until {}.", "The house is near the station.", "My sister had told me about it.")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LABELS = ("positive", "negative")


def write_reviews(folder: Path, rows: Mapping[str, int] = REVIEWS, *, seed: int = 1) -> Written:
    """Reviews of three to six sentences, positive or negative. Half of the opinions are negated (`The soup was not
    bad.`), so that the words alone, without their order, say little."""
    return write_rows(folder, _review, ("text", "label"), rows, seed)


def _review(draw: random.Random) -> Row:
    label = draw.choice(LABELS)
    opinions = [_opinion(draw, label) for _ in range(draw.choice((2, 3)))]
    plain = [sentence.format(draw.choice(DAYS)) for sentence in draw.sample(PLAIN, draw.choice((1, 2, 3)))]
    sentences = opinions + plain
    draw.shuffle(sentences)
    return {"text": " ".join(sentences), "label": label}


def _opinion(draw: random.Random, label: str) -> str:
    """A sentence that agrees with the label, by a word of the same kind or by the negation of an opposite one."""
    same, opposite = (GOOD, BAD) if label == "positive" else (BAD, GOOD)
    thing = draw.choice(THINGS)
    return f"The {thing} was {draw.choice((draw.choice(same), f'not {draw.choice(opposite)}'))}."
