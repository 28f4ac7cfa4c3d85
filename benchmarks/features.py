"""What reading files and keeping features cost beside the frozen network itself, in the same run.

- alone: the network on pictures that lie in memory as tensors;
- kept: files read, decoded and brought to size, the network, the store written; what `train` does before its first
  update.

Wall clock tells what a user waits for (the next files are read while the network works, on another core where one is
free); processor seconds tell what it comes to where no core is free.

    python benchmarks/features.py [FOLDER OF PICTURES] [NUMBER]      (generated pictures without a folder)
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from _timing import least, medians
from PIL import Image
from torch import Tensor

from seq2see.data.feature_store import FeatureStore
from seq2see.data.image_files import ImageInput
from seq2see.encoders.convolutional import ConvolutionalEncoder, ConvolutionalEncoderSettings
from seq2see.modalities.image import ImageField
from seq2see.pipeline.frozen_features import BATCH_FILES, make_features
from seq2see.recipe import load_recipe

NUMBER = 2 * BATCH_FILES
GOAL = 0.85


def generated(folder: Path, number: int) -> list[Path]:
    """Pictures of 500 x 375 pixels with about as much in them as a photograph, as JPEG."""
    random = np.random.default_rng(1)
    for i in range(number):
        rough = Image.fromarray(random.integers(0, 255, (48, 64, 3), dtype=np.uint8))
        rough.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{i}.jpg", quality=90)
    return sorted(folder.iterdir())


def pictures(given: list[str], folder: Path) -> list[str]:
    number = int(given[1]) if len(given) > 1 else NUMBER
    found = sorted(Path(given[0]).glob("*.jpg"))[:number] if given else generated(folder, number)
    if not found:
        sys.exit(f"{given[0]}: no pictures (*.jpg) in it")
    return [str(path) for path in found]


def ways(files: list[str], folder: Path) -> dict[str, Callable[[], object]]:
    settings = load_recipe("image-captioning").inputs["image"]
    assert isinstance(settings, ImageInput)
    assert isinstance(settings.encoder, ConvolutionalEncoderSettings)
    field, encoder = ImageField(settings), ConvolutionalEncoder(settings.encoder).eval()
    encoder.fetch()
    parts = [field.batch(files[start : start + BATCH_FILES]) for start in range(0, len(files), BATCH_FILES)]

    def alone() -> list[Tensor]:
        with torch.inference_mode():
            return [encoder.frozen_features(part) for part in parts]

    shape = alone()[0].shape[1:]

    def kept() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as made:
            store = FeatureStore(Path(made), shape)
            make_features(store, field, encoder, files, device=torch.device("cpu"), on_progress=lambda done, of: None)
            assert len(store) == len(files)

    return {"alone": alone, "kept": kept}


with tempfile.TemporaryDirectory() as temporary:
    place = Path(temporary)
    (place / "generated").mkdir()
    files = pictures(sys.argv[1:], place / "generated")
    compared = ways(files, place)
    for clock, seconds in (
        ("wall clock", medians(compared, rounds=3, warm_up=0)),
        ("processor", least(compared, rounds=2, warm_up=0)),
    ):
        rates = {name: len(files) / value for name, value in seconds.items()}
        share = rates["kept"] / rates["alone"]
        verdict = "reached" if share >= GOAL else "missed"
        print(
            f"{clock:10} {rates['alone']:6.1f} pictures/s alone  {rates['kept']:6.1f} read and kept  "
            f"{share:4.0%} of the network's own speed (goal {GOAL:.0%}: {verdict})"
        )
