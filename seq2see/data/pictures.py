"""Pictures as files: opened with care, brought to one size, changed at random while a model learns."""

from __future__ import annotations

import base64
import math
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter, ImageOps, UnidentifiedImageError

from seq2see.errors import UserError
from seq2see.recipe.media_settings import MOST_PIXELS, AugmentSettings, ImageInput

Pixels = NDArray[np.uint8]

Image.MAX_IMAGE_PIXELS = None  # sizes are looked at before anything is decoded, by a rule of our own

FAULTS = (OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError, ArithmeticError, struct.error)
"""What Pillow raises of files whose bytes are wrong."""


class MediaError(UserError):
    """A file that cannot be used, and why: the message says it without the file's name."""


def read_picture(path: str | Path, settings: ImageInput, random: np.random.Generator | None = None) -> Pixels:
    """One picture as (channels, height, width), from 0 to 255; `random`: changed as `augment` says.

    Turned as its EXIF data say, transparent parts on white.
    """
    picture = _decoded(path, settings)
    if random is not None:
        picture = augmented(picture, settings.augment, random)
    pixels = np.asarray(_sized(picture, settings))
    if random is not None and settings.augment.noise:
        noisy = pixels + random.normal(0, settings.augment.noise, pixels.shape)
        pixels = noisy.clip(0, 255).astype(np.uint8)
    if random is not None and settings.augment.mask:
        kept = random.random(pixels.shape[:2]) >= settings.augment.mask
        pixels = pixels * (kept if pixels.ndim == 2 else kept[..., None]).astype(np.uint8)
    return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def problem_of(path: str | Path, settings: ImageInput) -> str | None:
    """Why a picture cannot be used; None where it can. It is read to its end, so that nothing comes up later."""
    try:
        _decoded(path, settings)
    except MediaError as error:
        return str(error)
    return None


def size_of(path: str | Path, settings: ImageInput) -> tuple[int, int]:
    """(height, width) of a picture as a model reads it; only the file's head is read."""
    if settings.width:
        return settings.height, settings.width
    with _opened(path, settings) as picture:
        width, height = picture.size
        try:
            with _quiet():
                aside = picture.getexif().get(0x0112) in range(5, 9)
        except FAULTS as error:
            raise MediaError(f"damaged or cut short: {error}") from None
    if aside:
        width, height = height, width
    return settings.height, _natural_width(height, width, settings)


def augmented(picture: Image.Image, settings: AugmentSettings, random: np.random.Generator) -> Image.Image:
    """The picture changed at random."""
    if settings.flip and random.random() < 0.5:
        picture = ImageOps.mirror(picture)
    if settings.rotate:
        angle = random.uniform(-settings.rotate, settings.rotate)
        picture = picture.rotate(angle, Image.Resampling.BILINEAR, fillcolor=_paper(picture))
    if settings.shear:
        picture = _slanted(picture, random.uniform(-settings.shear, settings.shear))
    if settings.stretch:
        width = round(picture.width * random.uniform(1 - settings.stretch, 1 + settings.stretch))
        picture = picture.resize((max(width, 1), picture.height), Image.Resampling.BILINEAR)
    if settings.blur:
        picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0, settings.blur)))
    if settings.crop:
        left, top, right, bottom = random.uniform(0, settings.crop, 4)
        width, height = picture.size
        box = (int(left * width / 2), int(top * height / 2), width - int(right * width / 2), height)
        picture = picture.crop((*box[:3], height - int(bottom * height / 2)))
    if settings.light:
        low, high = 1 - settings.light, 1 + settings.light
        picture = ImageEnhance.Brightness(picture).enhance(random.uniform(low, high))
        picture = ImageEnhance.Contrast(picture).enhance(random.uniform(low, high))
    return picture


def _slanted(picture: Image.Image, degrees: float) -> Image.Image:
    """Its top moved to the right of its bottom, on paper that is wide enough for both."""
    shift = math.tan(math.radians(degrees))
    wider = math.ceil(abs(shift) * picture.height)
    matrix = (1, shift, -wider if shift > 0 else 0, 0, 1, 0)
    size = (picture.width + wider, picture.height)
    how = Image.Resampling.BILINEAR
    return picture.transform(size, Image.Transform.AFFINE, matrix, how, fillcolor=_paper(picture))


@contextmanager
def _quiet() -> Iterator[None]:
    """Pillow's warnings are of files that can be read all the same, or precede what is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _opened(path: str | Path, settings: ImageInput) -> Image.Image:
    try:
        with _quiet():
            picture = Image.open(path)
    except FileNotFoundError:
        raise MediaError("no such file") from None
    except IsADirectoryError:
        raise MediaError("a folder, not a picture") from None
    except UnidentifiedImageError:
        raise MediaError("not a picture that Pillow can read") from None
    except (*FAULTS, Image.DecompressionBombError) as error:
        raise MediaError(f"cannot be read as a picture: {error}") from None
    wrong = _unusable(picture, settings)
    if wrong is not None:
        picture.close()
        raise MediaError(wrong)
    return picture


def _unusable(picture: Image.Image, settings: ImageInput) -> str | None:
    """Why an open file is not decoded. Of the pictures in a phone's MPO file, a JPEG with others behind it that were
    made of it or with it, the first is the one that was taken."""
    width, height = picture.size
    if max(width, height) > settings.largest:
        return f"{width:,} x {height:,} pixels; allowed: at most {settings.largest:,} on a side (`largest`)"
    if width * height > MOST_PIXELS:
        return f"{width:,} x {height:,} pixels; allowed: at most {MOST_PIXELS:,} in all"
    try:
        with _quiet():
            frames = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
    except FAULTS as error:
        return f"damaged or cut short: {error}"
    return f"an animation of {frames} frames, not one picture" if frames > 1 else None


def _decoded(path: str | Path, settings: ImageInput) -> Image.Image:
    with _opened(path, settings) as opened:
        picture: Image.Image = opened
        if not settings.augment.crop and settings.width:  # JPEG can be decoded at a half or a quarter, in less time
            opened.draft(None, (2 * settings.width, 2 * settings.height))
        try:
            picture = ImageOps.exif_transpose(opened)
            return _coloured(picture, settings.colour)
        except FAULTS as error:
            raise MediaError(f"damaged or cut short: {error}") from None


def _coloured(picture: Image.Image, colour: str) -> Image.Image:
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        picture = Image.new("RGB", picture.size, "white")
        picture.paste(layer, mask=layer.getchannel("A"))
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        values = np.asarray(picture, dtype=np.float32)
        top = 65535 if picture.mode.startswith("I") else max(float(values.max(initial=0)), 1.0)
        picture = Image.fromarray((values / top * 255).clip(0, 255).astype(np.uint8))
    return picture.convert("RGB" if colour == "rgb" else "L")


def _sized(picture: Image.Image, settings: ImageInput) -> Image.Image:
    if not settings.width:
        width = _natural_width(picture.height, picture.width, settings)
        return picture.resize((width, settings.height), Image.Resampling.BILINEAR)
    return fitted(picture, settings.height, settings.width, settings.fit)


def fitted(picture: Image.Image, height: int, width: int, fit: str) -> Image.Image:
    """A picture of that size: its middle (crop), all of it out of shape (stretch), or with edges (pad)."""
    how, size = Image.Resampling.BILINEAR, (width, height)
    if picture.size == size:
        return picture
    if fit == "stretch":
        return picture.resize(size, how)
    if fit == "crop":
        return ImageOps.fit(picture, size, how)
    return ImageOps.pad(picture, size, how, color=_paper(picture))


def _natural_width(height: int, width: int, settings: ImageInput) -> int:
    natural = max(round(width * settings.height / max(height, 1)), 1)
    return min(natural, settings.widest) if settings.widest else natural


def _paper(picture: Image.Image) -> tuple[int, ...] | int:
    return (255, 255, 255) if picture.mode == "RGB" else 255


def data_url(pixels: Pixels) -> str:
    """A picture (height, width), or (height, width, channels), as a PNG that a page can show without a request."""
    flat = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(flat)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
