"""Attention over series: channels as lines over time, shaded where they were looked at, and a forecast behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float

from seq2see.looks import Looks
from seq2see.seeing.overlays import INPUT_HEIGHT, TimeOverlay
from seq2see.seeing.panels import Panel
from seq2see.seeing.sheet import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from seq2see.data.series_files import Series

OUTPUT = "output"
"""The name under which looks have what the model gave."""

MOST_LINES = 12
"""Channels that are drawn as lines; more are drawn as rows of colour."""
BAND, TALLEST = 0.56, 5.0  # inches of a channel, and of all
MARGIN = 0.12
"""Share of a band that is left free above and below a line."""
SHADE = 0.5
"""Opacity of the colour behind lines: they have to be seen on the strongest."""
TICKS, CHARACTERS = 8, 110
"""Names along the time axis, and characters that fit there."""


@dataclass(frozen=True)
class Plot:
    """What is drawn: a series, and the forecast where there is one, with its place among the channels."""

    series: Series
    forecast: Series | None = None
    continued: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        return len(self.series) + (0 if self.forecast is None else len(self.forecast))

    @property
    def bands(self) -> int:
        """Channels, those of a forecast counted that continue none."""
        return max([self.series.channels - 1, *self.continued]) + 1

    def name(self, band: int) -> str:
        """The name of a channel; nothing where it has none."""
        names = self.series.names
        if band < self.series.channels:
            return names[band] if names else ""
        assert self.forecast is not None
        own = self.forecast.names
        return own[band - self.series.channels] if own else "output"

    def future(self, band: int) -> Float[np.ndarray, " steps"] | None:
        """What is forecast of a channel."""
        if self.forecast is None or band not in self.continued:
            return None
        return np.asarray(self.forecast.values[:, self.continued.index(band)])

    def past(self, band: int) -> Float[np.ndarray, " steps"]:
        if band < self.series.channels:
            return np.asarray(self.series.values[:, band])
        return np.full(len(self.series), np.nan)


class SeriesOverlay(TimeOverlay):
    """Each channel as a line in a band of its own scale; gaps are dotted, a forecast is drawn after what was read."""

    input: Plot
    description: ClassVar[str] = "channels over time with the weights"
    axis: ClassVar[str] = "step"

    @classmethod
    def of(
        cls, drawable: Series, looks: Looks, group: list[Panel], *, separate_heads: bool = False, scale: str = "auto"
    ) -> list[Self]:
        plot, forecast = Plot(drawable), looks.drawable(OUTPUT)
        if forecast is not None and isinstance(forecast, type(drawable)):
            places = drawable.continued_by(forecast.names, forecast.channels)
            if places is None:  # channels of its own, below those of the input
                places = [drawable.channels + number for number in range(forecast.channels)]
            plot = Plot(drawable, forecast, tuple(places))
        return super().of(plot, looks, group, separate_heads=separate_heads, scale=scale)

    @classmethod
    def span(cls, drawable: Plot) -> tuple[float, float]:
        return 0.0, float(drawable.steps)

    @classmethod
    def place_edges(cls, drawable: Plot, names: Sequence[str]) -> Float[np.ndarray, " edges"]:
        """Places are stretches of as many steps; the last may be shorter. The name of the second place tells how many
        where their number alone does not."""
        steps, times, count = len(drawable.series), drawable.series.step_names, len(names)
        possible = range(-(-steps // count), (steps - 1) // (count - 1) + 1) if count > 1 else range(steps, steps + 1)
        if not possible:
            return np.linspace(0, steps, count + 1)
        every = next((every for every in possible if every < steps and times[every] == names[1]), possible[0])
        return np.asarray(np.minimum(np.arange(count + 1.0) * every, steps))

    @property
    def input_height(self) -> float:
        return float(np.clip(BAND * self.input.bands, INPUT_HEIGHT, TALLEST))

    def ticks(self) -> tuple[Sequence[float], Sequence[str]]:
        """Time stamps or numbers of steps, in their middle. A forecast has no time stamps."""
        plot = self.input
        widest = max(len(self._time(0)), len(self._time(len(plot.series) - 1)))
        every = _round_step(plot.steps / np.clip(CHARACTERS // (widest + 3), 1, TICKS))
        places = range(0, len(plot.series) if plot.series.times else plot.steps, every)
        return [place + 0.5 for place in places], [self._time(place) for place in places]

    def _time(self, place: int) -> str:
        series = self.input.series
        return series.times[place] if series.times else str(series.first + place * series.stride)

    def draw_input(self, axes: Axes, style: Style) -> None:
        axes.set_gid("series")
        if self.input.bands > MOST_LINES:
            self._draw_colours(axes, style)
        else:
            self._draw_lines(axes, style)
        if self.input.forecast is not None:
            self._draw_end(axes, style)

    def _draw_lines(self, axes: Axes, style: Style) -> None:
        if len(self.outputs) == 1:
            self._draw_shade(axes, style)
        positions, names = list[float](), list[str]()
        for band in range(self.input.bands):
            marks = self._draw_line(axes, style, band)
            positions += [position for position, _ in marks]
            names += [f"{value:g}" for _, value in marks]
            if band:
                axes.axhline(band, color=style.theme.line, linewidth=0.6)
        axes.set_yticks(positions, names)
        axes.set_ylim(self.input.bands, 0)

    def _draw_shade(self, axes: Axes, style: Style) -> None:
        """The weights of the one output behind all lines, in the colours of its strip."""
        shade = axes.pcolormesh(
            self.edges,
            [0, self.input.bands],
            self.weights,
            cmap=style.theme.colormap(),
            vmin=0,
            vmax=self.top,
            alpha=SHADE,
            linewidth=0,
            zorder=0,
        )
        shade.set_gid(f"shade {self.name}")
        shade.set_rasterized(True)

    def _draw_line(self, axes: Axes, style: Style, band: int) -> list[tuple[float, float]]:
        """(position, value) of marks on the scale of a channel."""
        plot, theme = self.input, style.theme
        past, future = plot.past(band), plot.future(band)
        values = past if future is None else np.concatenate([past, future])
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)

        def place(numbers: Float[np.ndarray, " steps"]) -> Float[np.ndarray, " steps"]:
            return np.asarray(band + 1 - MARGIN - (1 - 2 * MARGIN) * (numbers - low) / (high - low))

        colour, time = theme.series[band % len(theme.series)], np.arange(len(values)) + 0.5
        here = np.isfinite(past)
        if here.any():
            across = np.interp(time[: len(past)], time[: len(past)][here], past[here])
            axes.plot(time[: len(past)], place(across), color=colour, linewidth=0.9, linestyle=":", alpha=0.8)
            (line,) = axes.plot(time[: len(past)], place(past), color=colour, linewidth=1.4, solid_joinstyle="round")
            line.set_gid(f"channel {plot.name(band) or band + 1}")
            alone = _alone(here)
            axes.plot(time[: len(past)][alone], place(past[alone]), ".", color=colour, markersize=2.5)
        if future is not None:
            start = len(past) - 1 if here[-1:].any() else len(past)
            (line,) = axes.plot(time[start:], place(values[start:]), color=colour, linewidth=2.2, alpha=0.75)
            line.set_gid(f"forecast {plot.name(band) or band + 1}")
        if plot.name(band):
            label = style.labeller.text(plot.name(band))
            behind = {"facecolor": theme.paper, "alpha": 0.7, "edgecolor": "none", "pad": 0.8}
            written: dict[str, Any] = {"color": colour, "va": "top", "zorder": 5, "bbox": behind} | label.style(
                8.5, bold=True
            )
            axes.text(plot.steps * 0.004, band + 0.05, label.text, **written)
        return [(float(place(np.array([mark]))[0]), mark) for mark in _marks(low, high)]

    def _draw_colours(self, axes: Axes, style: Style) -> None:
        """Many channels as rows of colour, each on its own scale."""
        plot = self.input
        values = np.full((plot.bands, plot.steps), np.nan)
        for band, row in enumerate(values):
            row[: len(plot.series)] = plot.past(band)
            if (future := plot.future(band)) is not None:
                row[len(plot.series) :] = future
        low = np.where(np.isnan(values), np.inf, values).min(1, keepdims=True)
        high = np.where(np.isnan(values), -np.inf, values).max(1, keepdims=True)
        with np.errstate(invalid="ignore"):
            shares = (values - low) / np.where(high > low, high - low, 1)
        extent = (0.0, float(plot.steps), float(plot.bands), 0.0)
        axes.imshow(shares, aspect="auto", extent=extent, cmap=style.theme.colormap(), interpolation="antialiased")
        rows = range(0, plot.bands, _round_step(plot.bands / TICKS))
        axes.set_yticks([row + 0.5 for row in rows], [plot.name(row) or str(row + 1) for row in rows])
        axes.set_ylim(plot.bands, 0)

    def _draw_end(self, axes: Axes, style: Style) -> None:
        """The border between what was read and what is forecast."""
        plot, muted = self.input, style.theme.muted
        end = len(plot.series)
        axes.axvline(end, color=muted, linewidth=0.9, linestyle=(0, (4, 2)))
        free = next((band for band in range(plot.bands) if band not in plot.continued), 0)
        axes.text(end + plot.steps * 0.006, free + 0.05, "forecast", color=muted, fontsize=7.5, va="top")


def _alone(known: Bool[np.ndarray, " steps"]) -> Bool[np.ndarray, " steps"]:
    """Which values have no neighbour, so that no line shows them."""
    before, after = np.append(False, known[:-1]), np.append(known[1:], False)
    return np.asarray(known & ~before & ~after)


def _marks(low: float, high: float) -> list[float]:
    """One or two round numbers between two numbers, for a narrow scale.

    >>> _marks(-0.43, 1.9), _marks(1001.2, 1027.0)
    ([0.0, 1.0], [1010.0, 1020.0])
    """
    step = 10.0 ** np.floor(np.log10(high - low))
    for share in (5, 2, 1, 0.5, 0.2, 0.1):
        first = np.ceil(low / (share * step))
        marks = [float(np.round(number * share * step, 12)) + 0.0 for number in np.arange(first, high / (share * step))]
        if len(marks) >= 2:
            return [marks[0], marks[-1]] if len(marks) > 2 else marks
    return [low, high]


def _round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, .. that is as large.

    >>> [_round_step(least) for least in (0.3, 3, 12)]
    [1, 5, 20]
    """
    power = int(10 ** np.floor(np.log10(max(least, 1))))
    return next(power * share for share in (1, 2, 5, 10) if power * share >= least)
