"""Supervised attention: its term of the loss against the equation, and what it does to where a model looks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.data.batches import TimeSpans
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.recipe import load_recipe
from seq2see.training.dataset import read_corpus
from seq2see.training.losses import Objective, alignment
from tests.system.small import write_table

WORDS = ["one", "two", "three", "four", "five", "six"]
FOREIGN = {word: word[::-1] for word in WORDS}
RECIPE: dict[str, Any] = {
    "inputs": {"source": {}},
    "encoder": {"size": 16, "embedding": {"size": 8}},
    "attention": {"size": 8},
    "decoder": {"size": 32, "embedding": {"size": 8}, "start": "source"},
    "loss": {"alignment": {"column": "links"}},
    "training": {"learning_rate": 0.02, "dev_rows": 10, "samples": 0, "threads": 1, "report_every": 1000},
    "evaluation": {"metrics": ["perplexity"]},
}


def sentence(draw: random.Random) -> dict[str, str]:
    """Each word translated, the last one first."""
    words = draw.choices(WORDS, k=draw.randint(4, 7))
    order = list(reversed(range(len(words))))
    return {
        "source": " ".join(words),
        "output": " ".join(FOREIGN[words[j]] for j in order),
        "links": " ".join(f"{j}-{t}" for t, j in enumerate(order)),
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder, draw = tmp_path_factory.mktemp("linked"), random.Random(3)
    train = write_table(folder / "train.tsv", [sentence(draw) for _ in range(300)])
    return train, write_table(folder / "test.tsv", [sentence(draw) for _ in range(40)])


def test_the_term_is_its_equation() -> None:
    draw = np.random.default_rng(1)
    weights = draw.dirichlet(np.ones(4), size=(2, 3))
    truth = np.zeros((2, 3, 4))
    truth[0, 0, [1, 3]] = 0.5
    truth[1, 2, 0] = 1.0
    expected = -0.5 * np.log(weights[0, 0, 1]) - 0.5 * np.log(weights[0, 0, 3]) - np.log(weights[1, 2, 0])
    real = torch.ones(2, 4, dtype=torch.bool)
    found = alignment(torch.tensor(weights).float(), torch.tensor(truth).float(), real)
    assert found.item() == pytest.approx(expected, rel=1e-5)
    nowhere = alignment(torch.zeros(1, 1, 2), torch.tensor([[[0.0, 1.0]]]), real[:1, :2])
    assert np.isfinite(nowhere.item()), "a place that is no candidate costs much, not everything"


def test_the_term_of_times_is_its_equation() -> None:
    """-log of the share inside, whatever its shape there; padding is never inside."""
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]], [[0.5, 0.5, 0, 0], [0.9, 0.1, 0, 0]]])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    spans = TimeSpans.of([{0: (0.3, 0.7)}, {0: (0.0, 1.0), 1: (0.5, 1.0)}], steps=2)
    assert alignment(weights, spans, mask).item() == pytest.approx(-np.log(0.5) - np.log(0.1), rel=1e-5)


def test_the_term_is_part_of_the_loss_with_its_weight(tables: tuple[Path, Path]) -> None:
    totals, term = {}, 0.0
    for weight in (0.0, 1.0, 3.0):
        recipe = load_recipe(RECIPE, overrides=[f"loss.alignment.weight={weight}"])
        corpus = read_corpus(recipe, tables[0], dev=tables[1])
        torch.manual_seed(2)
        bundle = Bundle.create(recipe, corpus.fields)
        bundle.network.eval()
        batch = corpus.train.batch([0, 1, 2])  # type: ignore[union-attr]
        loss = Objective(recipe.loss, corpus.fields)(bundle.network, batch)
        totals[weight] = loss.total.item()
        assert ("alignment" in loss.terms) == (weight > 0)
        if weight == 1.0:
            step, _ = bundle.network.forward_batch(batch)
            assert batch.alignment is not None
            log_weights = step.looks["source"].dense().detach().log().nan_to_num(neginf=0.0)
            term = -float((batch.alignment * log_weights).sum())
    assert term > 1
    assert totals[1.0] - totals[0.0] == pytest.approx(term, rel=1e-4)
    assert totals[3.0] - totals[0.0] == pytest.approx(3 * term, rel=1e-4)


def test_supervision_halves_the_alignment_error(tables: tuple[Path, Path], tmp_path: Path) -> None:
    rates = {}
    for weight in (0, 1):
        model = seq2see.train(
            RECIPE,
            tables[0],
            dev=tables[1],
            out=tmp_path / str(weight),
            updates=60,
            overrides=[f"loss.alignment.weight={weight}"],
            listeners=[],
        )
        rates[weight] = seq2see.load(tmp_path / str(weight)).evaluate(tables[1]).metrics["aer"]
        assert rates[weight] == model.evaluate(tables[1]).metrics["aer"]
    assert rates[0] > 0
    assert rates[1] <= rates[0] / 2
    assert rates[1] < 0.25

    unlinked = write_table(tmp_path / "plain.tsv", [{"source": "one two", "output": "eno owt"}])
    assert "aer" not in model.evaluate(unlinked).metrics
    with pytest.raises(UserError, match="metric 'aer' needs the column 'links' of alignments, and the table has none"):
        model.evaluate(unlinked, metrics=["aer"])
    wrong = write_table(tmp_path / "wrong.tsv", [{"source": "one", "output": "eno", "links": "0-1"}])
    with pytest.raises(UserError, match=r"wrong\.tsv, line 2: column 'links': '0-1': the output has 1 symbol"):
        model.evaluate(wrong)
