"""Rendering of text lines: images of text drawn with fonts and distorted at random, listed in tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont, features

from seq2see.errors import UserError, counted, nearest
from seq2see.files import unwritable, write_bytes
from seq2see.modalities.image import leftward
from seq2see.seeing.labels import Fonts, installed

LIMITS = {"rotation": 20.0, "shear": 45.0, "blur": 10.0, "noise": 128.0, "ink": 1.0, "paper": 1.0, "elastic": 1.0}
WHITE = 255


@dataclass(frozen=True)
class Distortions:
    """Maximum strength of each random distortion; 0 switches it off.

    rotation, shear: degrees to either side; blur: radius in pixels; noise: standard deviation of pixels (of 255);
    ink: change of stroke width, 1 being a pixel at each edge; paper: strength of dark, uneven paper and pale ink;
    elastic: displacement of letters, 1 being a twentieth of the height.
    """

    rotation: float = 1.0
    shear: float = 5.0
    blur: float = 0.8
    noise: float = 6.0
    ink: float = 0.5
    paper: float = 0.2
    elastic: float = 0.3

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, limit = getattr(self, setting.name), LIMITS[setting.name]
            if not 0 <= value <= limit:
                raise UserError(f"--{setting.name} {value:g}: allowed: from 0 to {limit:g}")

    def apply(self, line: Image.Image, random: np.random.Generator) -> Image.Image:
        """Distort a line, black on white; the image grows a little so that nothing is cut off."""
        edge = max(2, round(line.height * 0.08))
        line = _add_margin(line, edge)
        if self.shear:
            line = _shear(line, random.uniform(-self.shear, self.shear))
        if self.rotation:
            angle = random.uniform(-self.rotation, self.rotation)
            line = line.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=WHITE)
        if self.elastic:
            line = _warp(line, self.elastic * line.height / 20, random)
        if self.ink:
            line = _change_weight(line, random.uniform(-self.ink, self.ink))
        line = _add_margin(_trim(line), edge)
        if self.blur:
            line = line.filter(ImageFilter.GaussianBlur(random.uniform(0, self.blur)))
        return _add_paper(line, self.paper, self.noise, random)


def _add_margin(line: Image.Image, edge: int) -> Image.Image:
    wider = Image.new("L", (line.width + 2 * edge, line.height + 2 * edge), WHITE)
    wider.paste(line, (edge, edge))
    return wider


def _trim(line: Image.Image) -> Image.Image:
    box = ImageChops.invert(line).point([0 if value < 32 else value for value in range(256)]).getbbox()
    return line if box is None else line.crop(box)


def _shear(line: Image.Image, degrees: float) -> Image.Image:
    shift = math.tan(math.radians(degrees))
    wider = math.ceil(abs(shift) * line.height)
    matrix = (1, shift, -wider if shift > 0 else 0, 0, 1, 0)
    size = (line.width + wider, line.height)
    return line.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=WHITE)


def _warp(line: Image.Image, distance: float, random: np.random.Generator) -> Image.Image:
    """Elastic distortion: every point is moved by up to `distance` pixels, its neighbours by nearly the same."""
    height, width = line.height, line.width
    knots = (max(width // max(height, 1), 1) + 2, 3)
    shifts = [_smooth(random.uniform(-distance, distance, knots[::-1]), line.size) for _ in range(2)]
    down, across = np.mgrid[0:height, 0:width]
    x, y = (across + shifts[0]).clip(0, width - 1.001), (down + shifts[1]).clip(0, height - 1.001)
    left, top = x.astype(int), y.astype(int)
    dx, dy = x - left, y - top
    right, below = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    pixels = np.asarray(line, dtype=np.float32)
    upper = pixels[top, left] * (1 - dx) + pixels[top, right] * dx
    lower = pixels[below, left] * (1 - dx) + pixels[below, right] * dx
    return Image.fromarray((upper * (1 - dy) + lower * dy).round().clip(0, 255).astype(np.uint8))


def _smooth(knots: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float32]:
    """A few values interpolated to every pixel of an image of (width, height)."""
    image = Image.fromarray(knots.astype(np.float32))
    return np.asarray(image.resize(size, Image.Resampling.BICUBIC), dtype=np.float32)


def _change_weight(line: Image.Image, amount: float) -> Image.Image:
    """Make strokes thicker (above 0) or thinner."""
    other = line.filter(ImageFilter.MinFilter(3) if amount > 0 else ImageFilter.MaxFilter(3))
    share = amount if amount > 0 else -amount / 2  # thin strokes would be lost
    return Image.blend(line, other, share)


def _add_paper(line: Image.Image, paper: float, noise: float, random: np.random.Generator) -> Image.Image:
    pixels = np.asarray(line, dtype=np.float64)
    if paper:
        light = WHITE * (1 - random.uniform(0, paper) / 2)
        dark = WHITE * random.uniform(0, paper) / 2
        uneven = _smooth(random.uniform(-1, 1, (2, 4)) * paper * 20, line.size)
        pixels = dark + pixels / WHITE * (light - dark) + uneven
    if noise:
        pixels = pixels + random.normal(0, random.uniform(0, noise), pixels.shape)
    return Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))


def split_line(line: str, max_characters: int) -> Iterator[str]:
    """Split a line between words into parts of at most `max_characters`; 0: never. Whitespace is normalised.

    A longer word stays whole: letters of many scripts change their shape where a word is cut.

    >>> list(split_line("one  two three incomprehensible", 9))
    ['one two', 'three', 'incomprehensible']
    """
    words = line.split()
    if not max_characters:
        yield from [" ".join(words)] if words else []
        return
    part = ""
    for word in words:
        longer = f"{part} {word}" if part else word
        if part and len(longer) > max_characters:
            yield part
            longer = word
        part = longer
    if part:
        yield part


def split_lines(lines: Iterable[str], max_characters: int) -> list[str]:
    """The parts of all lines, without duplicates, in order of first occurrence."""
    return list(dict.fromkeys(piece for line in lines for piece in split_line(line, max_characters)))


JOINING = frozenset("\u0628\u062a\u0633\u0644\u0645\u0646\u06cc\u064a\u06a9\u0643")
"""Frequent letters of Arabic, Persian and Urdu that join on both sides."""

SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")


@dataclass(frozen=True)
class Face:
    """A font: its requested name and its file."""

    name: str
    path: str

    def missing(self, text: str) -> set[str]:
        """Characters of a text that it has no glyph for."""
        return Fonts({self.name: self.path}).missing(text)

    def joins(self, text: str) -> bool:
        """Whether letters of this text that have to join do: a letter and itself look different with a zero-width
        non-joiner between them.

        A font that leaves joining to Graphite (Awami Nastaliq) has no OpenType rules for it, and Pillow's raqm draws
        each letter as if it stood alone. True for a text without such letters.
        """
        lacking = self.missing("".join(JOINING))
        letter = next((character for character in text if character in JOINING - lacking), None)
        if letter is None:
            return True
        joined, apart = (
            self.draw(word, size=40, right_to_left=True) for word in (letter * 2, f"{letter}\u200c{letter}")
        )
        return joined.size != apart.size or joined.tobytes() != apart.tobytes()

    def draw(self, text: str, *, size: int, right_to_left: bool) -> Image.Image:
        """The text in black on white, shaped and ordered by its script, cropped to the ink."""
        font = _load(self.path, size)
        direction = "rtl" if right_to_left else "ltr"
        left, top, right, bottom = font.getbbox(text, direction=direction, anchor="ls")
        edge = size  # slanted and stacked letters reach beyond the box that the font reports
        canvas = Image.new("L", (int(right - left) + 2 * edge, int(bottom - top) + 2 * edge), 0)
        ImageDraw.Draw(canvas).text((edge - left, edge - top), text, 255, font, anchor="ls", direction=direction)
        box = canvas.getbbox()
        ink = canvas.crop(box) if box is not None else Image.new("L", (1, 1), 0)
        return ink.point([255 - value for value in range(256)])


def faces_of(names: Sequence[str]) -> list[Face]:
    """The fonts of these names or files; raises a UserError if one is missing or letters cannot be shaped."""
    if not features.check("raqm"):
        raise UserError(
            "Pillow has no raqm, which shapes and orders letters: install libraqm and fribidi (Debian, Ubuntu: "
            "apt-get install libraqm0), or Pillow's wheels, which include it (pip install --force-reinstall pillow)"
        )
    if not names:
        raise UserError("--fonts is empty; allowed: installed font families or font files, separated by commas")
    return [_face(name) for name in dict.fromkeys(names)]


def _face(name: str) -> Face:
    if name.lower().endswith(SUFFIXES) or "/" in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise UserError(f"--fonts {name}: no such file")
        try:
            ImageFont.truetype(str(path), 12)
        except OSError:
            raise UserError(f"--fonts {name}: not a readable font; allowed: {', '.join(SUFFIXES)}") from None
        return Face(path.stem, str(path))
    file = installed().file_of(name)
    if file is None:
        known = installed().names
        raise UserError(
            f"--fonts {name}: no such font is installed{nearest(name, known)}; allowed: a font file, or a "
            "family listed by `fc-list : family` (Debian, Ubuntu: fonts-noto-core covers most scripts)"
        )
    return Face(name, file)


@lru_cache(maxsize=64)
def _load(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.RAQM)


TRAIN, DEV, IMAGES = "train.tsv", "dev.tsv", "images"
SPLITTING, DRAWING = 1, 2
"""Parts of the seed sequences, which keep the random streams of splitting and drawing apart."""


@dataclass(frozen=True)
class Rendering:
    """Settings of the images.

    fonts: names or files, one chosen at random for each image; size: font size in pixels; max_characters: of a line, 0
    for no limit; copies: images of each line; dev_share: share of lines in dev.tsv.
    """

    fonts: Sequence[str]
    size: int = 40
    max_characters: int = 40
    copies: int = 1
    dev_share: float = 0.0
    seed: int = 1
    distortions: Distortions = field(default_factory=Distortions)

    def __post_init__(self) -> None:
        for name, value, least, largest in (
            ("--size", self.size, 8, 400),
            ("--max-characters", self.max_characters, 0, 10_000),
            ("--copies", self.copies, 1, 1_000),
            ("--dev-share", self.dev_share, 0, 0.9),
        ):
            if not least <= value <= largest:
                raise UserError(f"{name} {value:g}: allowed: from {least:g} to {largest:g}")


@dataclass
class Rendered:
    """Numbers of rows in each table, and of skipped lines that no font could draw."""

    train: int
    dev: int
    skipped: int


def render(
    source: Path, out: Path, settings: Rendering, *, say: Callable[[str], None] = print, overwrite: bool = False
) -> Rendered:
    """Draw the lines of a text file into a folder: images/, train.tsv and, with a dev_share, dev.tsv.

    An image depends only on the seed, its line number and the fonts, so the same call gives the same files.
    """
    faces = faces_of(settings.fonts)
    lines = split_lines(_read(source), settings.max_characters)
    if not lines:
        raise UserError(f"{source}: the file contains no text")
    _prepare(out, overwrite=overwrite)
    faces = _joining(faces, lines, say)
    missing = _missing_characters(faces, lines, say)
    right_to_left = leftward((line, 1) for line in lines)
    rows: dict[str, list[str]] = {TRAIN: [], DEV: []}
    skipped = 0
    for number, line in enumerate(lines):
        usable = [face for face in faces if not missing[face].intersection(line)]
        skipped += not usable
        table = (
            DEV if np.random.default_rng([settings.seed, SPLITTING, number]).random() < settings.dev_share else TRAIN
        )
        for copy in range(settings.copies if usable else 0):
            random = np.random.default_rng([settings.seed, DRAWING, number, copy])
            face = usable[int(random.integers(len(usable)))]
            image = face.draw(line, size=settings.size, right_to_left=right_to_left)
            name = f"{IMAGES}/{number:06d}-{copy}.png"
            settings.distortions.apply(image, random).save(out / name)
            rows[table].append(f"{name}\t{line}")
    if skipped == len(lines):
        raise UserError(f"{source}: none of its {len(lines):,} lines can be drawn with {_names(faces)}")
    if skipped:
        say(f"{counted(skipped, 'line')} of {len(lines):,} skipped: no font has all of their characters")
    for table, records in rows.items():
        if records:
            write_bytes(out / table, ("\n".join(["image\ttext", *records]) + "\n").encode())
    return Rendered(len(rows[TRAIN]), len(rows[DEV]), skipped)


def _read(source: Path) -> list[str]:
    try:
        return source.read_text("utf-8-sig").splitlines()
    except FileNotFoundError:
        raise UserError(f"{source}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{source}: is a folder; give a text file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{source}: not UTF-8 at byte {error.start:,}") from None


def _prepare(out: Path, *, overwrite: bool) -> None:
    existing = [out / name for name in (TRAIN, DEV) if (out / name).exists()]
    if existing and not overwrite:
        raise UserError(f"{existing[0]} already exists; use --overwrite to replace it")
    try:
        (out / IMAGES).mkdir(parents=True, exist_ok=True)
        for path in existing:
            path.unlink()
    except OSError as error:
        raise unwritable(out, error) from None


def _joining(faces: Sequence[Face], lines: Sequence[str], say: Callable[[str], None]) -> list[Face]:
    """The fonts that join letters; all of them, with a warning, where none does."""
    letters = "".join(dict.fromkeys(character for line in lines for character in line))
    joining = [face for face in faces if face.joins(letters)]
    for face in faces:
        if face not in joining:
            instead = "it is not used" if joining else "its letters are drawn apart, as nobody writes them"
            say(f"{face.name} does not join letters here: it needs Graphite, which Pillow's raqm lacks; {instead}")
    return joining or list(faces)


def _missing_characters(
    faces: Sequence[Face], lines: Sequence[str], say: Callable[[str], None]
) -> dict[Face, set[str]]:
    """The characters that each font cannot draw; the user is told, the most frequent first, of at most `TOLD` fonts."""
    counts = Counter(character for line in lines for character in line)
    missing = {face: face.missing("".join(counts)) for face in faces}
    lacking = sorted(filter(missing.get, faces), key=lambda face: -sum(counts[c] for c in missing[face]))
    for face in lacking[:TOLD]:
        often = sorted(missing[face], key=lambda character: (-counts[character], character))
        listed = " ".join(f"{c} (U+{ord(c):04X}, {counts[c]:,} times)" for c in often[:8])
        more = f" and {len(often) - 8} more" if len(often) > 8 else ""
        say(f"{face.name} has no {listed}{more}: lines with them are not drawn with it")
    if len(lacking) > TOLD:
        say(f"{len(lacking) - TOLD} more fonts lack fewer characters; lines with them are drawn with other fonts")
    return missing


TOLD = 5
"""Fonts whose missing characters are listed."""


def _names(faces: Sequence[Face]) -> str:
    return ", ".join(face.name for face in faces)
