"""Frozen networks read each file once: what they make of it is kept on disk, for this run and all later ones.

Without that, a picture with five captions would be read once for each of them.
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
from seq2see.pipeline.weights import tensors_of

AT_ONCE = 32

Told = Callable[[int, int], None]
"""Told how many files are read, of how many."""
Watching = Callable[[str, int, int], None]
"""... and of which input (or what for)."""


def keep_features(bundle: Bundle, files: Callable[[str, MediaField], Iterable[str]], told: Watching) -> None:
    """Make and keep what frozen encoders need of files, where it is not known yet. files: those of an input by its
    name, as often as one likes."""
    for name, field in bundle.fields.inputs.items():
        encoder = bundle.network.encoder(name)
        if not isinstance(field, MediaField) or encoder.frozen is None:
            continue
        wanted = dict.fromkeys(files(name, field))
        if not wanted:
            continue
        known = store_for(field, encoder, next(iter(wanted)), device=bundle.device)
        missing = [path for path in wanted if path not in known]
        make_features(known, field, encoder, missing, device=bundle.device, told=partial(told, name))
        field.features, field.files_too = known, encoder.needs_files


@contextmanager
def kept_for(bundles: Sequence[Bundle], rows: Sequence[Mapping[str, str]], told: Watching | None) -> Iterator[None]:
    """Within, the files of these rows are read once; afterwards the models read as they did before. told: what is being
    done, how many files are done, of how many."""
    inputs = (field for bundle in bundles for field in bundle.fields.inputs.values())
    fields = [field for field in inputs if isinstance(field, MediaField)]
    before = [(field.features, field.files_too) for field in fields]

    def watched(_: str, done: int, of: int) -> None:
        if told is not None:
            told("files read", done, of)

    try:
        for field in fields:
            field.features, field.files_too = None, False
        for bundle in bundles:
            keep_features(bundle, lambda name, field: (field.file(row[name]) for row in rows), watched)
        yield
    finally:
        for field, (features, files_too) in zip(fields, before, strict=True):
            field.features, field.files_too = features, files_too


def store_for(field: MediaField, encoder: Encoder, example: str, *, device: torch.device) -> FeatureStore:
    """The store of what this encoder makes of files read like this; one file is read to see its shape,
    which follows from what the folder is named by: the size of pictures, the frames of clips and the weights."""
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
    """Where things are kept that can be made again: $SEQ2SEE_CACHE, or a folder of the user's."""
    given = os.environ.get("SEQ2SEE_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "seq2see"


def make_features(
    known: FeatureStore, field: MediaField, encoder: Encoder, files: list[str], *, device: torch.device, told: Told
) -> None:
    """Have the frozen part of an encoder read files, and keep what it makes of them; the next files are read while it
    is at work on these."""
    parts = [files[start : start + AT_ONCE] for start in range(0, len(files), AT_ONCE)]
    done = 0
    with ThreadPoolExecutor(1) as reader, torch.inference_mode():
        for part, column in zip(parts, _ahead(reader, field, parts), strict=True):
            made = encoder.frozen_features(column.to(device))
            known.add(part, made.to(torch.float16).cpu().numpy())
            done += len(part)
            told(done, len(files))


def _ahead(reader: ThreadPoolExecutor, field: MediaField, parts: list[list[str]]) -> Iterator[Column]:
    waiting = [reader.submit(field.batch, part) for part in parts[:2]]
    for number in range(len(parts)):
        column = waiting.pop(0).result()
        if number + 2 < len(parts):
            waiting.append(reader.submit(field.batch, parts[number + 2]))
        yield column
