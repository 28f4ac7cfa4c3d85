"""Before the first update: what frozen networks make of all files of a run, with a word now and then on how it goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from seq2see.data.dataset import Dataset
from seq2see.data.media import MediaField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.features import keep_features

SAID_EVERY = 10.0

Say = Callable[[str], None]


def read_once(bundle: Bundle, train: Dataset, dev: Sequence[Mapping[str, str]], say: Say) -> None:
    """Every file of train and dev, in their order."""

    def files(name: str, field: MediaField) -> Iterator[str]:
        yield from (field.file(field.value(train.stores[name][row])) for row in range(len(train)))
        yield from (field.file(row[name]) for row in dev)

    keep_features(bundle, files, _Speed(say))


class _Speed:
    """Says how far it is and how fast, at most every few seconds and at the end."""

    def __init__(self, say: Say):
        self._say, self._began, self._said = say, time.perf_counter(), time.perf_counter()

    def __call__(self, name: str, done: int, of: int) -> None:
        now = time.perf_counter()
        if now - self._said > SAID_EVERY or done == of:
            self._said = now
            speed = done / max(now - self._began, 1e-9)
            self._say(f"'{name}': {done:,} of {of:,} files read by the frozen network, {speed:.0f} a second")
