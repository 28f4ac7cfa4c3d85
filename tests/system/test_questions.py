"""Questions about pictures: the shipped recipe, made small, needs the picture and the question, and the history."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from tests.system.drawing import SHAPES, draw_things, random_thing
from tests.system.small import Row, Trained, learn

SMALL = (
    "inputs.image.height=16",
    "inputs.image.width=16",
    "inputs.image.encoder.channels=[16, 24]",
    "inputs.image.encoder.size=32",
    "inputs.question.encoder.size=16",
    "inputs.question.encoder.embedding.size=16",
    "attention.size=24",
    "decoder.size=32",
    "decoder.readout=48",
    "training.batch_rows=32",
    "training.learning_rate=0.01",
    "training.threads=1",
    "training.dev_rows=20",
    "training.report_every=200",
)


def questions(folder: Path, number: int) -> list[Row]:
    """Two questions about every picture, each in words of its own."""
    draw = random.Random(4)
    rows: list[Row] = []
    for i in range(number):
        colour, shape = random_thing(draw)
        draw_things(folder / "images" / f"{i}.png", [(colour, shape)], draw)
        for what, answer in (("colour", colour), ("shape", shape)):
            question = draw.choice([f"What {what} is it?", f"Tell me the {what} of the thing", f"Which {what}?"])
            rows.append({"image": f"images/{i}.png", "question": question, "answer": answer})
    return rows


def accuracy(trained: Trained, *mismatched: str) -> float:
    """Of the held-out rows as they are, or with some inputs taken from another row."""
    draw = random.Random(1)
    others = draw.sample(trained.rows, len(trained.rows))
    rows = [
        {**row, **{name: other[name] for name in mismatched}} for row, other in zip(trained.rows, others, strict=True)
    ]
    metrics = trained.model.evaluate(rows).metrics
    return metrics["accuracy"] if "accuracy" in metrics else metrics["exact"]


def question_of(row: Mapping[str, str]) -> dict[str, str]:
    return {name: row[name] for name in ("image", "question")}


def test_the_answer_needs_the_picture_and_the_question(tmp_path: Path) -> None:
    rows = questions(tmp_path, 220)
    trained = learn("visual-question-answering", rows[120:], rows[:120], tmp_path, updates=120, overrides=SMALL)
    assert accuracy(trained) >= 0.9
    assert accuracy(trained, "image") <= 0.65  # one of three colours, one of two shapes
    assert accuracy(trained, "question") <= 0.65  # half of them ask for something else
    answer = trained.model.predict({"image": trained.rows[0]["image"], "question": "what shape is it?"})
    assert answer.label in SHAPES
    assert set(answer.looks.maps) == {"image"}
    assert answer.looks.beside == {"question": "what shape is it?"}
    assert answer.looks.layouts["image"] == {"kind": "grid", "shape": [4, 4]}


@pytest.mark.slow
def test_answers_may_be_written_word_by_word(tmp_path: Path) -> None:
    rows = questions(tmp_path, 220)
    longer = [{**row, "answer": f"it is {row['answer']}"} for row in rows]
    words = ["output.kind=text", "decoder.embedding.size=16", "evaluation.metrics=[exact]", "search.max_length=6"]
    overrides = [*SMALL, *words]
    trained = learn("visual-question-answering", longer[120:], longer[:120], tmp_path, updates=150, overrides=overrides)
    assert trained.model.recipe.decoder.kind == "recurrent"
    assert accuracy(trained) >= 0.9
    assert accuracy(trained, "image") <= 0.65
    assert accuracy(trained, "question") <= 0.65
    assert trained.model.predict(question_of(trained.rows[0])).text.startswith("it is ")


def spoken_of(folder: Path, number: int) -> list[Row]:
    """Dialogues about a picture, which begin without a history: what was spoken of first is asked for later."""
    draw = random.Random(6)
    rows: list[Row] = []
    for i in range(number):
        colour, shape = random_thing(draw)
        draw_things(folder / "images" / f"{i}.png", [(colour, shape)], draw)
        what, answer = draw.choice([("colour", colour), ("shape", shape)])
        opened = f"shall we speak of its {what}?"
        turns = [([], opened, "yes"), ([opened, "yes", "do you see it?", "yes"], "what is it then?", answer)]
        for history, question, reply in turns:
            rows.append({"image": f"images/{i}.png", "question": question, "history": history, "answer": reply})
    return rows


def test_a_history_says_what_is_spoken_of(tmp_path: Path) -> None:
    rows = spoken_of(tmp_path, 420)
    history = [
        "inputs.history={kind: texts, tokens: word, case: lower, may_be_empty: true}",
        "inputs.history.encoder={kind: hierarchical, cell: gru, size: 16, embedding: {size: 16}}",
        "decoder.start=[question, history]",
    ]
    overrides = [*SMALL, *history, "training.report_every=400", "training.learning_rate=0.005"]
    trained = learn(
        "visual-question-answering", rows[120:], rows[:120], tmp_path, updates=280, overrides=overrides, kind="jsonl"
    )
    assert len(trained.rows) == 120
    first = [row for row in trained.rows if not row["history"]]
    assert len(first) == 60  # rows without a history are kept
    assert trained.model.evaluate(first).metrics["accuracy"] == 1
    trained.rows = [row for row in trained.rows if row["history"]]
    assert accuracy(trained) >= 0.8
    assert accuracy(trained, "image") <= 0.65
    assert accuracy(trained, "history") <= 0.65


@pytest.mark.parametrize("wrong", ["inputs.image.height=2", "decoder.start=history", "inputs.image.may_be_empty=true"])
def test_mistakes_are_refused(wrong: str) -> None:
    with pytest.raises(UserError, match=wrong.split("=")[0].rsplit(".", 1)[0]):
        load_recipe("visual-question-answering", overrides=[wrong])
