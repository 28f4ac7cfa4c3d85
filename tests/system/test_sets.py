"""A set becomes a sequence: sorting letters needs every one of them, and no order they come in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from tests.system.small import Row, Trained, learn, split

LETTERS = "abcdefgh"
SMALL = (
    "encoder.size=48",
    "encoder.embedding.size=32",
    "decoder.size=64",
    "decoder.embedding.size=32",
    "attention.size=32",
    "training.learning_rate=0.01",
    "training.batch_tokens=1000",
    "training.threads=1",
    "training.precision=float32",
    "training.dev_rows=40",
    "training.report_every=150",
    "search.max_length=20",
)
LOOKING = ("encoder.kind=transformer", "encoder.heads=2", "encoder.layers=1", "encoder.feedforward=64")


def rows() -> tuple[list[Row], list[Row]]:
    """Sets of letters, some of them there twice, as lists; the same in another order count as one row."""
    draw = random.Random(3)
    drawn = [[draw.choice(LETTERS) for _ in range(draw.randint(4, 6))] for _ in range(1500)]
    distinct = {"".join(sorted(letters)): letters for letters in drawn}.values()
    return split([{"items": letters, "sorted": " ".join(sorted(letters))} for letters in distinct])


@pytest.fixture(autouse=True, scope="module")
def _shapes_unchecked() -> Iterator[None]:
    """They have been checked elsewhere, and hundreds of updates would take thrice as long."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="module")
def sorter(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return learn(
        "set-to-sequence", *rows(), tmp_path_factory.mktemp("sets"), updates=250, overrides=SMALL, kind="jsonl"
    )


def sorts(trained: Trained) -> None:
    report = trained.model.evaluate(trained.rows)
    assert report.metrics["exact"] >= 0.8
    assert report.baseline["exact"] <= 0.2
    assert trained.model.evaluate(trained.mismatched()).metrics["exact"] <= 0.1
    assert trained.untrained.evaluate(trained.rows).metrics["exact"] <= 0.1


def test_letters_nobody_put_in_order_are_sorted(sorter: Trained) -> None:
    sorts(sorter)


@pytest.mark.slow
def test_elements_that_look_at_each_other_sort_too(tmp_path: Path) -> None:
    trained = learn("set-to-sequence", *rows(), tmp_path, updates=250, overrides=[*LOOKING, *SMALL], kind="jsonl")
    sorts(trained)
    maps = trained.model.look({"items": ["c", "a", "b"]}).looks
    assert maps.layouts["items"] == maps.layouts["items.self-1"] == {"kind": "set", "shape": [3]}


def test_the_order_a_set_is_given_in_changes_nothing(sorter: Trained) -> None:
    first, second = (sorter.model.predict({"items": items}) for items in (["d", "a", "c", "a"], ["a", "c", "a", "d"]))
    assert first.text == second.text
    assert set(first.text.split()) == {"a", "c", "d"}
    assert first.log_probability == pytest.approx(second.log_probability, abs=1e-5)
    np.testing.assert_allclose(first.looks.weights, second.looks.weights[:, [3, 0, 1, 2]], atol=1e-5)
    assert sorter.model.predict("d a c a").log_probability == pytest.approx(first.log_probability, abs=1e-5)


def test_elements_are_the_places_that_are_shown(sorter: Trained, tmp_path: Path) -> None:
    prediction = sorter.model.look("d a c")
    assert prediction.looks.inputs["items"] == sorter.model.places("d a c") == ["d", "a", "c"]
    assert prediction.looks.to_dict()["layout"] == {"kind": "set", "shape": [3]}
    assert prediction.looks.save(tmp_path / "look.png").stat().st_size > 3000
    assert "shape" in prediction.looks.save(tmp_path / "look.json").read_text("utf-8")
    step = sorter.model.explain("d a c", step=1)
    assert step.looks[0].places == ["d", "a", "c"]
    assert sum(step.looks[0].weights) == pytest.approx(1, abs=1e-5)


def test_elements_are_left_out_one_by_one(sorter: Trained) -> None:
    report = sorter.model.faithful(sorter.rows, rows=6)
    assert {agreement.measure for agreement in report.agreements} == {"occlusion", "gradient"}
    assert {agreement.input for agreement in report.agreements} == {"items"}
