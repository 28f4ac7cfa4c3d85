"""A folder of lines with the tables that name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, features

from seq2see.errors import UserError, counted, nearest
from seq2see.files import unwritable, write_bytes
from seq2see.modalities.image import leftward
from seq2see.rendering.distortions import Distortions
from seq2see.seeing.fonts import Fonts, installed

# ---------------- Long lines cut where a word ends


def pieces(line: str, most: int) -> Iterator[str]:
    """Parts of a line of at most so many characters each, blanks between words made one; 0: the line as it is.

    A longer word stands alone, whole: letters of many scripts change their shape where a word is cut.

    >>> list(pieces("one  two three incomprehensible", 9))
    ['one two', 'three', 'incomprehensible']
    """
    words = line.split()
    if not most:
        yield from [" ".join(words)] if words else []
        return
    part = ""
    for word in words:
        longer = f"{part} {word}" if part else word
        if part and len(longer) > most:
            yield part
            longer = word
        part = longer
    if part:
        yield part


def cut(lines: Iterable[str], most: int) -> list[str]:
    """The parts of all lines, each text once, in the order in which they first come."""
    return list(dict.fromkeys(piece for line in lines for piece in pieces(line, most)))


# ---------------- Fonts by name or file, and what they cannot draw

ENDINGS = (".ttf", ".otf", ".ttc", ".otc")


@dataclass(frozen=True)
class Face:
    """A font: the name it was asked for by, and its file."""

    name: str
    path: str

    def lacks(self, text: str) -> set[str]:
        """Characters of a text that it has no glyph for."""
        return Fonts({self.name: self.path}).missing(text)

    def drawn(self, text: str, *, size: int, leftward: bool) -> Image.Image:
        """Black on white, shaped and ordered as the script is written, nothing beside the ink."""
        font = _loaded(self.path, size)
        way = "rtl" if leftward else "ltr"
        left, top, right, bottom = font.getbbox(text, direction=way, anchor="ls")
        edge = size  # ink of slanted and stacked letters reaches beyond the box that the font announces
        canvas = Image.new("L", (int(right - left) + 2 * edge, int(bottom - top) + 2 * edge), 0)
        ImageDraw.Draw(canvas).text((edge - left, edge - top), text, 255, font, anchor="ls", direction=way)
        box = canvas.getbbox()
        ink = canvas.crop(box) if box is not None else Image.new("L", (1, 1), 0)
        return ink.point([255 - value for value in range(256)])


def faces_of(names: Sequence[str]) -> list[Face]:
    """The fonts of these names or files; a UserError says which is not there, and what is needed to shape letters."""
    if not features.check("raqm"):
        raise UserError(
            "Pillow here has no raqm, which joins and orders letters: install libraqm and fribidi (Debian, Ubuntu: "
            "apt-get install libraqm0), or Pillow's own wheels, which bring it (pip install --force-reinstall pillow)"
        )
    if not names:
        raise UserError("--fonts: none given; allowed: names of installed fonts, or files, with commas between")
    return [_face(name) for name in dict.fromkeys(names)]


def _face(name: str) -> Face:
    if name.lower().endswith(ENDINGS) or "/" in name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise UserError(f"--fonts {name}: no such file")
        try:
            ImageFont.truetype(str(path), 12)
        except OSError:
            raise UserError(f"--fonts {name}: not a font that can be read; allowed: {', '.join(ENDINGS)}") from None
        return Face(path.stem, str(path))
    found = installed().file_of(name)
    if found is None:
        known = installed().names
        raise UserError(
            f"--fonts {name}: no font of that name is installed{nearest(name, known)}; allowed: a file of one, or one "
            "of those that `fc-list : family` lists (Debian, Ubuntu: apt-get install fonts-noto-core has most scripts)"
        )
    return Face(name, found)


@lru_cache(maxsize=64)
def _loaded(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.RAQM)


TRAIN, DEV, IMAGES = "train.tsv", "dev.tsv", "images"
SPLITTING, DRAWING = 1, 2
"""What chance is asked for: a word of each seed, since NumPy takes a seed and the same with zeros behind it for one."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Rendering:
    """fonts: names or files, of which each line gets one by chance; size: pixels of a letter's em; most: characters of
    a line, 0: as many as it has; copies: pictures of each line; share: of the lines that go to dev.tsv."""

    fonts: Sequence[str]
    size: int = 40
    most: int = 40
    copies: int = 1
    share: float = 0.0
    seed: int = 1
    distortions: Distortions = field(default_factory=Distortions)

    def __post_init__(self) -> None:
        for name, value, least, largest in (
            ("--size", self.size, 8, 400),
            ("--max-characters", self.most, 0, 10_000),
            ("--copies", self.copies, 1, 1_000),
            ("--dev-share", self.share, 0, 0.9),
        ):
            if not least <= value <= largest:
                raise UserError(f"{name} {value:g}: allowed: from {least:g} to {largest:g}")


@dataclass
class Rendered:
    """What was written: rows of each table; left_out: lines that no font could draw."""

    train: int
    dev: int
    left_out: int


def render(source: Path, out: Path, settings: Rendering, *, say: Say = print, overwrite: bool = False) -> Rendered:
    """Draw the lines of a text file into a folder: images/, train.tsv and, with a share for it, dev.tsv.

    A line's picture depends on the seed, its number and the fonts alone, so the same call gives the same files.
    """
    faces = faces_of(settings.fonts)
    lines = cut(_read(source), settings.most)
    if not lines:
        raise UserError(f"{source}: there is no text in it")
    _prepare(out, overwrite=overwrite)
    lacking = _lacking(faces, lines, say)
    runs_left = leftward((line, 1) for line in lines)
    rows: dict[str, list[str]] = {TRAIN: [], DEV: []}
    left_out = 0
    for number, line in enumerate(lines):
        able = [face for face in faces if not lacking[face].intersection(line)]
        left_out += not able
        table = DEV if np.random.default_rng([settings.seed, SPLITTING, number]).random() < settings.share else TRAIN
        for copy in range(settings.copies if able else 0):
            random = np.random.default_rng([settings.seed, DRAWING, number, copy])
            face = able[int(random.integers(len(able)))]
            drawn = face.drawn(line, size=settings.size, leftward=runs_left)
            name = f"{IMAGES}/{number:06d}-{copy}.png"
            settings.distortions.of(drawn, random).save(out / name)
            rows[table].append(f"{name}\t{line}")
    if left_out == len(lines):
        raise UserError(f"{source}: none of its {len(lines):,} lines can be drawn in {_named(faces)}")
    if left_out:
        say(f"{counted(left_out, 'line')} of {len(lines):,} left out: no font given has all of their characters")
    for table, made in rows.items():
        if made:
            write_bytes(out / table, ("\n".join(["image\ttext", *made]) + "\n").encode())
    return Rendered(len(rows[TRAIN]), len(rows[DEV]), left_out)


def _read(source: Path) -> list[str]:
    try:
        return source.read_text("utf-8-sig").splitlines()
    except FileNotFoundError:
        raise UserError(f"{source}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{source}: a folder; allowed: a file of text") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{source}: not UTF-8 at byte {error.start:,}") from None


def _prepare(out: Path, *, overwrite: bool) -> None:
    held = [out / name for name in (TRAIN, DEV) if (out / name).exists()]
    if held and not overwrite:
        raise UserError(f"{held[0]} is there already, and nothing was changed; --overwrite begins anew")
    try:
        (out / IMAGES).mkdir(parents=True, exist_ok=True)
        for path in held:
            path.unlink()
    except OSError as error:
        raise unwritable(out, error) from None


def _lacking(faces: Sequence[Face], lines: Sequence[str], say: Say) -> dict[Face, set[str]]:
    """What each font cannot draw, which is said, the most frequent first."""
    counts = Counter(character for line in lines for character in line)
    lacking = {face: face.lacks("".join(counts)) for face in faces}
    for face, missing in lacking.items():
        if missing:
            often = sorted(missing, key=lambda one: (-counts[one], one))
            told = " ".join(f"{one} (U+{ord(one):04X}, {counts[one]:,} times)" for one in often[:8])
            more = f" and {len(often) - 8} more" if len(often) > 8 else ""
            say(f"{face.name} has no {told}{more}: lines with them are not drawn in it")
    return lacking


def _named(faces: Sequence[Face]) -> str:
    return ", ".join(face.name for face in faces)
