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
    stamps: bool = False,
    forecast: Series | None = None,
) -> Looks:
    random = np.random.default_rng(1)
    values = random.normal(size=(steps, channels))
    values[2, 0] = values[4, 0] = np.nan
    times = [f"2021-01-{day:02d} 00:00" if stamps else f"t={day - 1}" for day in range(1, steps + 1)]
    weights = random.dirichlet(np.ones(places), len(outputs)).astype(np.float32)
    made = Looks({"x": weights}, {"x": times[:: -(-steps // places)]}, list(outputs))
    made.layouts = {"x": {"kind": "frames", "shape": [places]}}
    made.pictures = {"x": lambda: Series(values, list(names), times)}
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
    positions, names = overlay_of(looks(40, stamps=True, places=20)).ticks()
    assert names[0] == "2021-01-01 00:00"
    assert len(names) <= 6
    assert positions[0] == 0.5


@pytest.mark.parametrize("channels", [1, 7, 30])
@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_any_number_of_channels_is_drawn_in_every_format(tmp_path: Path, channels: int, suffix: str) -> None:
    path = looks(channels=channels).save(tmp_path / f"look.{suffix}")
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("values", [np.ones((1, 1)), np.full((3, 2), 7.0), np.array([[np.nan, 1.0], [np.nan, 2.0]])])
def test_flat_short_and_missing_channels_are_drawn(values: np.ndarray) -> None:
    given = looks(len(values), places=len(values)) if len(values) > 4 else looks()
    given.pictures = {"x": lambda: Series(values, [], [f"t={step}" for step in range(len(values))])}
    given.maps = {"x": np.full((1, len(values)), 1 / len(values), np.float32)}
    given.inputs = {"x": [f"t={step}" for step in range(len(values))]}
    assert plot(given).axes
