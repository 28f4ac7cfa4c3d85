"""Coloured shapes drawn here: images of two shapes with captions, and videos of one that moves."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from seq2see.data.tables import write as write_table
from seq2see.errors import imported
from seq2see.samples import Written

COLOURS = {"red": (205, 30, 40), "green": (40, 185, 60), "blue": (40, 60, 215), "yellow": (245, 225, 50)}
"""As distinct in grey as in colour, because some recipes read grey images."""
SHAPES = ("square", "circle", "triangle")


def draw_shape(brush: ImageDraw.ImageDraw, shape: str, colour: str, *, left: float, top: float, side: float) -> None:
    """Draw a shape that fills a square of that side."""
    if shape == "triangle":
        corners = [(left + side / 2, top), (left, top + side), (left + side, top + side)]
        brush.polygon(corners, fill=COLOURS[colour])
    else:
        outline = brush.rectangle if shape == "square" else brush.ellipse
        outline((left, top, left + side, top + side), fill=COLOURS[colour])


# ---------------- Images of two shapes

IMAGES = {"train": 3000, "dev": 300}
IMAGE_SIDE = 96  # pixels
SIZES = {"large": (36, 44), "small": (16, 24)}
"""Range of a shape's side in pixels."""
IMAGE_SCALE = 2
"""Images are drawn larger by this factor and reduced, so that edges are smooth."""


def write_images(folder: Path, images: Mapping[str, int] = IMAGES) -> Written:
    """Images with captions such as `a large red square and a small blue circle`; images: number in each part.

    Only the image determines the words, and each word is about one region of it.
    """
    written = {}
    for part, number in images.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        draw, rows = random.Random(part), list[Mapping[str, str]]()
        for count in range(number):
            path = f"{part}/{count}.png"
            image, caption = draw_image(draw)
            image.save(folder / path)
            rows.append({"image": path, "caption": caption})
        write_table(folder / f"{part}.tsv", rows, ("image", "caption"))
        written[f"{part}.tsv"] = number
    return written


def draw_image(draw: random.Random) -> tuple[Image.Image, str]:
    """(image, caption); one shape lies in each half, left and right or top and bottom."""
    across, starts = draw.random() < 0.5, [0, IMAGE_SIDE // 2]
    draw.shuffle(starts)
    ground = tuple(draw.randint(215, 250) for _ in range(3))
    image = Image.new("RGB", (IMAGE_SIDE * IMAGE_SCALE, IMAGE_SIDE * IMAGE_SCALE), ground)
    brush, parts = ImageDraw.Draw(image), list[str]()
    for start, (size, pixels) in zip(starts, SIZES.items(), strict=True):
        side = draw.randint(*pixels)
        near, far = start + draw.randint(1, IMAGE_SIDE // 2 - side - 1), draw.randint(2, IMAGE_SIDE - side - 2)
        left, top = (near, far) if across else (far, near)
        colour, shape = draw.choice(list(COLOURS)), draw.choice(SHAPES)
        scaled = {"left": left * IMAGE_SCALE, "top": top * IMAGE_SCALE, "side": side * IMAGE_SCALE}
        draw_shape(brush, shape, colour, **scaled)
        parts.append(f"a {size} {colour} {shape}")
    return image.reduce(IMAGE_SCALE), " and ".join(parts)


# ---------------- Videos of a moving shape

DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
VIDEOS = {"train": 1000, "dev": 200}
FRAMES, RATE = 16, 10
VIDEO_SIDE, SHAPE_SIDE, DISTANCE = 64, 16, 28
"""Pixels of a frame, of a shape, and of its path."""
SLOWING = 0.85
"""Speed that is left after each frame."""
VIDEO_SCALE = 4
"""Frames are drawn larger by this factor and reduced, so that shapes can move by parts of a pixel."""
BIT_RATE = 1_000_000
"""Bits per second: more than small frames need, so that compression hides nothing."""


def write_videos(folder: Path, videos: Mapping[str, int] = VIDEOS) -> Written:
    """Videos of a shape that slides and slows down, with a caption and its direction as label; videos: number in each
    part. Because every shape slows down, each video also has a direction in time.
    """
    imported("av", extra="video")
    written = {}
    for part, number in videos.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        draw, rows = random.Random(part), list[Mapping[str, str]]()
        for count in range(number):
            colour, shape, direction = draw.choice(list(COLOURS)), draw.choice(SHAPES), draw.choice(list(DIRECTIONS))
            path = f"{part}/{count}.mp4"
            write_video(folder / path, draw_frames(colour, shape, direction, draw), rate=RATE)
            rows.append({"video": path, "text": f"a {colour} {shape} moves {direction}", "label": direction})
        write_table(folder / f"{part}.tsv", rows, ("video", "text", "label"))
        written[f"{part}.tsv"] = number
    return written


def draw_frames(
    colour: str, shape: str, direction: str, draw: random.Random
) -> UInt8[np.ndarray, "frames height width 3"]:
    """The frames of one video. The shape may start anywhere from where it stays inside, so that its position says
    little about its direction."""
    right, down = DIRECTIONS[direction]
    left, top = (draw.uniform(*_start(step)) for step in (right, down))
    ground = (draw.randrange(30),) * 3
    path = (1 - SLOWING ** np.arange(FRAMES)) / (1 - SLOWING ** (FRAMES - 1)) * DISTANCE
    return np.stack([_frame(colour, shape, left + right * far, top + down * far, ground) for far in path.tolist()])


def _start(step: int) -> tuple[int, int]:
    """Range of the start on one axis, for a shape that moves backwards (-1), not (0) or forwards (1)."""
    last = VIDEO_SIDE - SHAPE_SIDE
    return (DISTANCE if step < 0 else 0), (last - DISTANCE if step > 0 else last)


def _frame(
    colour: str, shape: str, left: float, top: float, ground: tuple[int, int, int]
) -> UInt8[np.ndarray, "height width 3"]:
    image = Image.new("RGB", (VIDEO_SIDE * VIDEO_SCALE, VIDEO_SIDE * VIDEO_SCALE), ground)
    side = SHAPE_SIDE * VIDEO_SCALE
    draw_shape(ImageDraw.Draw(image), shape, colour, left=left * VIDEO_SCALE, top=top * VIDEO_SCALE, side=side)
    return np.asarray(image.reduce(VIDEO_SCALE))


def write_video(
    path: Path,
    frames: UInt8[np.ndarray, "frames height width 3"],
    *,
    rate: int = 10,
    rotation: int = 0,
    codec: str = "mpeg4",
) -> Path:
    """Write frames as a video file with FFmpeg (extra `video`); the suffix names the format.

    rate: frames per second; rotation: degrees by which players should rotate the video.
    """
    av = imported("av", extra="video")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt, stream.bit_rate = "yuv420p", BIT_RATE
        if rotation:
            stream.set_display_rotation(rotation)
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path
