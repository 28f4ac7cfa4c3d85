"""Attention over sounds: a spectrogram above a strip of weights for each output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seq2see.seeing.overlays import AXIS_SIZE, TimeOverlay
from seq2see.seeing.sheet import Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from seq2see.modalities.sound import Spectrogram


class SoundOverlay(TimeOverlay):
    """A spectrogram, low frequencies at the bottom."""

    input: Spectrogram
    description: ClassVar[str] = "spectrogram with the weights over time"

    @classmethod
    def span(cls, drawable: Spectrogram) -> tuple[float, float]:
        return 0.0, drawable.seconds

    def draw_input(self, axes: Axes, style: Style) -> None:
        sound, theme = self.input, style.theme
        energies = np.asarray(sound.energies, dtype=np.float64)
        low, high = np.quantile(energies, 0.05), float(energies.max())
        extent = (0.0, sound.seconds, 0.0, float(energies.shape[1]))
        colours: dict[str, Any] = {"cmap": theme.colormap(), "vmin": low, "vmax": max(high, low + 1e-6)}
        axes.imshow(energies.T, origin="lower", aspect="auto", extent=extent, interpolation="antialiased", **colours)
        axes.set_gid("spectrogram")
        positions, names = sound.ticks()
        axes.set_yticks(positions, names)
        axes.set_ylabel("kHz", color=theme.muted, fontsize=AXIS_SIZE, labelpad=2)
