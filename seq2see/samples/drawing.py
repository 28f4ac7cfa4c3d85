"""Coloured shapes drawn as pictures and videos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import ImageDraw

from seq2see.errors import imported

# ---------------- Coloured shapes, drawn here

COLOURS = {"red": (205, 30, 40), "green": (40, 185, 60), "blue": (40, 60, 215), "yellow": (245, 225, 50)}
"""As far apart in grey as in colour: some recipes read no more."""
SHAPES = ("square", "circle", "triangle")


def draw_shape(brush: ImageDraw.ImageDraw, shape: str, colour: str, *, left: float, top: float, side: float) -> None:
    """A shape that fills a square of that side."""
    if shape == "triangle":
        corners = [(left + side / 2, top), (left, top + side), (left + side, top + side)]
        brush.polygon(corners, fill=COLOURS[colour])
    else:
        outline = brush.rectangle if shape == "square" else brush.ellipse
        outline((left, top, left + side, top + side), fill=COLOURS[colour])


# ---------------- Frames written as a video file, by FFmpeg (extra `video`)

BITS = 1_000_000
"""Bits a second: more than small frames need, so that nothing is lost that a model should see."""


def write_film(
    path: Path,
    frames: UInt8[np.ndarray, "frames height width 3"],
    *,
    rate: int = 10,
    rotation: int = 0,
    codec: str = "mpeg4",
) -> Path:
    """rate: frames a second; rotation: degrees by which a player is told to turn them; the suffix names the format."""
    av = imported("av", extra="video")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt, stream.bit_rate = "yuv420p", BITS
        if rotation:
            stream.set_display_rotation(rotation)
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path
