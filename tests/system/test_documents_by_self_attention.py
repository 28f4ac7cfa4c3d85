"""Documents without a recurrence, words through sentences by heads, labels by layers: learned, told and drawn."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.system.small import SMALL_TEXT, SMALL_WRITER, Trained, learn, split
from tests.system.test_documents import OTHERS, WORDS, _filler

LEVELS = ("encoder.levels=transformer", "encoder.heads=2", "encoder.feedforward=64")
TEXT = "We went on a holiday. The film is superb. The soup is odd."


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """One sentence of each says what the film is, another the like of something else: words alone do not tell."""
    draw = random.Random(7)

    def review() -> dict[str, str]:
        label = draw.choice([*WORDS])
        sentences = [_filler(draw) for _ in range(draw.randint(1, 3))]
        sentences.append(f"The {draw.choice(OTHERS)} is {draw.choice(WORDS[draw.choice([*WORDS])])}.")
        sentences.insert(draw.randint(0, len(sentences)), f"The film is {draw.choice(WORDS[label])}.")
        return {"text": " ".join(sentences), "label": label}

    rows, held_out = split([review() for _ in range(600)])
    small = [*SMALL_TEXT, *LEVELS, "encoder.pooling_size=16", "inputs.document.min_count=1"]
    label = ["decoder.kind=transformer", "decoder.layers=2", "decoder.feedforward=64", "decoder.size=32"]
    how = [
        "attention.score=additive",
        "attention.size=16",
        "training.learning_rate=0.003",
        "training.batch_tokens=1500",
    ]
    folder = tmp_path_factory.mktemp("reviews")
    return learn("document-classification", rows, held_out, folder, updates=100, overrides=[*small, *label, *how])


def test_documents_are_classified_without_a_recurrence(reviews: Trained) -> None:
    assert reviews.model.evaluate(reviews.rows).metrics["accuracy"] >= 0.9
    assert reviews.untrained.evaluate(reviews.rows).metrics["accuracy"] <= 0.6
    assert reviews.model.evaluate(reviews.mismatched()).metrics["accuracy"] <= 0.6


def test_an_answer_does_not_depend_on_its_company(reviews: Trained) -> None:
    inputs = [row["document"] for row in reviews.rows[:8]]
    together = reviews.model.predict(inputs)
    for text, batched in zip(inputs, together, strict=True):
        alone = reviews.model.predict(text)
        assert alone.log_probability == pytest.approx(batched.log_probability, abs=1e-4)
        assert alone.looks.weights == pytest.approx(batched.looks.weights, abs=1e-4)


def test_every_level_tells_how_it_looked(reviews: Trained, tmp_path: Path) -> None:
    prediction = reviews.model.look(TEXT)
    looks = prediction.looks
    assert looks.weights.shape == (1, 3)
    assert looks.maps["document.layer-1"].shape[-2:] == (1, 3)
    assert looks.maps["document.self-1"].shape == (2, 3, 3)
    words = looks.maps["document.words.self-1"]
    assert words.shape == (2, 16, 16)
    assert words.sum(-1) == pytest.approx(np.ones((2, 16)), abs=1e-4)
    parts = np.repeat(np.arange(3), looks.layouts["document.words.self-1"]["parts"])
    assert not words[:, parts[:, None] != parts[None]].any()
    assert looks.rows["document.words.self-1"] == looks.inputs["document.words.self-1"]
    assert "superb" in looks.rows["document.words.self-1"]
    for name in ("document.words.self-1", "document.self-1", "document.words"):
        picture = looks.save(tmp_path / f"{name}.png", map=name)
        assert picture.stat().st_size > 3000
    assert "superb" in looks.save(tmp_path / "look.html").read_text("utf-8")


def test_one_step_is_worked_out(reviews: Trained) -> None:
    step = reviews.model.explain(TEXT, step=0)
    assert step.reads is None
    assert step.equations["state"].startswith("x is a parameter")
    assert "s = norm(x)" in step.equations["state"]
    assert step.equations["output"] == "P(y | x) = softmax(V s + c)"
    assert len(step.state) == 32
    assert step.looks[0].input == "document"
    assert sum(step.looks[0].weights) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "ways",
    [
        ("attention.heads=4", "attention.score=scaled-dot", "decoder.kind=transformer", "decoder.feedforward=96"),
        (
            "attention.scope=local-predicted",
            "attention.window=9",
            "attention.query=current",
            "attention.input_feeding=false",
        ),
    ],
    ids=["heads in a transformer", "a window in a recurrent network"],
)
def test_a_reply_takes_up_what_was_said_before(tmp_path: Path, ways: tuple[str, ...]) -> None:
    """Words looked at through utterances, all of them read by self-attention."""
    draw = random.Random(8)
    foods, areas = ["thai", "french", "greek", "polish"], ["north", "south", "west", "east"]
    chat = ["hello", "good day", "yes please", "thank you"]

    def turn(food: str, area: str) -> dict[str, object]:
        history = [f"i want {food} food", draw.choice(chat), f"in the {area} part"]
        return {"history": history, "response": f"There is {food} food in the {area}."}

    turns = [turn(food, area) for food in foods for area in areas for _ in range(8)]
    draw.shuffle(turns)
    rows, held_out = split(turns, held_out=12)
    small = [*SMALL_TEXT, *SMALL_WRITER, *LEVELS, *ways, "training.batch_tokens=700", "training.learning_rate=0.004"]
    trained = learn("dialog-history", rows, held_out, tmp_path, updates=80, overrides=small, kind="jsonl")

    assert trained.model.evaluate(trained.rows).metrics["bleu_lc"] >= 85
    assert trained.model.evaluate(trained.mismatched()).metrics["bleu_lc"] <= 70
    inputs = {"history": ["i want greek food", "hello", "in the west part"]}
    prediction = trained.model.predict(inputs, beam=3)
    assert prediction.text == "there is greek food in the west."
    looks = prediction.looks.maps["history.words"]
    assert looks.sum(-1) == pytest.approx(np.ones(len(looks)), abs=1e-4)
    step = trained.model.explain(inputs, step=2)
    assert [look.input for look in step.looks] == ["history", "history.words"]
    for look in step.looks:
        assert sum(look.weights) == pytest.approx(1, abs=1e-4)
    words = dict.fromkeys(range(3), 0.0)
    sentence = np.repeat(np.arange(3), prediction.looks.layouts["history.words"]["parts"])
    for place, weight in zip(sentence, step.looks[1].weights, strict=True):
        words[int(place)] += weight
    assert [*words.values()] == pytest.approx(step.looks[0].weights, abs=1e-4)
