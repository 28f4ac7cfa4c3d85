"""A value is read once per prediction, however many need it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import seq2see
from seq2see.api import Model
from seq2see.data.tokens import Splitter
from tests.pipeline.conftest import SMALL


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was split into symbols."""
    counts: Counter[str] = Counter()
    for kind in _kinds(Splitter):
        if "split" in vars(kind):
            _count(monkeypatch, kind, counts)
    return counts


def _kinds(kind: type[Splitter]) -> list[type[Splitter]]:
    return [kind, *(other for one in kind.__subclasses__() for other in _kinds(one))]


def _count(monkeypatch: pytest.MonkeyPatch, kind: type[Splitter], counts: Counter[str]) -> None:
    original = kind.split

    def split(self: Splitter, text: str) -> list[str]:
        counts[text] += 1
        return original(self, text)

    monkeypatch.setattr(kind, "split", split)


def test_a_sentence_is_tokenised_once_per_prediction(model: Model, split: Counter[str]) -> None:
    model.predict("aex", beam=3, n_best=2)
    assert split == {"aex": 1}


def test_each_of_several_sentences_is_tokenised_once(model: Model, split: Counter[str]) -> None:
    model.predict(["aex", "boz", "ciy"])
    assert split == {"aex": 1, "boz": 1, "ciy": 1}


def test_each_input_is_tokenised_once(labels: Model, split: Counter[str]) -> None:
    labels.predict({"one": "a x", "two": "b y"})
    assert split == {"a x": 1, "b y": 1}


def test_a_copied_input_is_tokenised_once(tmp_path: Path, split: Counter[str]) -> None:
    names = ["anna", "bert", "carl", "dora", "emil", "fred"]
    rows = [{"source": f"i am {name}", "output": f"hello {name}"} for name in names]
    recipe = {
        "inputs": {"source": {"vocabulary": 2}},
        "output": {"vocabulary": 1},
        "decoder": {"start": "source", "copy_from": "source"},
        "attention": {"score": "additive"},
    }
    model = seq2see.train(recipe, rows, out=tmp_path / "run", overrides=SMALL, updates=2, listeners=[])
    split.clear()
    model.predict("i am anna")
    assert split == {"i am anna": 1}
