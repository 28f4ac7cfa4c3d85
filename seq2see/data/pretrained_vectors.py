"""Pretrained word vectors: text files of word2vec, GloVe and fastText, plain or .gz."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.data.sources import check_exists, raise_error, read_lines
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError

MAX_SIZE = 10_000
"""Numbers of a vector."""


@dataclass(frozen=True)
class Vectors:
    """matrix: (symbols, size), one row per id; known: (symbols,), True where the file had a vector."""

    matrix: NDArray[np.float32]
    known: NDArray[np.bool_]
    matched: int
    total: int

    @property
    def coverage(self) -> float:
        """Share of the symbols, without special ones, that the file has."""
        return self.matched / self.total if self.total else 0.0

    @property
    def note(self) -> str:
        return f"vectors for {self.matched:,} of {self.total:,} symbols ({self.coverage:.1%})"


def read_vectors(path: str | Path, vocabulary: Vocabulary, *, generator: np.random.Generator | None = None) -> Vectors:
    """The vectors of a vocabulary's symbols; a symbol that the file lacks uses its lower-case form.

    Rows without a vector are drawn with the standard deviation of the others if a generator is given, otherwise zero.
    `<pad>` is always zero.
    """
    path = Path(path)
    check_exists(path)
    exact, lowered = _ids_by_spelling(vocabulary)
    matrix: NDArray[np.float32] | None = None
    rank = np.zeros(len(vocabulary), dtype=np.int8)  # 2: own spelling found, 1: the lower-case form
    for line, word, size, numbers in _entries(path):
        if matrix is None:
            matrix = np.zeros((len(vocabulary), size), dtype=np.float32)
        ids = [i for i in (exact.get(word),) if i is not None and rank[i] < 2]
        others = [i for i in lowered.get(word, ()) if rank[i] < 1]
        if ids or others:
            vector = _vector(numbers, size, path=path, line=line)
            matrix[others], rank[others] = vector, 1
            matrix[ids], rank[ids] = vector, 2
    if matrix is None:
        raise UserError(f"{path}: contains no vectors")
    known = rank > 0
    if not known.any():
        raise UserError(f"{path}: has no vector for any of the {len(exact):,} symbols; is it for another language?")
    if generator is not None:
        deviation = matrix[known].std()
        matrix[~known] = generator.normal(0.0, deviation, size=((~known).sum(), matrix.shape[1])).astype(np.float32)
        matrix[: min(1, len(vocabulary.specials))] = 0.0
    return Vectors(matrix, known, int(known.sum()), len(exact))


def _ids_by_spelling(vocabulary: Vocabulary) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Ids by spelling, and by lower-case form if that differs."""
    lowered: dict[str, list[int]] = {}
    for symbol, i in vocabulary.ids.items():
        if symbol != symbol.lower():
            lowered.setdefault(symbol.lower(), []).append(i)
    return vocabulary.ids, lowered


def _entries(path: Path) -> Iterator[tuple[int, str, int, str]]:
    """(line, word, size, numbers as text) of each vector. A word may contain spaces; the first vector determines the
    size."""
    size = 0
    for line, text in read_lines(path, encoding="utf-8", bad=raise_error):
        text = text.rstrip().replace("\t", " ")
        fields = text.count(" ")
        if line == 1 and _is_header(text):
            size = int(text.split()[1])
            continue
        if not text:
            continue
        size = size or fields
        if size > MAX_SIZE:
            raise UserError(f"{path}, line {line}: vectors of {size:,} numbers, at most {MAX_SIZE:,}")
        if fields < size or not size:
            raise UserError(
                f"{path}, line {line}: {fields} numbers found, {size or 'at least 1'} expected (as in the lines before)"
            )
        if fields == size:
            word, _, numbers = text.partition(" ")
        else:
            word, *rest = text.rsplit(" ", size)
            numbers = " ".join(rest)
        yield line, word, size, numbers


def _is_header(text: str) -> bool:
    """'400000 300': number and size of the vectors."""
    fields = text.split()
    return len(fields) == 2 and all(field.isascii() and field.isdigit() and len(field) < 16 for field in fields)


def _vector(numbers: str, size: int, *, path: Path, line: int) -> NDArray[np.float32]:
    try:
        vector = np.array(numbers.split(" "), dtype=np.float32)
    except ValueError:
        wrong = next((text for text in numbers.split(" ") if not _is_number(text)), numbers)
        raise UserError(
            f"{path}, line {line}: '{wrong}' is not a number; {size} numbers expected after the word"
        ) from None
    if not np.isfinite(vector).all():
        raise UserError(f"{path}, line {line}: non-finite number")
    return vector


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
