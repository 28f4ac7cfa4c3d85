"""Texts made by rules: passages with questions, knowledge of invented people, pairs of sentences, reports, sets."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from seq2see.data.tables import write as write_table
from seq2see.errors import UserError
from seq2see.samples import Written

Row = Mapping[str, str]


def write_rows(
    folder: Path, make: Callable[[random.Random], Row], columns: tuple[str, ...], rows: Mapping[str, int], seed: int
) -> Written:
    """Write a table of so many rows for each part, which depend on the seed and the name of the part alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, number in rows.items():
        draw = random.Random(f"{part} {seed}")
        write_table(folder / f"{part}.tsv", (make(draw) for _ in range(number)), columns)
    return {f"{part}.tsv": number for part, number in rows.items()}


# ---------------- Passages of facts

FACTS = {"train": 4000, "dev": 400}
NAMES = (
    "mary",
    "john",
    "daniel",
    "sandra",
    "anna",
    "peter",
    "lucy",
    "oscar",
    "emma",
    "victor",
    "clara",
    "hugo",
    "nina",
    "bruno",
    "tessa",
    "ralph",
)
ROOMS = (
    "kitchen",
    "garden",
    "hall",
    "bathroom",
    "bedroom",
    "office",
    "cellar",
    "attic",
    "garage",
    "library",
    "school",
    "market",
)
MOST_FACTS = len(ROOMS)
MOVES = ("is in", "went to", "walked into", "has moved to")


def write_facts(folder: Path, rows: Mapping[str, int] = FACTS, *, seed: int = 1, facts: int = 3) -> Written:
    """Passages such as `mary went to the hall . john is in the attic . anna walked into the school .`, with a question
    about one of the people, who are all in different rooms: the question alone, or the passage alone, says little."""
    if not 1 <= facts <= MOST_FACTS:
        raise UserError(f"--facts {facts}: a passage has 1 to {MOST_FACTS} facts, each about another room")
    return write_rows(folder, lambda draw: draw_facts(draw, facts), ("passage", "question", "answer"), rows, seed)


def draw_facts(draw: random.Random, facts: int) -> Row:
    people, rooms = draw.sample(NAMES, facts), draw.sample(ROOMS, facts)
    asked = draw.randrange(facts)
    told = [f"{who} {draw.choice(MOVES)} the {where} ." for who, where in zip(people, rooms, strict=True)]
    return {"passage": " ".join(told), "question": f"where is {people[asked]} ?", "answer": rooms[asked]}


# ---------------- Knowledge of invented people

PEOPLE = 150
SYLLABLES = ("ba", "do", "ke", "li", "mo", "nu", "pa", "ri", "sa", "te", "vo", "za")
KNOWLEDGE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "town": (
        ("where does {} live ?", "what is the home town of {} ?", "in which town is the house of {} ?"),
        ("old harbour", "green hill", "stone bridge", "white church", "long valley", "red mill", "north gate"),
    ),
    "job": (
        ("what does {} do for a living ?", "which trade did {} learn ?", "what is {} by profession ?"),
        ("baker", "teacher", "sailor", "painter", "doctor", "farmer", "printer", "weaver"),
    ),
    "pet": (
        ("which animal does {} keep ?", "what pet is in the house of {} ?", "what does {} feed every morning ?"),
        ("a grey cat", "a small dog", "two rabbits", "a parrot", "a tortoise", "no animal"),
    ),
    "food": (
        ("what does {} like to eat ?", "which dish is the favourite of {} ?", "what do you cook for {} ?"),
        ("lentil soup", "plum cake", "fried fish", "onion pie", "rice and beans", "roast potatoes"),
    ),
}
"""{what is known of a person: (ways to ask for it, answers)}"""


def write_people(folder: Path, *, seed: int = 1, people: int = PEOPLE) -> Written:
    """Questions about invented people, whose answers have to be known. Every fact is asked for in three ways: in train
    in all of them or in two, in dev in the third."""
    draw = random.Random(f"people {seed}")
    syllables = [first + second + third for first in SYLLABLES for second in SYLLABLES for third in SYLLABLES]
    parts: dict[str, list[Row]] = {"train": [], "dev": []}
    for name in draw.sample(syllables, people):
        for ways, answers in KNOWLEDGE.values():
            answer, kept_back = draw.choice(answers), draw.choice((*ways, "", "", ""))
            for way in ways:
                row = {"question": way.format(name), "answer": answer}
                parts["dev" if way == kept_back else "train"].append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in parts.items():
        draw.shuffle(rows)
        write_table(folder / f"{part}.tsv", rows, ("question", "answer"))
    return {f"{part}.tsv": len(rows) for part, rows in parts.items()}


# ---------------- Scenes: sentences, and pairs of them

SENTENCES = {"train": 6000, "dev": 400}
PAIRS = {"train": 6000, "dev": 600}
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("boy", "girl", "man", "woman", "nurse", "farmer"), "person"),
    **dict.fromkeys(("dog", "cat", "horse", "rabbit"), "animal"),
}
LOOKS = ("young", "old", "tall", "small", "tired", "happy")
ACTIONS: Mapping[str, str] = {
    "running": "moving",
    "jumping": "moving",
    "swimming": "moving",
    "eating an apple": "eating",
    "eating some bread": "eating",
    "sleeping": "resting",
    "lying down": "resting",
    "looking at a bird": "looking at something",
    "looking at a boat": "looking at something",
}
"""{what somebody is doing: the same, less exactly}"""
PLACES = ("in the park", "near the river", "on the beach", "behind the house", "under a tree", "beside the road")
TIMES = ("at noon", "in the evening", "after the rain", "before breakfast")


class Scene:
    """Somebody who does something somewhere: `a tired old man is sleeping under a tree at noon`."""

    def __init__(self, draw: random.Random):
        self.who = draw.choice(list(KINDS))
        self.looks = draw.sample(LOOKS, draw.choice((0, 1, 1, 2)))
        self.action = draw.choice(list(ACTIONS))
        self.where = draw.choice((*PLACES, ""))
        self.when = draw.choice((*TIMES, "", ""))

    def text(self, verb: str = "is") -> str:
        subject = " ".join([*self.looks, self.who])
        article = "an" if subject[0] in "aeiou" else "a"
        return " ".join(part for part in (article, subject, verb, self.action, self.where, self.when) if part)


def write_sentences(folder: Path, rows: Mapping[str, int] = SENTENCES, *, seed: int = 1) -> Written:
    """One sentence, or two joined by `while`, of 4 to 25 words in one column."""
    return write_rows(folder, _sentence, ("text",), rows, seed)


def _sentence(draw: random.Random) -> Row:
    return {"text": " while ".join(Scene(draw).text() for _ in range(draw.choice((1, 1, 2))))}


def write_pairs(folder: Path, rows: Mapping[str, int] = PAIRS, *, seed: int = 1) -> Written:
    """A premise, a hypothesis, and whether it follows (entailment), cannot be (contradiction) or may be (neutral). All
    three kinds have about as many words in common with the premise."""
    return write_rows(folder, draw_pair, ("premise", "hypothesis", "label"), rows, seed)


def draw_pair(draw: random.Random) -> Row:
    scene = Scene(draw)
    premise, label = scene.text(), draw.choice(("entailment", "contradiction", "neutral"))
    return {"premise": premise, "hypothesis": _hypothesis(scene, label, draw), "label": label}


def _hypothesis(scene: Scene, label: str, draw: random.Random) -> str:
    """Changes the scene. What a hypothesis leaves out or says less exactly follows; what it adds or says more exactly
    may be; another action, or none, cannot be."""
    changes = draw.sample(("who", "looks", "action", "when"), 2)
    if "who" in changes:
        scene.who = KINDS[scene.who]
    if "looks" in changes:
        scene.looks = scene.looks[1:]
    if "when" in changes:
        scene.when = ""
    action = scene.action
    if "action" in changes:
        scene.action = ACTIONS[action]
    if label == "neutral":
        added = draw.choice([look for look in LOOKS if look not in scene.looks])
        if draw.random() < 0.5 or scene.when:
            scene.looks = [added, *scene.looks]
        else:
            scene.when = draw.choice(TIMES)
    if label == "contradiction":
        if draw.random() < 0.5:
            return scene.text("is not")
        scene.action = draw.choice([other for other in ACTIONS if ACTIONS[other] != ACTIONS[action]])
    return scene.text()


# ---------------- Reports of matches

REPORTS = {"train": 3000, "dev": 300}
CLUBS = ("rovers", "united", "wanderers", "athletic", "rangers", "harriers", "albion", "city", "orient", "villa")
TOWNS = ("ashford", "bexley", "cranham", "dunmore", "elstow", "fenwick", "glenburn", "halden", "ivybridge", "kelso")
SCORERS = ("smith", "jones", "brown", "taylor", "davies", "evans", "walker", "green", "wood", "clarke", "hall", "hill")
WEATHER = ("It was a cold and windy afternoon.", "The sun shone on the ground.", "Rain had fallen all morning.")
CROWD = (
    "{number} hundred people had come.",
    "The stand was full long before the start.",
    "The referee had to warn {scorer} twice.",
    "Both sides began with care.",
    "The pitch was heavy, and few passes arrived.",
)


def write_reports(folder: Path, rows: Mapping[str, int] = REPORTS, *, seed: int = 1) -> Written:
    """Reports of a match of five to seven sentences. The title says who won, where and by whom, which stands in three
    sentences in any order behind the first, so that no sentence alone makes a good title."""
    return write_rows(folder, draw_report, ("abstract", "title"), rows, seed)


def draw_report(draw: random.Random) -> Row:
    (home, away), town = draw.sample(CLUBS, 2), draw.choice(TOWNS)
    scorer, other = draw.sample(SCORERS, 2)
    first, second = draw.sample((home, away), 2)
    facts = [
        f"{first.title()} and {second.title()} met in {town.title()}.",
        draw.choice((f"In the end {away.title()} went home as losers.", f"The points stayed with {home.title()}.")),
        f"The goal that decided it was scored by {scorer.title()} in minute {draw.randint(1, 90)}.",
    ]
    names = {"number": str(draw.randint(2, 90)), "scorer": other.title()}
    facts += [sentence.format(**names) for sentence in draw.sample(CROWD, draw.choice((1, 2, 3)))]
    draw.shuffle(facts)
    return {
        "abstract": " ".join([draw.choice(WEATHER), *facts]),
        "title": f"{home} beat {away} in {town} with a goal by {scorer}",
    }


# ---------------- Sets to sort

SETS = {"train": 6000, "dev": 400}
ELEMENTS, SMALLEST, LARGEST = 50, 2, 10


def write_sets(folder: Path, rows: Mapping[str, int] = SETS, *, seed: int = 1) -> Written:
    """2 to 10 numbers below 50, some of them more than once, and the same numbers in order."""
    return write_rows(folder, _set, ("items", "sorted"), rows, seed)


def _set(draw: random.Random) -> Row:
    items = [draw.randrange(ELEMENTS) for _ in range(draw.randint(SMALLEST, LARGEST))]
    return {"items": " ".join(map(str, items)), "sorted": " ".join(map(str, sorted(items)))}
