"""Vectors to themselves: what a code keeps, what a linear one spans, what one without a bottleneck learns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import seq2see
from seq2see.errors import UserError
from seq2see.modalities.vector import written

NUMBERS, FACTORS = 12, 3
RECIPE = "autoencoder"
QUICK = ["training.epochs=0", "training.updates=300", "training.learning_rate=0.03", "training.report_every=300"]
AS_GIVEN = ["inputs.x.standardise=false", "output.standardise=false"]
LINEAR = [*QUICK, *AS_GIVEN, "encoder.hidden=[]", f"encoder.size={FACTORS}"]


def rows(number: int, seed: int = 1) -> NDArray[np.float64]:
    """Three factors of decreasing strength in twelve numbers, turned at random, off the origin, with a little noise."""
    random = np.random.default_rng(seed)
    turned = np.linalg.qr(np.random.default_rng(7).normal(size=(NUMBERS, NUMBERS)))[0]
    values = random.normal(size=(number, FACTORS)) * [3.0, 2.0, 1.5] @ turned[:FACTORS]
    return values + 0.5 + 0.1 * random.normal(size=values.shape)


def table(path: Path, numbers: NDArray[np.float64]) -> Path:
    path.write_text("x\n" + "".join(f"{written(row)}\n" for row in numbers), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors")
    table(path / "train.tsv", rows(400))
    table(path / "dev.tsv", rows(100, seed=2))
    return path


def trained(folder: Path, out: Path, *changes: str, base: Sequence[str] = LINEAR) -> seq2see.Model:
    overrides = [*base, *changes]
    return seq2see.train(RECIPE, data=folder / "train.tsv", dev=folder / "dev.tsv", out=out, overrides=overrides)


@pytest.fixture(scope="module")
def linear(folder: Path) -> seq2see.Model:
    return trained(folder, folder / "linear")


def test_the_recipe_as_it_ships_learns(folder: Path, tmp_path: Path) -> None:
    model = trained(folder, tmp_path / "run", base=["training.epochs=20", "training.report_every=80"])
    assert model.recipe.task == "autoencoder"
    shapes = [tuple(layer.weight.shape) for layer in model.bundle.network.decoder.dense]
    assert shapes == [(64, 16), (128, 64)]
    report = model.evaluate(folder / "dev.tsv")
    assert report.metrics["mse"] < 0.2 * report.baseline["mse"]


def test_a_linear_code_spans_the_principal_subspace(linear: seq2see.Model) -> None:
    train = rows(400)
    _, _, principal = np.linalg.svd(train - train.mean(0), full_matrices=False)
    spanned = np.linalg.qr(linear.bundle.network.head.V.detach().double().numpy())[0]
    cosines = np.linalg.svd(principal[:FACTORS] @ spanned, compute_uv=False)
    assert np.degrees(np.arccos(cosines.clip(-1, 1))).max() < 2.0
    away = np.linalg.svd(principal[-FACTORS:] @ spanned, compute_uv=False)
    assert away.max() < 0.1


def test_its_error_is_that_of_principal_components(folder: Path, linear: seq2see.Model) -> None:
    train, dev = rows(400), rows(100, seed=2)
    _, _, principal = np.linalg.svd(train - train.mean(0), full_matrices=False)
    kept = principal[:FACTORS]
    left = (dev - train.mean(0)) - (dev - train.mean(0)) @ kept.T @ kept
    report = linear.evaluate(folder / "dev.tsv")
    assert report.metrics["mse"] == pytest.approx(np.square(left).mean(), rel=0.15)
    assert report.baseline["mse"] == pytest.approx(np.square(dev - train.mean(0)).mean(), rel=1e-3)


def test_a_model_that_is_shown_other_rows_does_worse_than_the_mean(folder: Path, tmp_path: Path) -> None:
    pairs = ["x\ty", *(f"{written(row)}\t{written(row)}" for row in rows(400))]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    changes = [*LINEAR, "output.column=y", "encoder.hidden=[32]"]
    model = seq2see.train(RECIPE, data=tmp_path / "pairs.tsv", out=tmp_path / "run", overrides=changes, updates=200)
    dev = [written(row) for row in rows(100, seed=2)]
    seen = model.evaluate([{"x": row, "output": row} for row in dev])
    blind = model.evaluate([{"x": row, "output": other} for row, other in zip(dev, dev[1:] + dev[:1], strict=True)])
    assert seen.metrics["mse"] < 0.1 * seen.baseline["mse"]
    assert blind.metrics["mse"] > blind.baseline["mse"]


def test_without_a_bottleneck_it_copies_and_with_noise_it_does_not(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    strange = random.normal(size=(50, NUMBERS))  # of no kind it has been trained on
    table(tmp_path / "train.tsv", rows(400) + 0.5 * random.normal(size=(400, NUMBERS)))
    table(tmp_path / "dev.tsv", rows(100, seed=2))

    def kept(name: str, *changes: str) -> tuple[float, float]:
        model = trained(tmp_path, tmp_path / name, f"encoder.size={2 * NUMBERS}", *changes)
        outputs = np.array([prediction.vector for prediction in model.predict([written(row) for row in strange])])
        return model.evaluate(tmp_path / "dev.tsv").metrics["mse"], float(np.square(outputs - strange).mean())

    seen, copied = kept("copying")
    cleaned, projected = kept("denoising", "inputs.x.noise.kind=gaussian", "inputs.x.noise.amount=1.0")
    assert seen < 0.01
    assert copied < 0.02
    assert cleaned < 0.3
    assert projected > 0.3


def test_a_deep_mirrored_one_learns_what_is_not_linear(tmp_path: Path) -> None:
    angles = np.random.default_rng(3).uniform(0, 2 * np.pi, 500)
    ring = np.stack([np.cos(angles), np.sin(angles), np.cos(2 * angles), np.sin(2 * angles)], axis=1)
    table(tmp_path / "ring.tsv", ring)
    errors = {}
    for name, hidden in (("linear", []), ("deep", [32, 16])):
        changes = [*LINEAR, "encoder.size=2", f"encoder.hidden={hidden}", "training.learning_rate=0.01"]
        changes += ["encoder.activation=tanh"] if hidden else []
        model = seq2see.train(RECIPE, data=tmp_path / "ring.tsv", out=tmp_path / name, overrides=changes, updates=400)
        errors[name] = model.evaluate(tmp_path / "ring.tsv").metrics["mse"]
        assert [tuple(layer.weight.shape) for layer in model.bundle.network.decoder.dense] == (
            [(16, 2), (32, 16)] if hidden else []
        )
    assert errors["linear"] > 0.2
    assert errors["deep"] < 0.05


def test_numbers_come_back_as_they_were_given(folder: Path, tmp_path: Path) -> None:
    model = trained(
        folder, tmp_path / "run", "inputs.x.standardise=true", "output.standardise=true", "training.updates=5"
    )
    loaded = seq2see.load(tmp_path / "run")
    row = np.round(rows(1, seed=9)[0], 3)
    prediction = loaded.predict(row)
    assert prediction.vector == model.predict(written(row)).vector == loaded.predict({"x": row.tolist()}).vector
    assert prediction.to_dict().keys() == {"input", "vector"}
    field = loaded.bundle.fields.numeric_output
    np.testing.assert_allclose(field.mean, rows(400).mean(0), atol=1e-5)  # type: ignore[attr-defined]
    assert len(loaded.encode([written(row)])[0]) == FACTORS
    asked = (
        lambda: loaded.score(folder / "dev.tsv"),
        lambda: loaded.explain(written(row)),
        lambda: loaded.look(written(row), target="1 2"),
    )
    for ask in asked:
        with pytest.raises(UserError, match="probability"):
            ask()
    with pytest.raises(UserError, match="beam"):
        loaded.predict(written(row), beam=3)


def test_an_ensemble_gives_the_mean(folder: Path, linear: seq2see.Model, tmp_path: Path) -> None:
    other = trained(folder, tmp_path / "other", "training.updates=20")
    row = written(rows(1, seed=9)[0])
    both = seq2see.Model([linear.bundle, other.bundle]).predict(row).vector
    alone = [model.predict(row).vector for model in (linear, other)]
    np.testing.assert_allclose(both, np.mean(np.array(alone), axis=0))


def test_noise_is_drawn_alike_with_the_same_seed(folder: Path, tmp_path: Path) -> None:
    few = ["inputs.x.standardise=true", "training.updates=10"]
    masked = [*few, "inputs.x.noise.kind=masking", "inputs.x.noise.amount=0.3"]
    row = written(rows(1, seed=9)[0])
    first, second = (trained(folder, tmp_path / name, *masked).predict(row).vector for name in ("first", "second"))
    clean = trained(folder, tmp_path / "clean", *few)
    assert first == second != clean.predict(row).vector
