"""Simulated series: tables that their recipes read, the same each time, with an event or a future to find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seq2see.data.series_files import parse_series
from seq2see.data.tables import read
from seq2see.recipe import load_recipe
from seq2see.samples import SAMPLES, series
from seq2see.training.dataset import wanted_columns


@pytest.mark.parametrize("name", ["motions", "tides"])
def test_a_sample_is_a_table_for_its_recipes(tmp_path: Path, name: str) -> None:
    rows = {"train": 30, "dev": 5} if name == "motions" else {"train": 400, "dev": 120}
    write = series.write_motions if name == "motions" else series.write_tides
    first, second = write(tmp_path / "a", rows), write(tmp_path / "b", rows)
    assert list(first) == ["train.tsv", "dev.tsv"]
    for part in first:
        assert (tmp_path / "a" / part).read_bytes() == (tmp_path / "b" / part).read_bytes()
        assert sum(1 for _ in read(tmp_path / "a" / part)) == first[part] == second[part]
        for recipe in SAMPLES[name].recipes:
            wanted = {column for _, column in wanted_columns(load_recipe(recipe))}
            assert wanted <= set(read(tmp_path / "a" / part).columns)


def test_the_number_of_rows_is_as_stated(tmp_path: Path) -> None:
    written = SAMPLES["tides"].write(tmp_path)
    assert f"{sum(written.values()):,}" in SAMPLES["tides"].about
    assert f"{sum(series.ROWS.values()):,}" in SAMPLES["motions"].about


@pytest.mark.parametrize("motion", series.MOTIONS)
def test_something_happens_where_it_is_said(motion: str) -> None:
    random = np.random.default_rng(1)
    inside, outside = [], []
    for _ in range(20):
        values, at = series.move(motion, random)
        change = np.abs(np.diff(values, axis=0)).sum(1)
        during = (np.arange(len(change)) >= at - 1) & (np.arange(len(change)) < at + series.EVENTS[motion])
        inside.append(change[during].max())
        outside.append(np.quantile(change[~during], 0.9))
    factor = 1 if motion == "turn" else 2
    assert np.mean(inside) > factor * np.mean(outside)


def test_the_future_follows_the_history() -> None:
    record = series.simulate_coast(500, np.random.default_rng(0))
    assert record.shape == (500, 3)
    level, wind, pressure = record.T
    assert 950 < pressure.min() < pressure.max() < 1080
    assert 1 < level.std() < 3
    assert 2 < wind.std() < 15


def test_some_values_are_missing(tmp_path: Path) -> None:
    series.write_motions(tmp_path, {"train": 20})
    values = [parse_series(row.values["series"]) for row in read(tmp_path / "train.tsv")]
    assert any(np.isnan(each).any() for each in values)
    assert not any(np.isnan(each).all() for each in values)
