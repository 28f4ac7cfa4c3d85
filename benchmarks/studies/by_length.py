"""Quality against input length, with and without attention: two trained models on the same rows, of several tables.

python benchmarks/studies/by_length.py WITH WITHOUT --data TABLE [--data TABLE] --metric bleu_lc --picture x.png
(`seq2see figure lengths` draws the same of one table and of any number of models.)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import seq2see
from seq2see.cli.figure.lengths import chart_of
from seq2see.evaluation import Rows, paired_bootstrap
from seq2see.evaluation.by_length import length_curves
from seq2see.pipeline.evaluator import predict_rows


def rows_of(folder: Path, tables: list[Path], *, metric: str, beam: int) -> Rows:
    model = seq2see.load(folder)
    rows = [row for table in tables for row in model.rows_of(table)]
    return predict_rows(model.bundles, rows, metric=metric, beam=beam)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs=2, type=Path, metavar="MODEL", help="with attention, without attention")
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--metric", default="bleu_lc")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--bins", type=int, default=6)
    parser.add_argument("--picture", type=Path, required=True)
    given = parser.parse_args()
    both = {
        name: rows_of(folder, given.data, metric=given.metric, beam=given.beam)
        for name, folder in zip(("with attention", "without attention"), given.models, strict=True)
    }
    print(json.dumps({"all": paired_bootstrap(given.metric, *both.values()).to_dict()}))
    points = length_curves(given.metric, both, bins=given.bins)
    for point in points:
        print(json.dumps(point.to_dict()))
    title = "One vector is not enough for a long sentence"
    chart_of(points, metric=given.metric, unit="word", title=title).save(given.picture)


if __name__ == "__main__":
    main()
