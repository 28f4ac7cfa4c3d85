"""Documents as they are stored and as a model is fed with them: words in sentences, sentences in documents.

A stored row is flat: the words of a sentence, `<eos>`, the words of the next, `<eos>`. No word has that id, so the two
levels need one list of ids and nothing else on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from seq2see.data.batches import EOS
from seq2see.memory import Copyable


@dataclass
class Nested:
    """Words of one column for a batch of documents.

    ids: (batch, sentences, words), 0 where there is nothing; mask: True where a word is real; sentences have at least
    one word, and come before the empty ones. symbols: the words as they were written, by document and sentence;
    texts: the sentences as they were written; copyable: what the output would write for the words of each document,
    one after the other, where a model may copy them. No axis is shorter than 1.
    """

    ids: Int[Tensor, "batch sentences words"]
    mask: Bool[Tensor, "batch sentences words"]
    symbols: list[list[list[str]]] | None = None
    texts: list[list[str]] | None = None
    copyable: Copyable | None = None

    def to(self, device: torch.device | str) -> Nested:
        copyable = None if self.copyable is None else self.copyable.to(device)
        return replace(self, ids=self.ids.to(device), mask=self.mask.to(device), copyable=copyable)

    @property
    def sentences(self) -> Bool[Tensor, "batch sentences"]:
        """Which sentences are real."""
        return self.mask.any(-1)


def flattened(sentences: Iterable[Sequence[int]]) -> list[int]:
    """A document as a stored row.

    >>> flattened([[5, 6], [7]])
    [5, 6, 3, 7, 3]
    """
    return [i for sentence in sentences for i in (*sentence, EOS)]


def nest(flat: NDArray[np.integer], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Nested:
    """Stored rows `flat[start : start + length]` as a batch.

    flat: (symbols,); starts, lengths: (batch,)
    """
    rows = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    ids = np.asarray(flat[np.repeat(starts - first, lengths) + np.arange(len(rows))], dtype=np.int64)
    ends = ids == EOS
    before = np.cumsum(ends) - ends  # sentences that ended before this word, in the whole batch
    opened = np.append(0, np.flatnonzero(ends) + 1)  # where each sentence begins
    sentence = before - np.append(before, 0)[np.minimum(first, len(rows))][rows]
    word = np.arange(len(rows)) - opened[before]
    shape = (len(lengths), max(int(sentence.max(initial=0)) + 1, 1), max(int(word.max(initial=0)), 1))
    out, real = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
    where = rows[~ends], sentence[~ends], word[~ends]
    out[where] = ids[~ends]
    real[where] = True
    return Nested(torch.from_numpy(out), torch.from_numpy(real))
