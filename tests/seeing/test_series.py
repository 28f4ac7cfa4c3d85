"""Series drawn over time: lines, gaps, shades behind them, forecasts, time stamps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from seq2see.data.series_files import Series
from seq2see.looks import Looks
from seq2see.seeing import plot
from seq2see.seeing.overlays import overlays_of
from seq2see.seeing.panels import panels_of
from seq2see.seeing.series import SeriesOverlay


def looks(
    steps: int = 12,
    channels: int = 2,
    places: int = 6,
    outputs: tuple[str, ...] = ("tap",),
    *,
    names: tuple[str, ...] = (),
    stamp: str = "",
    forecast: Series | None = None,
) -> Looks:
    random = np.random.default_rng(1)
    values = random.normal(size=(steps, channels))
    values[2 : min(5, steps - 1) : 2, 0] = np.nan
    times = [f"{stamp}{day:02d} 00:00" for day in range(1, steps + 1)] if stamp else []
    series = Series(values, list(names), times)
    weights = random.dirichlet(np.ones(places), len(outputs)).astype(np.float32)
    made = Looks({"x": weights}, {"x": series.step_names[:: -(-steps // places)]}, list(outputs))
    made.layouts = {"x": {"kind": "frames", "shape": [places]}}
    made.pictures = {"x": lambda: series}
    if forecast is not None:
        made.pictures["output"] = lambda: forecast
    return made


def overlay_of(given: Looks) -> SeriesOverlay:
    (overlay,) = overlays_of(given, panels_of(given))
    assert isinstance(overlay, SeriesOverlay)
    return overlay


def input_axes(given: Looks) -> Axes:
    return next(axes for axes in plot(given).axes if axes.get_gid() == "series")


def named(axes: Axes, prefix: str) -> list[Any]:
    return [line for line in axes.lines if str(line.get_gid()).startswith(prefix)]


def test_every_channel_is_a_line_with_its_gaps() -> None:
    axes = input_axes(looks(names=("up", "down")))
    first, second = named(axes, "channel")
    assert (first.get_gid(), second.get_gid()) == ("channel up", "channel down")
    assert np.isnan(first.get_ydata()).sum() == 2
    assert not np.isnan(second.get_ydata()).any()
    assert [text.get_text() for text in axes.texts] == ["up", "down"]


def test_one_output_is_a_shade_behind_the_lines_and_several_are_strips() -> None:
    (shade,) = input_axes(looks()).collections
    assert shade.get_gid() == "shade x"
    assert not input_axes(looks(outputs=("a", "tap", "<eos>"))).collections


@pytest.mark.parametrize(("steps", "places", "last"), [(12, 6, 2), (12, 12, 1), (11, 6, 1), (13, 4, 1), (5, 2, 1)])
def test_places_cover_as_many_steps_each(steps: int, places: int, last: int) -> None:
    edges = overlay_of(looks(steps, places=places)).edges
    assert (len(edges), edges[0], edges[-1]) == (places + 1, 0, steps)
    assert edges[-1] - edges[-2] == (last if steps != 5 else 2)


def test_names_say_how_many_steps_a_place_has() -> None:
    given = looks(5, places=2)
    given.inputs["x"] = ["t=0", "t=4"]  # two halvings
    assert overlay_of(given).edges.tolist() == [0, 4, 5]


def test_a_forecast_goes_on_behind_what_was_read() -> None:
    given = looks(forecast=Series(np.ones((4, 1))))
    overlay = overlay_of(given)
    assert overlay.span(overlay.input) == (0, 16)
    assert overlay.edges[-1] == 12, "nothing is looked at there"
    axes = input_axes(given)
    (line,) = named(axes, "forecast")
    assert line.get_xdata().tolist() == [11.5, 12.5, 13.5, 14.5, 15.5]
    assert "forecast" in [text.get_text() for text in axes.texts]
    assert overlay.ticks()[1][-1] == "14"


def test_a_forecast_of_other_channels_has_lines_of_its_own() -> None:
    overlay = overlay_of(looks(names=("a", "b"), forecast=Series(np.ones((4, 2)), ["b", "c"])))
    assert overlay.input.bands == 4
    assert [overlay.input.name(band) for band in range(4)] == ["a", "b", "b", "c"]
    continued = overlay_of(looks(names=("a", "b"), forecast=Series(np.ones((4, 1)), ["b"])))
    assert continued.input.continued == (1,)


def test_time_stamps_are_written_where_they_fit() -> None:
    positions, names = overlay_of(looks(40, stamp="2021-01-", places=20)).ticks()
    assert names[0] == "2021-01-01 00:00"
    assert len(names) <= 6
    assert positions[0] == 0.5


@pytest.mark.parametrize("stamp", ["t=", "t=1", "x"])
def test_time_stamps_may_be_any_text(stamp: str) -> None:
    given = looks(stamp=stamp, forecast=Series(np.ones((4, 1))))
    names = overlay_of(given).ticks()[1]
    assert names[0] == f"{stamp}01 00:00"
    assert plot(given).axes


def test_equal_time_stamps_are_drawn() -> None:
    given = looks(places=6)
    series = Series(np.ones((12, 1)), times=["noon"] * 12)
    given.pictures, given.inputs = {"x": lambda: series}, {"x": ["noon"] * 6}
    assert overlay_of(given).edges.tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_steps_are_numbered_from_the_first_that_was_kept() -> None:
    series = Series(np.ones((4, 1)), first=100, stride=5)
    given = looks(4, places=2)
    given.pictures, given.inputs = {"x": lambda: series}, {"x": ["t=100", "t=110"]}
    overlay = overlay_of(given)
    assert overlay.ticks()[1] == ["100", "105", "110", "115"]
    assert overlay.edges.tolist() == [0, 2, 4]


@pytest.mark.filterwarnings("error")
def test_the_forecast_of_many_channels_is_drawn() -> None:
    values = np.arange(24.0).reshape(3, 8).repeat(2, axis=1)
    values[:, 5] = np.nan
    given = looks(3, channels=3, places=3)
    series = Series(values)
    given.pictures = {"x": lambda: series, "output": lambda: Series(np.full((2, 2), 99.0))}
    axes = input_axes(given)
    (image,) = axes.images
    shown = np.ma.filled(image.get_array(), np.nan)
    assert shown.shape == (16, 5)
    assert shown[:2, 3:].tolist() == [[1, 1], [1, 1]], "higher than all that was read"
    assert np.isnan(shown[2:, 3:]).all()
    assert np.isnan(shown[5]).all()
    assert image.get_extent() == [0, 5, 16, 0]
    assert "forecast" in [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("channels", [1, 7, 30])
@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_any_number_of_channels_is_drawn_in_every_format(tmp_path: Path, channels: int, suffix: str) -> None:
    path = looks(channels=channels).save(tmp_path / f"look.{suffix}")
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("values", [np.ones((1, 1)), np.full((3, 2), 7.0), np.array([[np.nan, 1.0], [np.nan, 2.0]])])
def test_flat_short_and_missing_channels_are_drawn(values: np.ndarray) -> None:
    given = looks(len(values), places=len(values)) if len(values) > 4 else looks()
    given.pictures = {"x": lambda: Series(values)}
    given.maps = {"x": np.full((1, len(values)), 1 / len(values), np.float32)}
    given.inputs = {"x": [f"t={step}" for step in range(len(values))]}
    assert plot(given).axes
