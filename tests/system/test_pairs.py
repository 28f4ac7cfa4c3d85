"""Two inputs and questions: entailment, and answers from memory or from a passage."""

from __future__ import annotations

import random
from pathlib import Path

from tests.system.small import SMALL_TEXT, SMALL_WRITER, learn, split

SMALL = [*SMALL_TEXT, *SMALL_WRITER]
WHO = ["dog", "cat", "horse", "girl", "nurse"]
DEED = ["runs", "sleeps", "sings", "waits", "eats"]
PEOPLE = ["anna", "tom", "lea", "ben", "ida", "max"]
GOODS = ["hat", "ball", "book", "lamp", "ring", "drum", "kite"]


def test_entailment_compares_words_and_minds_negation(tmp_path: Path) -> None:
    draw = random.Random(8)

    def pair() -> dict[str, str]:
        who, deed = draw.choice(WHO), draw.choice(DEED)
        premise = f"a {who} {deed} {draw.choice(['today', 'outside', 'again', 'alone'])}"
        label = draw.choice(["entailment", "contradiction", "neutral"])
        if label == "neutral":
            who = draw.choice([other for other in WHO if other != who])
        hypothesis = f"no {who} {deed}" if label == "contradiction" else f"a {who} {deed}"
        return {"premise": premise, "hypothesis": hypothesis, "label": label}

    rows, held_out = split([pair() for _ in range(900)], held_out=80)
    trained = learn("entailment", rows, held_out, tmp_path, updates=100, overrides=SMALL_TEXT)

    assert trained.model.evaluate(trained.rows).metrics["accuracy"] >= 0.9
    assert trained.untrained.evaluate(trained.rows).metrics["accuracy"] <= 0.6
    entailed = [row for row in trained.mismatched("premise") if row["output"] == "entailment"]
    assert trained.model.evaluate(entailed).metrics["accuracy"] <= 0.4
    assert trained.model.evaluate(trained.mismatched("hypothesis")).metrics["accuracy"] <= 0.6
    answer = trained.model.predict({"premise": "a dog sleeps today", "hypothesis": "no dog sleeps"})
    assert answer.label == "contradiction"
    assert set(answer.looks.maps) == {"premise", "hypothesis", "premise.hypothesis", "hypothesis.premise"}
    assert answer.looks.rows["hypothesis.premise"] == ["no", "dog", "sleeps"]
    assert answer.looks.inputs["hypothesis.premise"] == ["a", "dog", "sleeps", "today"]
    assert answer.looks.maps["hypothesis.premise"][1:].argmax(1).tolist() == [1, 2]  # equal words find each other


def test_question_answering_answers_what_it_learned_however_it_is_asked(tmp_path: Path) -> None:
    draw = random.Random(9)
    facts = {
        f"{person}land": f"{goods} city" for person, goods in zip(PEOPLE, draw.sample(GOODS, len(PEOPLE)), strict=True)
    }
    ways = ["What is the capital of {}?", "Which town rules {}?", "{} has which capital?", "Name the capital of {}!"]
    polite = ["", "Please, ", "Tell me: ", "Well, "]
    table = [
        {"question": start + way.format(land), "answer": town}
        for land, town in facts.items()
        for way in ways
        for start in polite
    ]
    draw.shuffle(table)
    rows, held_out = split(table, held_out=20)
    trained = learn("question-answering", rows, held_out, tmp_path, updates=80, overrides=SMALL)

    assert trained.model.evaluate(trained.rows).metrics["em"] >= 0.9
    assert trained.untrained.evaluate(trained.rows).metrics["em"] == 0
    assert trained.model.evaluate(trained.mismatched()).metrics["em"] <= 0.5


def test_question_answering_finds_the_answer_in_the_passage(tmp_path: Path) -> None:
    draw = random.Random(10)

    def ask() -> dict[str, str]:
        people, goods = draw.sample(PEOPLE, 3), draw.sample(GOODS, 3)
        passage = " ".join(f"{who}: {what}." for who, what in zip(people, goods, strict=True))
        asked = draw.randrange(3)
        return {"passage": passage, "question": f"{people[asked]}?", "answer": f"the {goods[asked]}"}

    rows, held_out = split([ask() for _ in range(1500)], held_out=60)
    trained = learn(
        "question-answering-passage",
        rows,
        held_out,
        tmp_path,
        updates=350,
        overrides=[*SMALL, "training.batch_tokens=1200", "training.learning_rate=0.01"],
    )

    assert trained.model.evaluate(trained.rows).metrics["em"] >= 0.85
    assert trained.untrained.evaluate(trained.rows).metrics["em"] == 0
    assert trained.model.evaluate(trained.mismatched("passage")).metrics["em"] <= 0.45
    assert trained.model.evaluate(trained.mismatched("question")).metrics["em"] <= 0.5
    answer = trained.model.predict({"passage": "tom: ring. ida: hat. ben: kite.", "question": "ida?"})
    assert answer.text == "the hat"
    assert set(answer.looks.maps) == {"passage"}
