"""`--looks PATH`: where the looks of predictions go, by what PATH is. `--pictures DIR`: where pictures go."""

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


DRAWN = (".png", ".svg", ".html", ".json")
LINES = ".jsonl"


class LooksWriter:
    """A folder takes a picture per input, a .jsonl file a line per input, a picture's own path a single input."""

    def __init__(self, path: str, *, count: int | None):
        self.path = Path(path)
        suffix = self.path.suffix.lower()
        self._lines: TextIO | None = None
        self._number = 0
        self._single = suffix in DRAWN and not self.path.is_dir()
        if self._single and count != 1:
            raise UserError(
                f"--looks {path}: a picture holds one input, got {count or 'several'}; give a folder or a {LINES} file"
            )
        if not self._single and suffix != LINES and suffix and not self.path.is_dir():
            allowed = ", ".join((*DRAWN, LINES))
            raise UserError(f"--looks {path}: unknown suffix '{self.path.suffix}'; allowed: a folder, {allowed}, or -")
        try:
            if suffix == LINES:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lines = self.path.open("w", encoding="utf-8")
            elif not self._single:
                self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--looks {path}: cannot be written: {error.strerror or error}") from None

    def add(self, prediction: Prediction) -> None:
        """The looks of the next prediction."""
        self._number += 1
        looks = prediction.looks
        if self._lines is not None:
            self._lines.write(json.dumps(looks.to_dict(), ensure_ascii=False) + "\n")
            return
        if prediction.reason and not self._single:
            return  # no answer, no picture: the next one keeps its number
        check_looks(looks)
        if self._single:
            looks.save(self.path)
        else:
            looks.save(self.path / f"{self._number:05d}{_named(prediction.input)}.png")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def picture_writer(folder: Path | None, *, gives_pictures: bool) -> PictureWriter | None:
    """Whoever writes a model's pictures; none where it gives no pictures."""
    if gives_pictures and folder is None:
        raise UserError("the model gives pictures: --pictures DIR says which folder they are written to")
    if not gives_pictures and folder is not None:
        raise UserError("--pictures: no meaning here: the model gives no pictures (--looks draws where it looked)")
    return None if folder is None else PictureWriter(folder)


class PictureWriter:
    """Pictures into a folder, one .png each, numbered and named after the inputs."""

    def __init__(self, folder: Path):
        self.folder, self._number = folder, 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--pictures {folder}: cannot be written: {error.strerror or error}") from None

    def written(self, told: Iterator[tuple[Item, Prediction]]) -> Iterator[tuple[Item, Prediction]]:
        """Pass predictions on, each with the path of its picture in place of the pixels."""
        from PIL import Image

        for item, prediction in told:
            self._number += 1
            if prediction.reason:
                yield item, prediction
                continue
            assert prediction.image is not None
            assert not isinstance(prediction.image, str)
            stems = [Path(str(value)).stem for value in item.inputs.values()]
            path = self.folder / f"{self._number:05d}{_named(' '.join(stems))}.png"
            try:
                Image.fromarray(prediction.image).save(path)
            except OSError as error:
                raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
            yield item, replace(prediction, image=str(path))


def check_looks(looks: Looks) -> None:
    """A model without attention has nothing to draw, and says why."""
    if not looks.maps:
        raise UserError(looks.reason or "this model has no attention: there is nothing to look at")


def _named(given: object) -> str:
    """'-hello' for the input 'hello': a picture's name says what it shows, as far as file names can."""
    words = " ".join(map(str, given.values())) if isinstance(given, dict) else str(given or "")
    short = re.sub(r"[^\w]+", "-", words).strip("-")[:40]
    return f"-{short}" if short else ""
