"""One contiguous text for language models: lanes read side by side, in chunks that follow one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.data.batches import SOS
from seq2see.data.store import RaggedWriter
from seq2see.errors import UserError
from seq2see.modalities.text import TextField


class Chunk(NamedTuple):
    """inputs, targets: (lanes, length); the target of a place is the input of the next."""

    inputs: Int[Tensor, "lanes length"]
    targets: Int[Tensor, "lanes length"]


class Stream:
    """Ids of a whole text, newlines included. ids: (symbols,), in memory or mapped from disk."""

    def __init__(self, ids: NDArray[np.int32]):
        if len(ids) < 1:
            raise UserError("the text is empty: there is nothing to learn from")
        self.ids = ids

    @classmethod
    def build(cls, field: TextField, lines: Iterable[str], *, path: Path | None = None) -> Stream:
        """Encode lines (without their newlines) as they come by; into files under `path` where one is given."""
        with RaggedWriter(path) as writer:
            for line in lines:
                writer.append(field.vocabulary.encode(field.stream_symbols(line)))
            return cls(writer.finish().flat)

    def __len__(self) -> int:
        return len(self.ids)

    def lanes(self, count: int) -> int:
        """How many lanes there can be: as many as asked for, unless the text is shorter than that."""
        return min(count, len(self.ids))

    def steps(self, *, bptt: int, lanes: int) -> int:
        """How many chunks there are."""
        return -(-self._length(lanes) // bptt)

    def _length(self, lanes: int) -> int:
        return len(self.ids) // self.lanes(lanes)

    def chunks(self, *, bptt: int, lanes: int, start: int = 0) -> Iterator[Chunk]:
        """Chunks in order, from chunk number `start` on (to resume).

        The text is cut into lanes of equal length (what is left over at its end, less than one symbol per lane, is not
        read); row l of a chunk goes on where row l of the chunk before it ended. Each lane begins with `<sos>`, so that
        a model learns to begin.
        """
        lanes = self.lanes(lanes)
        length = self._length(lanes)
        rows = np.asarray(self.ids[: lanes * length]).reshape(lanes, length)
        for first in range(start * bptt, length, bptt):
            last = min(first + bptt, length)
            targets = rows[:, first:last].astype(np.int64)
            before = rows[:, first - 1 : first] if first else np.full((lanes, 1), SOS)
            inputs = np.concatenate([before, targets[:, :-1]], axis=1, dtype=np.int64)
            yield Chunk(torch.from_numpy(inputs), torch.from_numpy(targets))
