"""Questions about pictures of a single shape, from the `easy-vqa` package: 13 answers, most of them yes or no."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seq2see.data.tables import write as write_table
from seq2see.errors import imported
from seq2see.samples.base import Written

COLUMNS = ("image", "question", "answer")


def write(folder: Path) -> Written:
    """train.tsv and dev.tsv, which is the package's test part: other pictures, the same 107 questions."""
    package = imported("easy_vqa", extra="samples")
    parts = {
        "train": (package.get_train_questions(), package.get_train_image_paths()),
        "dev": (package.get_test_questions(), package.get_test_image_paths()),
    }
    written = {}
    for part, (asked, pictures) in parts.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        for number, path in pictures.items():
            shutil.copyfile(path, folder / part / f"{number}.png")
        write_table(folder / f"{part}.tsv", _rows(part, *asked), COLUMNS)
        written[f"{part}.tsv"] = len(asked[0])
    return written


def _rows(
    part: str, questions: Sequence[str], answers: Sequence[str], pictures: Sequence[int]
) -> Iterator[Mapping[str, str]]:
    for question, answer, picture in zip(questions, answers, pictures, strict=True):
        yield {"image": f"{part}/{picture}.png", "question": question, "answer": answer}
