"""A linear autoencoder finds the principal subspace; PCA stands beside it on the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seq2see
from seq2see.errors import UserError
from seq2see.modalities.vector import written
from seq2see.pipeline.vectors import check_autoencoder, compare_with_pca
from seq2see.recipe import load_recipe
from seq2see.training.code_sizes import code_sizes

RECIPE = {
    "task": "flat",
    "inputs": {"x": {"kind": "vector", "standardise": False}},
    "output": {"kind": "vector", "column": "x", "standardise": False},
    "encoder": {"kind": "dense", "hidden": [], "size": 2},
    "training": {"learning_rate": 0.02, "batch_rows": 64, "epochs": 0, "updates": 400, "report_every": 200},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six numbers that vary in two directions, and a little in the others."""
    draw = np.random.default_rng(0)
    flat = draw.normal(size=(200, 2)) * [2.0, 1.0] @ draw.normal(size=(2, 6))
    path = tmp_path_factory.mktemp("flat") / "flat.tsv"
    rows = flat + 0.05 * draw.normal(size=flat.shape) + 1
    path.write_text("x\n" + "".join(f"{written(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def linear(table: Path) -> seq2see.Model:
    return seq2see.train(RECIPE, table, out=table.parent / "linear", listeners=[])


def test_a_linear_autoencoder_spans_the_principal_subspace(linear: seq2see.Model, table: Path) -> None:
    rows = linear.rows_of(table)
    found = compare_with_pca(linear.bundle, rows, rows)
    assert (found.size, found.why_not, len(found.angles)) == (2, "", 2)
    assert max(found.angles) < 6
    errors = {name: float(each.mean()) for name, each in found.errors().items()}
    assert errors["PCA"] <= errors["autoencoder"] < 0.1 * errors["the mean (no code)"]
    values = np.stack([np.array(row["x"].split(), dtype=float) for row in rows])
    assert found.rows == pytest.approx(values)
    lost = np.linalg.svd(values - values.mean(0), compute_uv=False)[2:]
    assert errors["PCA"] == pytest.approx(np.square(lost).sum() / values.size, rel=1e-3)


def test_what_is_no_autoencoder_is_refused(linear: seq2see.Model, table: Path) -> None:
    with pytest.raises(UserError, match="PCA needs numbers, and this model gives"):
        check_autoencoder(load_recipe("translation"))
    other = {**RECIPE, "output": {"kind": "vector", "column": "y"}}
    with pytest.raises(UserError, match="it reads x and gives y"):
        check_autoencoder(load_recipe(other))


def test_deep_ones_have_no_angles_and_wide_ones_no_rival(table: Path) -> None:
    few = ["training.updates=1", "training.report_every=1"]
    deep = seq2see.train(RECIPE, table, out=table.parent / "deep", listeners=[], overrides=[*few, "encoder.hidden=[4]"])
    rows = deep.rows_of(table)
    assert compare_with_pca(deep.bundle, rows, rows).why_not == "it has hidden layers"
    wide = seq2see.train(RECIPE, table, out=table.parent / "wide", listeners=[], overrides=[*few, "encoder.size=9"])
    with pytest.raises(UserError, match="the code has 9 numbers and the rows have 6"):
        compare_with_pca(wide.bundle, rows, rows)


def test_errors_fall_with_the_size_of_the_code(table: Path, tmp_path: Path) -> None:
    found = code_sizes(RECIPE, table, sizes=[1, 2, 8], updates=60, out=tmp_path / "runs", listeners=[])
    pca = {one.size: one.error for one in found if one.model == "PCA"}
    assert sorted(pca) == [1, 2]
    assert pca[2] < 0.1 * pca[1]
    assert [one.size for one in found if one.model == "autoencoder"] == [1, 2, 8]
    with pytest.raises(UserError, match="PCA needs numbers"):
        code_sizes("translation", table, sizes=[2], updates=1, out=tmp_path / "no", listeners=[])
