"""What every sample is: a name, what it is for, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from seq2see.errors import UserError
from seq2see.files import unwritable

Written = Mapping[str, int]
"""{file of the table: its rows}"""


@dataclass(frozen=True)
class Sample:
    """One set of small data. Its module is imported when it is asked for, and has a function `write(folder)` that makes
    the folder, once it has all it needs, and tells what it wrote there: `train.tsv` and `dev.tsv`."""

    module: str
    about: str
    recipes: tuple[str, ...]

    def write(self, folder: str | Path) -> Written:
        """Write all of it into a folder, which need not be there yet."""
        folder = Path(folder)
        if folder.is_file():
            raise UserError(f"{folder}: a file; the data go into a folder")
        writer: Callable[[Path], Written] = import_module(self.module).write
        try:
            return writer(folder)
        except OSError as error:
            raise unwritable(folder, error) from None


# ---------------- The samples by name

SAMPLES = {
    "shapes": Sample(
        "seq2see.samples.shapes",
        "3,300 pictures of two coloured shapes, with captions that name the larger one first",
        ("image-captioning",),
    ),
    "easy-vqa": Sample(
        "seq2see.samples.easy_vqa",
        "5,000 pictures of a coloured shape and 48,248 questions about them (extra `samples`)",
        ("visual-question-answering",),
    ),
    "digits": Sample(
        "seq2see.samples.digits",
        "1,797 handwritten digits, as pictures and as rows of numbers (extra `samples`)",
        ("autoencoder", "image-autoencoder"),
    ),
    "moving-shapes": Sample(
        "seq2see.samples.moving_shapes",
        "1,200 videos of a coloured shape that moves, with captions and labels (extra `video`)",
        ("video-captioning", "video-classification", "arrow-of-time"),
    ),
}
