"""Features of frozen networks: each file is read once, and its features are stored on disk for this run and later ones.

Without that, an image with five captions would be read once for each of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path

import torch

from seq2see.data.feature_store import FeatureStore
from seq2see.data.media_files import MediaSettings
from seq2see.encoders import Encoder
from seq2see.modalities.base import Column
from seq2see.modalities.files import MediaField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import OnProgress, Progress
from seq2see.pipeline.weights import tensors_of

BATCH_FILES, BATCH_FILES_CPU = 32, 4
"""Files that a network reads at once. On the CPU few: the memory of large maps is taken from the system anew for every
layer, which costs as much as computing them (EfficientNet-lite2: 22 images a second by 4, 12 by 16)."""


def store_features(bundle: Bundle, files: Callable[[str, MediaField], Iterable[str]], progress: Progress) -> None:
    """Compute and store the features of files that are not stored yet, for inputs with a frozen encoder. files: those
    of an input by its name, read anew by each call."""
    for name, field in bundle.frozen_inputs.items():
        encoder = bundle.network.encoder(name)
        paths = dict.fromkeys(files(name, field))
        if not paths:
            continue
        store = store_for(field, encoder, next(iter(paths)), device=bundle.device)
        missing = [path for path in paths if path not in store]
        make_features(store, field, encoder, missing, device=bundle.device, on_progress=partial(progress, name))
        field.features, field.files_too = store, encoder.needs_files


@contextmanager
def use_features(
    bundles: Sequence[Bundle], rows: Sequence[Mapping[str, str]], progress: Progress | None
) -> Iterator[None]:
    """Inside, models use the stored features of these rows' files; afterwards they read files as before."""
    inputs = (field for bundle in bundles for field in bundle.fields.inputs.values())
    fields = [field for field in inputs if isinstance(field, MediaField)]
    before = [(field.features, field.files_too) for field in fields]

    def files_read(_: str, done: int, of: int) -> None:
        if progress is not None:
            progress("files read", done, of)

    try:
        for field in fields:
            field.features, field.files_too = None, False
        for bundle in bundles:
            store_features(bundle, lambda name, field: (field.file(row[name]) for row in rows), files_read)
        yield
    finally:
        for field, (features, files_too) in zip(fields, before, strict=True):
            field.features, field.files_too = features, files_too


def store_for(field: MediaField, encoder: Encoder, example: str, *, device: torch.device) -> FeatureStore:
    """The store of this encoder's features, in a folder named by the weights and by how files are read; one file is
    read for the shape of its features."""
    assert isinstance(field.settings, MediaSettings)
    assert encoder.frozen is not None
    how = field.settings.model_dump(exclude={"column", "encoder", "augment"})
    hashed = blake2b(json.dumps(how, sort_keys=True).encode(), digest_size=10)
    for name, tensor in sorted(tensors_of(encoder.frozen).items()):
        hashed.update(name.encode())
        hashed.update(tensor.cpu().numpy().tobytes())
    with torch.inference_mode():
        shape = encoder.frozen_features(field.batch([example]).to(device)).shape[1:]
    return FeatureStore(cache_folder() / "features" / hashed.hexdigest(), shape)


def cache_folder() -> Path:
    """The folder of files that can be computed again: $SEQ2SEE_CACHE, or one in the user's cache."""
    folder = os.environ.get("SEQ2SEE_CACHE")
    return Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seq2see"


def make_features(
    store: FeatureStore,
    field: MediaField,
    encoder: Encoder,
    files: list[str],
    *,
    device: torch.device,
    on_progress: OnProgress,
) -> None:
    """Compute and store the features of files; the next files are read in a thread meanwhile."""
    size = BATCH_FILES_CPU if device.type == "cpu" else BATCH_FILES
    parts = [files[start : start + size] for start in range(0, len(files), size)]
    stored, waiting = 0, list[torch.Tensor]()
    with ThreadPoolExecutor(1) as reader, torch.inference_mode():
        for done, column in zip(range(size, len(files) + size, size), _read_ahead(reader, field, parts), strict=True):
            waiting.append(encoder.frozen_features(column.to(device)).to(torch.float16).cpu())
            if done >= min(stored + BATCH_FILES, len(files)):  # each time the disk is waited for
                store.add(files[stored:done], torch.cat(waiting).numpy())
                stored = min(done, len(files))
                waiting.clear()
                on_progress(stored, len(files))


def _read_ahead(reader: ThreadPoolExecutor, field: MediaField, parts: list[list[str]]) -> Iterator[Column]:
    waiting = [reader.submit(field.batch, part) for part in parts[:2]]
    for number in range(len(parts)):
        column = waiting.pop(0).result()
        if number + 2 < len(parts):
            waiting.append(reader.submit(field.batch, parts[number + 2]))
        yield column
