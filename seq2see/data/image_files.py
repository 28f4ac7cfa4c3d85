"""Image files: opened safely, resized, augmented at random. Nothing here needs torch."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter, ImageOps, UnidentifiedImageError
from pydantic import Field

from seq2see.data.line_normalisation import measure_line, normalise_line
from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.registry import Problem
from seq2see.settings.base import MOST_SIDE, Amount, Count, Positive, Settings, Share, Side, no_effect

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

MAX_PIXELS = 65_000_000
"""Pixels of an image, as many as phone cameras take. A single-coloured image four times as large is a file of
kilobytes that takes gigabytes to decode."""


class AugmentSettings(Settings):
    """Random augmentation of images during training."""

    flip: bool = Field(
        False, description="mirror half of the images (not if they contain text or if left and right matter)"
    )
    crop: Share = Field(0.0, description="maximum share cut off each side at random")
    rotate: Annotated[float, Field(ge=0, le=45)] = Field(0.0, description="maximum rotation in degrees")
    shear: Annotated[float, Field(ge=0, le=45)] = Field(0.0, description="maximum slant to either side in degrees")
    stretch: Annotated[float, Field(ge=0, le=0.9)] = Field(0.0, description="maximum relative change of the width")
    blur: Amount = Field(0.0, description="maximum blur radius in pixels of the file")
    light: Share = Field(0.0, description="maximum relative change of brightness and contrast")
    elastic: Annotated[float, Field(ge=0, le=100)] = Field(
        0.0, description="elastic distortion: standard deviation of the shift of a point, in pixels of the input"
    )
    elastic_width: Annotated[float, Field(ge=1, le=1000)] = Field(
        6.0, description="elastic: standard deviation of the Gaussian that makes neighbours move alike, in pixels"
    )
    thickness: Annotated[float, Field(ge=0, le=10)] = Field(
        0.0, description="maximum growth of dark or of light areas to each side, in pixels of the input"
    )
    noise: Amount = Field(0.0, description="standard deviation of noise on every pixel (of 255)")
    mask: Share = Field(0.0, description="share of random pixels set to black")


class ImageInput(MediaSettings):
    """An image input: PNG, JPEG, WebP, GIF, BMP or TIFF files, whatever their names."""

    usual_encoder: ClassVar[str] = "convolutional"
    content: ClassVar[str] = "image"
    noun: ClassVar[str] = "an image"
    media: ClassVar[str] = "image/*"
    kind: Literal["image"] = Field("image", description="kind of the input")
    height: Side = Field(224, description="height in pixels that images are resized to")
    width: Annotated[int, Field(ge=0, le=MOST_SIDE)] = Field(
        224, description="width in pixels that images are resized to; 0: keep the aspect ratio (lines of text)"
    )
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="how to fit another aspect ratio: crop to the middle, stretch, or pad"
    )
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels or one")
    normalise: Literal["none", "line"] = Field(
        "none", description="line: level the baseline, scale letters to one size, ink black on white (lines of text)"
    )
    largest: Positive = Field(12_000, description=f"maximum side of a file in pixels; {MAX_PIXELS:,} in total")
    widest: Count = Field(
        0, description="with width 0: maximum width in pixels, wider images are squeezed; 0: no limit"
    )
    direction: Literal["left-to-right", "right-to-left", "auto"] = Field(
        "left-to-right",
        description="which column of places is the first; auto: the direction of the training texts",
    )
    augment: AugmentSettings = AugmentSettings()

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1

    @property
    def size_text(self) -> str:
        """Height and width for messages; the height alone where widths differ."""
        return f"{self.height} x {self.width}" if self.width else f"{self.height}"

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """Settings of the shape of images that do nothing."""
        name = path.removeprefix("inputs.")
        if not self.augment.elastic:
            yield from no_effect(self.augment, f"{path}.augment", ["elastic_width"], "augment.elastic is 0")
        if recipe.encoder_of(name).layout == "vector":
            reason = f"encoder {recipe.encoder_of(name).kind} makes one place of a picture"
            yield from no_effect(self, path, ["direction"], reason)
        if self.direction == "auto" and recipe.output.numeric:
            yield from no_effect(self, path, ["direction"], f"{recipe.output.noun} has no letters to tell it by")
        if self.normalise == "line" and (self.width or self.colour != "grey"):
            message = f"only with width 0 and colour grey; given: width {self.width} and colour {self.colour}"
            yield Problem(f"{path}.normalise", message, "line-image")
        if not self.width:
            yield from no_effect(self, path, ["fit"], "with width 0 a picture keeps its proportions")
        else:
            yield from no_effect(self, path, ["widest"], f"every picture is {self.width} pixels wide")
            if self.fit == "stretch":
                reason = f"every picture is resized to {self.width} pixels again"
                yield from no_effect(self.augment, f"{path}.augment", ["stretch"], reason)

    def decode(self, path: str) -> list[NDArray[Any]]:
        return [read_image(path, self)]

    def decode_with_preview(self, path: str, preview: Self) -> list[NDArray[Any]]:
        """The image in two sizes. A large JPEG is decoded at a fraction of its size (`_decode`), as the model needs it;
        a larger preview is then enlarged from there."""
        with decoding():
            picture = _decode(path, self)
            return [_channels_first(_resize(picture, settings)) for settings in (self, preview)]


Pixels = NDArray[np.uint8]

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Supported formats, whatever the file name. Pillow reads many more: some start other programs (EPS), others are
rare and poorly maintained. A phone's MPO file is a JPEG."""

MOST_BYTES = 4 * MAX_PIXELS
"""Bytes of a decoded image: MAX_PIXELS of 8 bits in four channels."""

MAX_SIZED = 16_000_000
"""Pixels of an image of natural width at the input height."""


def read_image(path: str | Path, settings: ImageInput, random: np.random.Generator | None = None) -> Pixels:
    """One image as (channels, height, width), from 0 to 255; random: augment it.

    Rotated by its EXIF data, transparent parts on white.
    """
    with decoding():
        picture = _decode(path, settings)
        if random is not None:
            picture = augment(picture, settings.augment, random)
        pixels = np.asarray(_resize(picture, settings))
    if random is not None and settings.augment.elastic:
        pixels = distorted(pixels, settings.augment.elastic, settings.augment.elastic_width, random)
    if random is not None and settings.augment.thickness:
        pixels = thickened(pixels, random.uniform(-settings.augment.thickness, settings.augment.thickness))
    if random is not None and settings.augment.noise:
        noisy = pixels + random.normal(0, settings.augment.noise, pixels.shape)
        pixels = noisy.clip(0, 255).astype(np.uint8)
    if random is not None and settings.augment.mask:
        visible = random.random(pixels.shape[:2]) >= settings.augment.mask
        pixels = pixels * (visible if pixels.ndim == 2 else visible[..., None]).astype(np.uint8)
    return _channels_first(pixels)


def _channels_first(picture: Pixels | Image.Image) -> Pixels:
    """(height, width) or (height, width, channels) as (channels, height, width)."""
    pixels = np.asarray(picture)
    return np.ascontiguousarray(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def problem_of(path: str | Path, settings: ImageInput) -> str | None:
    """Why an image cannot be used, or None. It is decoded completely, so that nothing fails later."""
    try:
        picture = _decode_whole(path, settings)
        if settings.normalise == "line":
            _line_width(picture, settings)
        elif not settings.width:
            _natural_width(picture.height, picture.width, settings)
    except MediaError as error:
        return str(error)
    return None


def size_of(path: str | Path, settings: ImageInput) -> tuple[int, int]:
    """(height, width) of an image as a model reads it; only the header is read, but of a line to be normalised all."""
    if settings.width:
        return settings.height, settings.width
    if settings.normalise == "line":
        return settings.height, _line_width(_decode_whole(path, settings), settings)
    with _open(path, settings) as picture, decoding():
        width, height = picture.size
        rotated = picture.getexif().get(0x0112) in range(5, 9)
    if rotated:
        width, height = height, width
    return settings.height, _natural_width(height, width, settings)


def augment(picture: Image.Image, settings: AugmentSettings, random: np.random.Generator) -> Image.Image:
    """The image augmented at random."""
    if settings.flip and random.random() < 0.5:
        picture = ImageOps.mirror(picture)
    if settings.rotate:
        angle = random.uniform(-settings.rotate, settings.rotate)
        picture = picture.rotate(angle, Image.Resampling.BILINEAR, fillcolor=_background(picture))
    if settings.shear:
        picture = _shear(picture, random.uniform(-settings.shear, settings.shear))
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


def _shear(picture: Image.Image, degrees: float) -> Image.Image:
    """The image with its top shifted to the right, widened so that nothing is cut off."""
    shift = math.tan(math.radians(degrees))
    wider = math.ceil(abs(shift) * picture.height)
    matrix = (1, shift, -wider if shift > 0 else 0, 0, 1, 0)
    size = (picture.width + wider, picture.height)
    resampling = Image.Resampling.BILINEAR
    return picture.transform(size, Image.Transform.AFFINE, matrix, resampling, fillcolor=_background(picture))


def distorted(pixels: Pixels, amount: float, width: float, random: np.random.Generator) -> Pixels:
    """Elastic distortion (Simard et al. 2003) of an image (height, width[, channels]): points are shifted down and
    across at random, with a standard deviation of `amount` pixels, smoothed by a Gaussian of standard deviation
    `width`; what comes in is what stood at the edge."""
    high, wide = pixels.shape[:2]
    fields = [SmoothNoise(high, wide, width, random) for _ in range(2)]
    flat, made = pixels.reshape(high * wide, -1), np.empty(pixels.shape, dtype=np.uint8)
    most = max(AT_ONCE // wide, 1)  # a few rows at a time: large arrays cost more to get than to fill
    for start in range(0, high, most):
        rows = slice(start, min(start + most, high))
        down, across = (amount * field.rows(rows) for field in fields)
        down += np.arange(rows.start, rows.stop, dtype=np.float32)[:, None]
        across += np.arange(wide, dtype=np.float32)
        upper, share_down = _split(down, high)
        left, share_across = _split(across, wide)
        corner = upper * wide + left
        mean = np.zeros((*corner.shape, flat.shape[1]), dtype=np.float32)
        for below, weight_down in ((0, 1 - share_down), (wide, share_down)):
            for beside, weight_across in ((0, 1 - share_across), (1, share_across)):
                weight = weight_down * weight_across
                mean += weight[..., None] * flat.take(corner + (below + beside), axis=0, mode="clip")
        made[rows] = (mean + 0.5).astype(np.uint8).reshape(made[rows].shape)
    return made


AT_ONCE = 1 << 12
"""Pixels that are moved at once."""


def _split(places: NDArray[np.float32], number: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Places between 0 and number - 1 as whole numbers, and what they are above these; what lies outside is put at the
    edge."""
    np.clip(places, 0, number - 1, out=places)
    whole = places.astype(np.int32)
    places -= whole
    return whole, places


class SmoothNoise:
    """Normal numbers (high, wide) of deviation 1, alike where they are near each other.

    Noise on a grid whose points are `width` apart is smoothed by a Gaussian of that deviation: much less to add up than
    noise on all pixels.
    """

    def __init__(self, high: int, wide: int, width: float, random: np.random.Generator):
        points = [int(side / width) + REACH for side in (high, wide)]
        noise = random.standard_normal((points[1], points[0]), dtype=np.float32)
        self._first, self._weights = _bells(high, width)
        first, weights = _bells(wide, width)
        lines = weights[:, :1] * noise[first]
        for point in range(1, REACH):
            lines += weights[:, point, None] * noise[first + point]
        self._lines = lines.T

    def rows(self, rows: slice) -> NDArray[np.float32]:
        """Those of some of the rows."""
        first, weights = self._first[rows], self._weights[rows]
        lines = self._lines[first[0] : first[-1] + REACH]
        all_weights = np.zeros((len(first), len(lines)), dtype=np.float32)
        all_weights[np.arange(len(first))[:, None], (first - first[0])[:, None] + np.arange(REACH)] = weights
        return all_weights @ lines


REACH = 8
"""Points of a grid that count at each place, those that are up to four deviations away."""


def _bells(number: int, width: float) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Of each place the number of the first point that counts, and the weights of all that do, whose squares sum to
    1."""
    places = np.arange(number, dtype=np.float32) / np.float32(width)
    first = places.astype(np.int32)
    distance = (places - first)[:, None] - np.arange(-REACH // 2 + 1, REACH // 2 + 1, dtype=np.float32)
    weights = np.exp(-np.square(distance) / 2)
    weights /= np.sqrt(np.square(weights).sum(1, keepdims=True))
    return first, weights


def thickened(pixels: Pixels, amount: float) -> Pixels:
    """What is light grows by so many pixels to each side (dilation), or of a negative amount what is dark (erosion);
    a part of a pixel is the mean of the images before and behind it, weighed by that part."""
    grow = np.maximum if amount > 0 else np.minimum
    rest = abs(amount)
    while rest > 0:
        grown = pixels.copy()
        for axis in (0, 1):
            here, there = np.moveaxis(grown, axis, 0), np.moveaxis(pixels, axis, 0)
            grow(here[1:], there[:-1], out=here[1:])
            grow(here[:-1], there[1:], out=here[:-1])
        if rest < 1:
            grown = (pixels + rest * (grown.astype(np.float32) - pixels) + 0.5).astype(np.uint8)
        pixels, rest = grown, rest - 1
    return pixels


@contextmanager
def _open(path: str | Path, settings: ImageInput) -> Iterator[Image.Image]:
    """The open file, its format, size and frames checked before decoding."""
    file = check_file(path, "image")
    with decoding("cannot be read as a picture"):
        try:
            picture = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError:
            raise MediaError(f"not an image in a supported format; allowed: {', '.join(FORMATS)}") from None
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise MediaError(f"too many pixels; allowed: at most {MAX_PIXELS:,} in total") from None
    with picture, decoding():
        _check(picture, settings)
        yield picture


def _check(picture: Image.Image, settings: ImageInput) -> None:
    """Refuse a file that is too large or has several frames. An MPO file is a JPEG followed by derived images; its
    first image is used."""
    width, height = picture.size
    size, depth = f"{width:,} x {height:,} pixels", _depth(picture)
    if max(width, height) > settings.largest:
        raise MediaError(f"{size}; allowed: at most {settings.largest:,} on a side (`largest`)")
    if width * height > MAX_PIXELS:
        raise MediaError(f"{size}; allowed: at most {MAX_PIXELS:,} in total")
    if width * height * depth > MOST_BYTES:
        raise MediaError(f"{size} of {depth} bytes each; allowed: at most {MOST_BYTES:,} bytes in total")
    frames = 1 if picture.format == "MPO" else getattr(picture, "n_frames", 1)
    if frames > 1:
        raise MediaError(f"an animation of {frames} frames, not one picture")


def _depth(picture: Image.Image) -> int:
    """Bytes of each pixel, in the file or in memory, whichever is more: a 16-bit PNG has 8 once it is read."""
    tile = getattr(picture, "tile", None)
    stored = tile[0][3] if tile else ""
    mode = str(stored[0]) if isinstance(stored, tuple) and stored else str(stored)
    width = 2 if "16" in mode else 1
    return max(width * len(picture.getbands()), 1 if picture.mode in ("1", "L", "P") else 4)


def _decode(path: str | Path, settings: ImageInput) -> Image.Image:
    """The image in its colours, rotated by its EXIF data, a line normalised where the settings say so."""
    picture = _decode_whole(path, settings)
    return normalise_line(picture) if settings.normalise == "line" else picture


def _decode_whole(path: str | Path, settings: ImageInput) -> Image.Image:
    """The whole image in its colours, rotated by its EXIF data."""
    with _open(path, settings) as picture:
        if not settings.augment.crop and settings.width:  # JPEG decodes faster at a half or a quarter of its size
            picture.draft(None, (2 * settings.width, 2 * settings.height))
        picture.load()
        ImageOps.exif_transpose(picture, in_place=True)
        return _convert_colour(picture, settings.colour)


def _convert_colour(picture: Image.Image, colour: str) -> Image.Image:
    """The image as RGB or grey, with as few copies in memory as possible."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture if picture.mode == "RGBA" else picture.convert("RGBA")
        picture = Image.new("RGB", picture.size, "white")
        picture.paste(layer, mask=layer.getchannel("A"))
    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        values = np.array(picture, dtype=np.float32)
        values /= 65535 if picture.mode.startswith("I") else max(float(values.max(initial=0)), 1.0)
        values *= 255
        picture = Image.fromarray(values.clip(0, 255, out=values).astype(np.uint8))
    wanted = "RGB" if colour == "rgb" else "L"
    return picture if picture.mode == wanted else picture.convert(wanted)


def _resize(picture: Image.Image, settings: ImageInput) -> Image.Image:
    if not settings.width:
        width = _natural_width(picture.height, picture.width, settings)
        return picture.resize((width, settings.height), Image.Resampling.BILINEAR)
    return fit_image(picture, settings.height, settings.width, settings.fit)


def fit_image(picture: Image.Image, height: int, width: int, fit: str) -> Image.Image:
    """The image at that size: cropped (crop), distorted (stretch) or with borders (pad)."""
    resampling, size = Image.Resampling.BILINEAR, (width, height)
    if picture.size == size:
        return picture
    if fit == "stretch":
        return picture.resize(size, resampling)
    if fit == "crop":
        return ImageOps.fit(picture, size, resampling)
    return ImageOps.pad(picture, size, resampling, color=_background(picture))


def _natural_width(height: int, width: int, settings: ImageInput) -> int:
    natural = max(round(width * settings.height / max(height, 1)), 1)
    sized = min(natural, settings.widest) if settings.widest else natural
    if sized * settings.height > MAX_SIZED:
        size = f"{width:,} x {height:,} pixels, {sized:,} x {settings.height:,} at the input height"
        raise MediaError(f"{size}; allowed: at most {MAX_SIZED:,} in total (set `widest` to squeeze it)")
    return sized


def _line_width(picture: Image.Image, settings: ImageInput) -> int:
    """Pixels across of an image that is normalised as a line, at the input height."""
    line = measure_line(picture)
    return _natural_width(picture.height if line is None else line.height, picture.width, settings)


def _background(picture: Image.Image) -> tuple[int, ...] | int:
    return (255, 255, 255) if picture.mode == "RGB" else 255


def data_url(pixels: Pixels) -> str:
    """An image (height, width) or (height, width, channels) as a PNG data URL."""
    flat = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(flat)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
