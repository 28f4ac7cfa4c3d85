"""Quality against input length, with and without attention: two trained models on the same rows.

python benchmarks/studies/by_length.py WITH WITHOUT --data TABLE [--data TABLE] --metric bleu_lc --picture x.png
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

import seq2see
from seq2see.api import Model
from seq2see.evaluation import Rows, metric_interval, paired_bootstrap
from seq2see.evaluation.by_length import equal_count_edges, input_lengths
from seq2see.pipeline.evaluator import judge
from seq2see.pipeline.predictor import options_of
from seq2see.seeing import line_plot


def answered(model: Model, tables: list[Path], beam: int) -> Rows:
    rows = [row for table in tables for row in model.rows_of(table)]
    judged = judge(model.bundles, rows, options=options_of(model.recipe, beam=beam))
    main = next(iter(model.recipe.inputs))
    return Rows(
        [one.text or "" for one in judged.predictions],
        [question.references for question in judged.questions],
        inputs=[question.inputs[main] for question in judged.questions],
        unit="word",
    )


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
        name: answered(seq2see.load(folder), given.data, given.beam)
        for name, folder in zip(("with attention", "without attention"), given.models, strict=True)
    }
    first, second = both.values()
    lengths = np.array(input_lengths(first))
    edges = [0, *equal_count_edges(lengths.tolist(), given.bins), int(lengths.max()) + 1]
    series: dict[str, tuple[list[float], ...]] = {name: ([], [], [], []) for name in both}
    print(json.dumps({"all": paired_bootstrap(given.metric, first, second).to_dict()}))
    for low, high in itertools.pairwise(edges):
        chosen = np.flatnonzero((lengths >= low) & (lengths < high)).tolist()
        if not chosen:
            continue
        compared = paired_bootstrap(given.metric, first.select(chosen), second.select(chosen))
        words = f"{lengths[chosen].min()}-{lengths[chosen].max()}"
        print(json.dumps({"words": words, "rows": len(chosen), **compared.to_dict()}))
        for name, rows in both.items():
            interval = metric_interval(given.metric, rows.select(chosen))
            values = (float(lengths[chosen].mean()), interval.value, interval.low, interval.high)
            for line, value in zip(series[name], values, strict=True):
                line.append(value)
    line_plot(
        series,  # type: ignore[arg-type]
        xlabel="words in the source sentence",
        ylabel=given.metric.replace("_lc", " (lowercase)").replace("bleu", "BLEU"),
        title="One vector is not enough for a long sentence",
        path=given.picture,
    )


if __name__ == "__main__":
    main()
