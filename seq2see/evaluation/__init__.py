"""Evaluation: metrics and baselines by name, bootstrap intervals, quality by input length, reports.

Metrics are registered in `METRICS`, baselines in `BASELINES`.
"""

from __future__ import annotations

from seq2see.evaluation import ngrams, strings  # noqa: F401 - they register metrics
from seq2see.evaluation.baselines import (
    BASELINES,
    BagOfWords,
    Baseline,
    Mean,
    TrainingRows,
    Unigram,
    baselines_for,
    default_baseline,
    measure_baselines,
    measure_further,
)
from seq2see.evaluation.baselines import from_dict as baseline_from_dict
from seq2see.evaluation.bootstrap import Comparison, Interval, mean_interval, metric_interval, paired_bootstrap
from seq2see.evaluation.by_length import LengthBin, PositionBin, quality_by_length, recall_by_position
from seq2see.evaluation.metrics import (
    METRICS,
    Metric,
    OutputType,
    Rows,
    check,
    compute,
    default_metrics,
    higher_is_better,
    list_names,
    lookup,
    measure,
    metrics_for,
    perplexity,
    registered_name,
    symbols,
)
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
    "Metric",
    "OutputType",
    "PositionBin",
    "Report",
    "Rows",
    "TrainingRows",
    "Unigram",
    "baseline_from_dict",
    "baselines_for",
    "check",
    "compute",
    "default_baseline",
    "default_metrics",
    "evaluate",
    "higher_is_better",
    "list_names",
    "lookup",
    "mean_interval",
    "measure",
    "measure_baselines",
    "measure_further",
    "metric_interval",
    "metrics_for",
    "paired_bootstrap",
    "perplexity",
    "quality_by_length",
    "recall_by_position",
    "registered_name",
    "symbols",
]
