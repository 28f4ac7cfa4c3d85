"""How good a model is: metrics by name, trivial models beside them, and where quality is lost."""

from __future__ import annotations

from seq2see.evaluation.base import METRICS, Rows, symbols
from seq2see.evaluation.baselines import BASELINES, BagOfWords, Baseline, Mean, Unigram, beside, default_baseline
from seq2see.evaluation.baselines import from_dict as baseline_from_dict
from seq2see.evaluation.bootstrap import Comparison, Interval, mean_interval, metric_interval, paired_bootstrap
from seq2see.evaluation.by_length import LengthBin, PositionBin, quality_by_length, recall_by_position
from seq2see.evaluation.labels import perplexity
from seq2see.evaluation.metrics import check, compute, default_metrics, higher_is_better, lookup, measure
from seq2see.evaluation.report import Report, evaluate

__all__ = [
    "BASELINES",
    "METRICS",
    "BagOfWords",
    "Baseline",
    "Comparison",
    "Interval",
    "LengthBin",
    "Mean",
    "PositionBin",
    "Report",
    "Rows",
    "Unigram",
    "baseline_from_dict",
    "beside",
    "check",
    "compute",
    "default_baseline",
    "default_metrics",
    "evaluate",
    "higher_is_better",
    "lookup",
    "mean_interval",
    "measure",
    "metric_interval",
    "paired_bootstrap",
    "perplexity",
    "quality_by_length",
    "recall_by_position",
    "symbols",
]
