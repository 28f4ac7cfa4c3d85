"""What a code of so many numbers can hold: error against code size, of autoencoders beside PCA.

Linear ones follow PCA; deep ones need fewer numbers; with more numbers than the vector has, one learns to copy
(whatever it is given comes back), and one that was trained to take noise away does not. Data: the 8 x 8 digits of
scikit-learn where that is installed, otherwise pictures made here. (`seq2see figure code-size` draws the first of these
pictures of any table.)

python benchmarks/studies/code_size.py --updates 1200 --picture docs/pictures/code-size.png \
    --sheet docs/pictures/reconstructions.png
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import seq2see
from seq2see.evaluation.pca import Pca
from seq2see.modalities.vector import written
from seq2see.seeing import line_plot, reconstruction_sheet

SIDE = 8
NOISE = 0.25
"""Deviation of the noise, of pixels from 0 to 1."""
RECIPE: dict[str, Any] = {
    "task": "code-size",
    "inputs": {"x": {"kind": "vector", "standardise": False}},
    "output": {"kind": "vector", "column": "x", "standardise": False},
    "encoder": {"kind": "dense", "hidden": [], "size": 8},
    "training": {"learning_rate": 0.003, "batch_rows": 128, "epochs": 0, "report_every": 500, "dev_rows": 100},
}
DEEP = ["encoder.hidden=[128,64]"]
NOISY = ["inputs.x.noise.kind=gaussian", f"inputs.x.noise.amount={NOISE}"]
KINDS = {"linear": [], "deep": DEEP, "linear, denoising": NOISY, "deep, denoising": [*DEEP, *NOISY]}

Numbers = NDArray[np.float64]


def pictures() -> tuple[Numbers, str]:
    """(rows of 64 pixels from 0 to 1, what they are)."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        return _strokes(1800), "generated strokes"
    return np.asarray(load_digits().data) / 16, "digits"


def _strokes(number: int) -> Numbers:
    """Blurred straight strokes of any length and direction."""
    random = np.random.default_rng(1)
    middle, angle = random.uniform(2.5, 4.5, (number, 2, 1)), random.uniform(0, np.pi, (number, 1))
    along = np.linspace(-1, 1, 9) * random.uniform(1, 3.5, (number, 1))
    x, y = middle[:, 0] + along * np.cos(angle), middle[:, 1] + along * np.sin(angle)
    down, across = np.mgrid[:SIDE, :SIDE]
    far = (down.ravel()[:, None] - y[:, None]) ** 2 + (across.ravel()[:, None] - x[:, None]) ** 2
    return np.asarray(np.exp(-far.min(2)))


def table(path: Path, rows: Numbers) -> Path:
    path.write_text("x\n" + "".join(f"{written(row)}\n" for row in rows), encoding="utf-8")
    return path


def given_back(model: seq2see.Model, rows: Numbers) -> Numbers:
    return np.array([one.vector for one in model.predict([written(row) for row in rows])])


def error(made: Numbers, wanted: Numbers) -> float:
    return float(np.square(made - wanted).mean())


def drawn(series: dict[str, Any], title: str, path: Path) -> None:
    """Errors against code sizes, which double from one to the next."""
    sizes = next(reversed(series.values()))[0]
    axes: dict[str, Any] = {"xlabel": "numbers in the code", "ylabel": "mean squared error", "doubling": sizes}
    line_plot(series, title=title, ylim=(0, None), path=path, **axes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--picture", type=Path, required=True)
    parser.add_argument("--sheet", type=Path, required=True)
    given = parser.parse_args()
    rows, what = pictures()
    rows = np.random.default_rng(2).permutation(rows)
    test, dev, train = rows[:300], rows[300:400], rows[400:]
    spoilt = test + NOISE * np.random.default_rng(3).normal(size=test.shape)
    small = [size for size in given.sizes if size <= train.shape[1]]
    pca = Pca.fit(train)
    clean = {"PCA": (small, [error(pca.reconstruct(test, size), test) for size in small])}
    noisy = {"PCA": (small, [error(pca.reconstruct(spoilt, size), test) for size in small])}
    noisy["the noisy pictures themselves"] = (given.sizes, [error(spoilt, test)] * len(given.sizes))
    shown = {"given": test[:12], "with noise": spoilt[:12]}
    with tempfile.TemporaryDirectory() as folder:
        tables = {name: table(Path(folder) / f"{name}.tsv", part) for name, part in (("dev", dev), ("train", train))}
        for name, changes in KINDS.items():
            errors: dict[str, list[float]] = {"clean": [], "noisy": []}
            for size in given.sizes:
                model = seq2see.train(
                    RECIPE,
                    tables["train"],
                    dev=tables["dev"],
                    out=Path(folder) / f"{name}-{size}",
                    overrides=[*changes, f"encoder.size={size}"],
                    updates=given.updates,
                    listeners=[],
                )
                errors["clean"].append(error(given_back(model, test), test))
                errors["noisy"].append(error(given_back(model, spoilt), test))
                if size == max(given.sizes) and name != "deep":
                    shown[f"{name}, {size}"] = given_back(model, spoilt)[:12]
            clean[name], noisy[name] = (given.sizes, errors["clean"]), (given.sizes, errors["noisy"])
            told = {key: np.round(values, 5).tolist() for key, values in errors.items()}
            print(json.dumps({"model": name, "sizes": given.sizes, **told}), flush=True)
    said = {
        "data": what,
        "PCA": np.round(clean["PCA"][1], 5).tolist(),
        "PCA, noisy": np.round(noisy["PCA"][1], 5).tolist(),
    }
    print(json.dumps(said))
    drawn(clean, f"What a code can hold ({what})", given.picture)
    drawn(noisy, f"Noise in: what comes out ({what})", given.picture.with_stem(f"{given.picture.stem}-noisy"))
    cells = {name: [row.reshape(SIDE, SIDE) for row in part] for name, part in shown.items()}
    reconstruction_sheet(cells, title=f"Noise in, {what} out", path=given.sheet)


if __name__ == "__main__":
    main()
