"""Frames written as a video file, by FFmpeg (extra `video`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from seq2see.errors import imported

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
