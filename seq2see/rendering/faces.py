"""Fonts by name or file, and what they cannot draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, features

from seq2see.errors import UserError, nearest
from seq2see.seeing.fonts import Fonts, installed

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
