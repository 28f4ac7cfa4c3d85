"""Whether a model learns the same in reduced precision: the same recipe, seeds and batches in float32 and as shipped.

    python benchmarks/studies/precision.py --updates 400 --seeds 3 --picture docs/pictures/precision.png

Translation of multi30k by a smaller network. What is compared is the training loss, as means of 20 updates, and the
perplexity on dev, which is measured in float32 for both. Beside the difference of the two stands the one between two
seeds in float32: what chance alone does.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import seq2see
from seq2see.data.tables import locate
from seq2see.seeing.figure import save_figure
from seq2see.seeing.plots import PlotRow, read_curve, small_multiples

EVERY = 20
WAYS = {"float32": "float32", "bfloat16": "bfloat16 products"}
SMALLER = [
    "inputs.source.vocabulary=3000",
    "output.vocabulary=3000",
    "encoder.size=128",
    "encoder.embedding.size=128",
    "decoder.size=256",
    "decoder.embedding.size=128",
    "attention.size=128",
    "training.batch_tokens=1000",
    "training.learning_rate=0.004",
    f"training.report_every={EVERY}",
    "training.dev_rows=20",
    "training.minutes=0",
    "training.average=1",
    "training.film=0",
    "evaluation.metrics=[perplexity]",
]

Curve = tuple[list[float], list[float]]


def trained(precision: str, seed: int, *, updates: int, data: str, folder: Path) -> tuple[Curve, float]:
    """(training loss against updates, perplexity on dev in float32 after the last update)."""
    out = folder / f"{precision}-{seed}"
    overrides = [*SMALLER, f"training.precision={precision}"]
    train, dev = locate(data)
    assert dev is not None, f"{data}: without dev rows"
    model = seq2see.train(
        "translation", train, dev=dev, out=out, overrides=overrides, updates=updates, seed=seed, listeners=[]
    )
    curve = read_curve(out / "metrics.jsonl", measure="loss", against="update")
    return curve, float(model.evaluate(dev, metrics=["perplexity"]).metrics["perplexity"])


def draw(curves: dict[tuple[str, int], Curve], seeds: list[int], path: Path) -> None:
    """Above the losses of every seed, below how far they lie apart."""

    def apart(one: Curve, other: Curve) -> Curve:
        return one[0], (np.array(one[1]) - np.array(other[1])).tolist()

    losses, differences = {}, {}
    for seed in seeds:
        other = seeds[(seeds.index(seed) + 1) % len(seeds)]
        plain, reduced = curves["float32", seed], curves["bfloat16", seed]
        losses[f"seed {seed}"] = {"float32": plain, WAYS["bfloat16"]: reduced}
        differences[f"difference, seed {seed}"] = {
            WAYS["bfloat16"]: apart(reduced, plain),
            "float32, another seed": apart(curves["float32", other], plain),
        }
    rows = [
        PlotRow(losses, "updates", "training loss"),
        PlotRow(differences, "updates", "loss less that of float32", line=0.0),
    ]
    save_figure(small_multiples(rows, title="The loss in float32 and in reduced precision"), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default="multi30k")
    parser.add_argument("--picture", type=Path, required=True)
    options = parser.parse_args()
    seeds = list(range(1, options.seeds + 1))
    curves: dict[tuple[str, int], Curve] = {}
    print("| seed | last loss, float32 | bfloat16 | largest difference | dev perplexity, float32 | bfloat16 |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            perplexity = {}
            for precision in WAYS:
                curves[precision, seed], perplexity[precision] = trained(
                    precision, seed, updates=options.updates, data=options.data, folder=Path(folder)
                )
            plain, reduced = (np.array(curves[precision, seed][1]) for precision in WAYS)
            largest = np.abs(reduced - plain).max()
            dev = " | ".join(f"{value:.3f}" for value in perplexity.values())
            print(f"| {seed} | {plain[-1]:.4f} | {reduced[-1]:.4f} | {largest:.4f} | {dev} |", flush=True)
    draw(curves, seeds, options.picture)


if __name__ == "__main__":
    main()
