"""Files of images, sounds and videos as arrays of a graph; decoded by the same code as for training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from seq2see.errors import UserError, imported
from seq2see_runtime.readers import Column


class FileReader:
    """Reads files of one kind: `settings` has how they are decoded."""

    def __init__(self, module: str, name: str, extra: str, settings: Mapping[str, Any]):
        imported("pydantic", extra=extra)
        kind = getattr(imported(module, extra=extra), name)
        self.settings = kind.model_validate({key: value for key, value in settings.items() if key != "encoder"})

    def decoded(self, value: str) -> list[ndarray]:
        """What a file holds; errors name it."""
        try:
            arrays: list[ndarray] = self.settings.decode(value)
        except UserError as error:
            raise UserError(f"{value}: {error}") from None
        return arrays

    def read(self, values: Sequence[str]) -> Column:
        raise NotImplementedError


class ImageReader(FileReader):
    """Pixels, padded on the right with the last column of each picture, and their widths."""

    @classmethod
    def load(cls, folder: Path, name: str, settings: Mapping[str, Any]) -> ImageReader:
        return cls("seq2see.data.image_files", "ImageInput", "images", settings)

    def read(self, values: Sequence[str]) -> Column:
        pictures = [self.decoded(value)[0] for value in values]
        widths = np.array([picture.shape[-1] for picture in pictures], dtype=np.int64)
        missing = widths.max() - widths
        wide = [
            np.pad(picture, ((0, 0), (0, 0), (0, more)), mode="edge")
            for picture, more in zip(pictures, missing, strict=True)
        ]
        return Column({"pixels": np.stack(wide), "widths": widths})


class SoundReader(FileReader):
    """Frames of log-mel energies."""

    @classmethod
    def load(cls, folder: Path, name: str, settings: Mapping[str, Any]) -> SoundReader:
        return cls("seq2see.data.sound_files", "SoundInput", "sound", settings)

    def read(self, values: Sequence[str]) -> Column:
        from seq2see.data.log_mel import log_mels
        from seq2see.data.sound_files import resample

        settings = self.settings
        frames = []
        for value in values:
            samples, rate = self.decoded(value)
            frames.append(log_mels(resample(samples, int(rate), settings.rate), settings))
        hop = settings.hop / 1000
        names = [[f"{number * hop:.2f} s" for number in range(len(row))] for row in frames]
        rows, mask = stacked(frames)
        return Column({"values": rows, "mask": mask}, {"": names})


class VideoReader(FileReader):
    """The pixels of the frames that are read."""

    @classmethod
    def load(cls, folder: Path, name: str, settings: Mapping[str, Any]) -> VideoReader:
        return cls("seq2see.data.video_files", "VideoInput", "video", settings)

    def read(self, values: Sequence[str]) -> Column:
        clips = [self.decoded(value) for value in values]
        pixels, mask = stacked([pixels for pixels, _ in clips])
        names = [[f"{second:.2f} s" for second in times] for _, times in clips]
        return Column({"pixels": pixels, "mask": mask}, {"": names})


def stacked(rows: Sequence[ndarray]) -> tuple[ndarray, ndarray]:
    """Rows of different lengths as one array, zeros where a row has ended, and which of its steps are real."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    out = np.zeros((*mask.shape, *rows[0].shape[1:]), dtype=rows[0].dtype)
    out[mask] = np.concatenate(rows)
    return out, mask


READERS = {"image": ImageReader.load, "sound": SoundReader.load, "video": VideoReader.load}
