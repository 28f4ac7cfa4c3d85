"""Writers of `--looks PATH` (attention) and `--pictures DIR` (images that a model outputs)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.cli.inputs import Item
    from seq2see.looks import Looks, Prediction


FORMATS = (".png", ".svg", ".html", ".json")
LINES = ".jsonl"


class LooksWriter:
    """Writes attention to a folder (one image per input), a .jsonl file (one line per input) or one image file."""

    def __init__(self, path: str, *, count: int | None):
        self.path = Path(path)
        suffix = self.path.suffix.lower()
        self._lines: TextIO | None = None
        self._number = 0
        self._single = suffix in FORMATS and not self.path.is_dir()
        if self._single and count != 1:
            raise UserError(
                f"--looks {path}: an image shows one input, got {count or 'several'}; give a folder or a {LINES} file"
            )
        if not self._single and suffix != LINES and suffix and not self.path.is_dir():
            allowed = ", ".join((*FORMATS, LINES))
            raise UserError(f"--looks {path}: unknown suffix '{self.path.suffix}'; allowed: a folder, {allowed}, or -")
        try:
            if suffix == LINES:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lines = self.path.open("w", encoding="utf-8")
            elif not self._single:
                self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--looks {path}: cannot write: {error.strerror or error}") from None

    def add(self, prediction: Prediction) -> None:
        """Write the looks of the next prediction."""
        self._number += 1
        looks = prediction.looks
        if self._lines is not None:
            self._lines.write(json.dumps(looks.to_dict(), ensure_ascii=False) + "\n")
            return
        if prediction.reason and not self._single:
            return  # no answer, no image; numbers follow the inputs
        check_looks(looks)
        if self._single:
            looks.save(self.path)
        else:
            looks.save(self.path / f"{self._number:05d}{_name_part(prediction.input)}.png")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def image_writer(folder: Path | None, *, outputs_images: bool) -> ImageWriter | None:
    """The writer of a model's output images; None if it does not output images."""
    if outputs_images and folder is None:
        raise UserError("the model outputs images: give a folder for them with --pictures DIR")
    if not outputs_images and folder is not None:
        raise UserError("--pictures: this model does not output images (use --looks to draw where it looked)")
    return None if folder is None else ImageWriter(folder)


class ImageWriter:
    """Writes images to a folder, one .png each, numbered and named after the inputs."""

    def __init__(self, folder: Path):
        self.folder, self._number = folder, 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--pictures {folder}: cannot write: {error.strerror or error}") from None

    def save_images(self, predictions: Iterator[tuple[Item, Prediction]]) -> Iterator[tuple[Item, Prediction]]:
        """Pass predictions on, with the path of each image in place of its pixels."""
        from PIL import Image

        for item, prediction in predictions:
            self._number += 1
            if prediction.reason:
                yield item, prediction
                continue
            assert prediction.image is not None
            assert not isinstance(prediction.image, str)
            stems = [Path(str(value)).stem for value in item.inputs.values()]
            path = self.folder / f"{self._number:05d}{_name_part(' '.join(stems))}.png"
            try:
                Image.fromarray(prediction.image).save(path)
            except OSError as error:
                raise UserError(f"{path}: cannot write: {error.strerror or error}") from None
            yield item, replace(prediction, image=str(path))


def check_looks(looks: Looks) -> None:
    """Raise a UserError if the model has no attention."""
    if not looks.maps:
        raise UserError(looks.reason or "this model has no attention: there is nothing to draw")


def _name_part(value: object) -> str:
    """'-hello' for the input 'hello': the part of a file name that says what it shows."""
    words = " ".join(map(str, value.values())) if isinstance(value, dict) else str(value or "")
    short = re.sub(r"[^\w]+", "-", words).strip("-")[:40]
    return f"-{short}" if short else ""
