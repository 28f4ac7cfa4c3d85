"""The plot of a comparison."""

from __future__ import annotations

from pathlib import Path

from seq2see.evaluation import lookup
from seq2see.evaluation.ranking import Ranking
from seq2see.seeing import Column, Row, interval_plot


def draw(ranking: Ranking, *, title: str) -> list[Path]:
    """comparison.png and .svg in its folder: by variant the quality with its interval, and the time of an update."""
    quality, time = [], []
    for one in ranking.contenders:
        interval, best = one.interval(ranking.metric), one is ranking.best or one in ranking.tied
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        values = one.values(ranking.metric)
        points = tuple(values) if len(values) > 1 else ()
        quality.append(Row(one.name, one.mean(ranking.metric), low, high, points, strong=best))
        time.append(Row(one.name, 1000 * one.seconds_per_update, strong=best))
    columns = [
        Column(
            f"{ranking.metric} on dev, {ranking.direction} ({_what_is_drawn(ranking)})",
            quality,
            ranking.best.mean(ranking.metric),
            bounds=lookup(ranking.metric).bounds,
        ),
        Column("milliseconds per update", time, width=0.5, from_zero=True),
    ]
    paths = [Path(ranking.folder) / f"comparison.{suffix}" for suffix in ("png", "svg")]
    interval_plot(columns, title=f"{ranking.varied}: {title}", paths=paths)
    return paths


def _what_is_drawn(ranking: Ranking) -> str:
    """Seeds that are all equal lie under their mean, and there is no cross to explain."""
    if len(ranking.best.outcomes) == 1:
        return "one seed"
    apart = any(len(set(one.values(ranking.metric))) > 1 for one in ranking.contenders)
    return f"mean and 95 % interval over seeds{', x: one seed' if apart else ', which are all alike'}"
