"""The information bottleneck on a task with nothing to know: copy up to 60 random symbols (or, with --reverse, say them
backwards), with and without attention.

python benchmarks/studies/copy_task.py --updates 3000 --picture docs/pictures/copy-by-length.png
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import seq2see
from seq2see.evaluation import compute
from seq2see.seeing import line_plot

SYMBOLS = [chr(ord("a") + i) for i in range(20)]
RECIPE = {
    "task": "copy",
    "inputs": {"source": {"tokens": "symbol"}},
    "output": {"tokens": "symbol", "share": "source"},
    "encoder": {"cell": "gru", "size": 128, "embedding": {"size": 64}},
    "attention": {"score": "additive", "size": 128},
    "decoder": {"cell": "gru", "size": 256, "start": "source", "embedding": {"size": 64}},
    "training": {"learning_rate": 0.002, "batch_tokens": 4000, "epochs": 0, "report_every": 500, "dev_rows": 100},
    "search": {"max_length": 80},
    "evaluation": {"metrics": ["token_accuracy", "exact"], "baseline": "frequent"},
}


def written(path: Path, rows: int, longest: int, seed: int, *, reverse: bool) -> Path:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, size=rows)
    symbols = [random.choice(SYMBOLS, size=length) for length in lengths]
    pairs = [(" ".join(row), " ".join(row[::-1] if reverse else row)) for row in symbols]
    path.write_text("source\toutput\n" + "".join(f"{x}\t{y}\n" for x, y in pairs), encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--longest", type=int, default=60)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--picture", type=Path, required=True)
    given = parser.parse_args()
    edges = list(range(1, given.longest + 1, 5))
    series = {}
    with tempfile.TemporaryDirectory() as folder:
        train = written(Path(folder) / "train.tsv", 40000, given.longest, 1, reverse=given.reverse)
        dev = written(Path(folder) / "dev.tsv", 300, given.longest, 2, reverse=given.reverse)
        test = written(Path(folder) / "test.tsv", 1200, given.longest, 3, reverse=given.reverse)
        for name, overrides in (("with attention", []), ("without attention", ["attention=none"])):
            model = seq2see.train(
                RECIPE, train, dev=dev, out=Path(folder) / name, overrides=overrides, updates=given.updates
            )
            rows = model.rows_of(test)
            said = [one.text or "" for one in model.predict([row["source"] for row in rows], beam=1)]
            lengths = np.array([len(row["source"].split()) for row in rows])
            points: tuple[list[float], list[float]] = ([], [])
            for low in edges:
                chosen = np.flatnonzero((lengths >= low) & (lengths < low + 5)).tolist()
                right = compute(
                    ["token_accuracy"],
                    [said[i] for i in chosen],
                    [[rows[i]["output"]] for i in chosen],
                    unit="symbol",
                )
                points[0].append(low + 2)
                points[1].append(100 * right["token_accuracy"])
            series[name] = points
            print(json.dumps({"model": name, "lengths": points[0], "token accuracy": np.round(points[1], 1).tolist()}))
    line_plot(
        series,
        xlabel="symbols to say",
        ylabel="symbols right (%)",
        title=f"{'Reversing' if given.reverse else 'Copying'} random symbols: what one vector can hold",
        ylim=(0, 102),
        path=given.picture,
    )


if __name__ == "__main__":
    main()
