"""The index of a model's training rows by their states, which is stored in the model's folder and searched.

An index has the vector of each row's input (the encoder's summary) and, for each step of its output, what the output
layer saw (the decoder's features while the row's own output is followed), as unit vectors in half precision. A search
multiplies blocks of them with one vector; the largest products are the largest cosines. Of more than a million vectors
it multiplies those that are likely to be near (`vector_cells.py`).

The rows themselves are in the index too, so that they can be shown. It is therefore no part of packed or published
models. All of it is one safetensors file of plain arrays with a checksum. Its header says what it belongs to, and is
checked before anything else is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float16, Float32, Int32, Int64, UInt8
from numpy import ndarray

from seq2see.errors import UserError, counted
from seq2see.files import MEBIBYTE
from seq2see.pipeline.vector_cells import Cells
from seq2see.pipeline.weights import Shape, check_finite, read_header, read_tensors, write_tensors

FORMAT = "2"
EXACT_VECTORS = 1 << 20
"""Rows, and steps of all rows, that are compared one by one; of more, those in some cells (`vector_cells.py`)."""
MOST_VECTORS = 1 << 23
"""Rows, and steps of all rows, that an index may have."""
MAX_STEPS = 2_000
"""Steps of a row's output that are indexed; requests have no longer outputs."""
MAX_VALUE = 2_000
"""Characters of a value that are stored."""
MAX_SYMBOL = 100
"""Characters of a symbol that are stored."""
MAX_BYTES = 1 << 32
MAX_TEXTS = 1 << 28
"""Bytes of the stored rows."""
UTF_8 = 4
"""Bytes of a character, at most."""
BLOCK_ROWS = 16_384
"""Vectors that are multiplied at once, in single precision."""
FEWER = "index fewer rows (--rows)"
MAKE = "make one of its training table: seq2see nearest MODEL --data TABLE"


@dataclass(frozen=True)
class Texts:
    """Texts as UTF-8, one after the other: two arrays, of which only the texts that are shown become strings.

    bounds: (texts + 1,), where each begins, and the end.
    """

    content: UInt8[ndarray, " bytes"]
    bounds: Int64[ndarray, " bounds"]

    @classmethod
    def of(cls, texts: Sequence[str], *, longest: int) -> Texts:
        """The first `longest` characters of each text."""
        encoded = [text[:longest].encode(errors="replace") for text in texts]
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds_of(map(len, encoded)))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> str:
        return self.content[self.bounds[number] : self.bounds[number + 1]].tobytes().decode(errors="replace")


@dataclass
class RowIndex:
    """The training rows of a model, with their vectors.

    columns: the names of the inputs; values: of each row its inputs in this order and its output, as the table has
    them; vocabulary: the symbols of all outputs; symbols: the number in it of each step's symbol, `<eos>` included;
    inputs: (rows, size), empty vectors for a language model; steps: (steps, size), those of all rows one after the
    other, none where outputs are numbers; starts: (rows + 1,), where the steps of each row begin; weights: the checksum
    of the weights that made these vectors; cells: of `inputs` and of `steps`, where these are more than EXACT_VECTORS.
    """

    columns: list[str]
    values: Texts
    vocabulary: Texts
    symbols: Int32[ndarray, " steps"]
    inputs: Float16[ndarray, "rows size"]
    steps: Float16[ndarray, "steps width"]
    starts: Int64[ndarray, " bounds"]
    weights: str = ""
    cells: Mapping[str, Cells] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.inputs)

    def row(self, number: int) -> dict[str, str]:
        """The inputs of a row by name."""
        first = number * (len(self.columns) + 1)
        return {name: self.values[place] for place, name in enumerate(self.columns, first)}

    def output(self, number: int) -> str:
        """The output of a row."""
        return self.values[(number + 1) * (len(self.columns) + 1) - 1]

    def output_symbols(self, number: int) -> list[str]:
        """The symbols of a row's output, one for each step."""
        own = self.symbols[self.starts[number] : self.starts[number + 1]]
        return [self.vocabulary[symbol] for symbol in own.tolist()]

    def nearest_inputs(self, vector: Float32[ndarray, " size"], k: int) -> list[tuple[int, float]]:
        """The rows whose inputs are nearest to the vector: (row, cosine), nearest first."""
        places, cosines = self._compare("inputs", vector)
        return [(int(places[number]), cosine) for number, cosine in _largest(cosines, k)]

    def nearest_steps(self, vector: Float32[ndarray, " width"], k: int) -> list[tuple[int, int, float]]:
        """The rows with the steps nearest to the vector: (row, its nearest step, cosine), nearest first."""
        places, cosines = self._compare("steps", vector)
        if not len(places):
            return []
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))[places]
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        ends = np.append(firsts[1:], len(rows))
        nearest = []
        for number, cosine in _largest(np.maximum.reduceat(cosines, firsts), k):
            first, row = firsts[number], int(rows[firsts[number]])
            step = places[first + cosines[first : ends[number]].argmax()] - self.starts[row]
            nearest.append((row, int(step), cosine))
        return nearest

    def _compare(
        self, name: str, vector: Float32[ndarray, " size"]
    ) -> tuple[Int64[ndarray, " places"], Float32[ndarray, " places"]]:
        """(places in ascending order, the cosine of each with the vector) of all stored vectors, or of likely ones."""
        vectors = getattr(self, name)
        if vectors.shape[1] != len(vector):
            raise UserError(
                f"the {name} of the index have {vectors.shape[1]} numbers, those of the model {len(vector)}: make the "
                "index again"
            )
        unit = vector / max(float(np.linalg.norm(vector)), 1e-12)
        if name not in self.cells:
            return np.arange(len(vectors)), _cosines(vectors, unit)
        places = self.cells[name].near(unit)
        return places, _cosines(vectors, unit, places)

    def save(self, path: Path) -> None:
        """Write the index as a whole, or leave the old one; a UserError where it is larger than an index may be."""
        arrays = {name: getattr(self, name) for name in ("inputs", "steps", "starts", "symbols")}
        for name in ("values", "vocabulary"):
            texts = getattr(self, name)
            arrays |= {name: texts.content, f"{name}_bounds": texts.bounds}
        for name, cells in self.cells.items():
            arrays |= {f"{name}_centres": cells.centres, f"{name}_cells": cells.cell_of}
        problem = _excess({name: array.shape for name, array in arrays.items()})
        if sum(array.nbytes for array in arrays.values()) > MAX_BYTES - MEBIBYTE:
            problem = problem or f"it takes more than {MAX_BYTES:,} bytes"
        if problem:
            raise UserError(f"the index is too large: {problem}; {FEWER}")
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        write_tensors(path, tensors, metadata=_metadata(self.columns, self.weights))

    @classmethod
    def load(cls, path: Path, *, columns: Sequence[str], weights: str) -> RowIndex:
        """Read an index of these inputs and weights; a UserError where it is another's, damaged, or too large."""
        _check_header(path, columns, weights)
        # Copies: arrays of a mapped file that is cut short afterwards would end the process.
        arrays: dict[str, Any] = {name: np.array(tensor.numpy()) for name, tensor in read_tensors(path).items()}
        for name in ("values", "vocabulary"):
            arrays[name] = Texts(arrays[name], arrays.pop(f"{name}_bounds"))
        for name, array in arrays.items():
            for start in range(0, len(array) if isinstance(array, ndarray) else 0, BLOCK_ROWS):
                check_finite({name: torch.from_numpy(array[start : start + BLOCK_ROWS])}, path=path)
        large = [name for name in ("inputs", "steps") if is_large(arrays[name].shape)]
        cells = {name: (arrays.pop(f"{name}_centres"), arrays.pop(f"{name}_cells")) for name in large}
        index = cls(columns=[*columns], weights=weights, **arrays)
        problem = index._problem()
        if not problem:
            try:
                index.cells = {name: Cells(*parts) for name, parts in cells.items()}
            except ValueError as error:
                problem = str(error)
        if problem:
            raise UserError(f"{path}: damaged: {problem}")
        return index

    def _problem(self) -> str:
        """What is wrong with the numbers of an index whose header is right; empty where nothing is."""
        parts = {
            "starts": (self.starts, len(self.steps), MAX_STEPS),
            "values_bounds": (self.values.bounds, len(self.values.content), MAX_VALUE * UTF_8),
            "vocabulary_bounds": (self.vocabulary.bounds, len(self.vocabulary.content), MAX_SYMBOL * UTF_8),
        }
        for name, (bounds, end, most) in parts.items():
            inside = bounds[0] == 0 and bounds[-1] == end and bounds.min() == 0 and bounds.max() == end
            if not inside or (len(bounds) > 1 and not 0 <= np.diff(bounds).min() <= np.diff(bounds).max() <= most):
                return f"{name} has to rise from 0 to {end:,}, by at most {most:,} at once"
        if len(self.symbols) and not 0 <= self.symbols.min() <= self.symbols.max() < len(self.vocabulary):
            return f"symbols are not those of a vocabulary of {len(self.vocabulary):,}"
        return ""


TENSORS: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("inputs", "steps"), ("F16", 2)),
    **dict.fromkeys(("starts", "values_bounds", "vocabulary_bounds"), ("I64", 1)),
    **dict.fromkeys(("values", "vocabulary"), ("U8", 1)),
    "symbols": ("I32", 1),
}
"""The type and the number of dimensions of each tensor."""
CELLS: dict[str, tuple[str, int]] = {"centres": ("F16", 2), "cells": ("I32", 1)}
"""The same of those that large ones among `inputs` and `steps` have too."""


def is_large(shape: Shape) -> bool:
    """Whether vectors (number, size) are too many to be compared one by one; those without numbers never are."""
    return bool(shape) and shape[0] > EXACT_VECTORS and 0 not in shape


def _metadata(columns: Sequence[str], weights: str) -> dict[str, str]:
    return {"format": FORMAT, "columns": json.dumps([*columns]), "weights": weights}


def _check_header(path: Path, columns: Sequence[str], weights: str) -> None:
    """Refuse what is no index of this model, or larger than one may be, before more than its header is read."""
    if path.is_file() and path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path}: {path.stat().st_size:,} bytes; an index has at most {MAX_BYTES:,}")
    metadata, tensors = read_header(path)
    foreign = _foreign(metadata, _metadata(columns, weights))
    if foreign:
        raise UserError(f"{path}: {foreign}; {MAKE}")
    problem = _mistyped(tensors) or _miscounted({name: shape for name, (_, shape) in tensors.items()}, len(columns))
    if problem:
        raise UserError(f"{path}: damaged: {problem}")


def _foreign(metadata: Mapping[str, str], expected: Mapping[str, str]) -> str:
    """Why an index is not one of this model; empty where it is."""
    reasons = {
        "format": "an index of another format",
        "columns": "that of another model, with other inputs",
        "weights": "that of other weights: the model was trained on since",
    }
    return next((reason for name, reason in reasons.items() if metadata.get(name) != expected[name]), "")


def _mistyped(tensors: Mapping[str, tuple[str, Shape]]) -> str:
    """Which tensors are missing or of the wrong type; empty where none is."""
    expected = dict(TENSORS)
    for name in ("inputs", "steps"):
        if name in tensors and is_large(tensors[name][1]):
            expected |= {f"{name}_{part}": kind for part, kind in CELLS.items()}
    if set(tensors) != set(expected):
        return f"{', '.join(sorted(tensors))[:100]}; expected: {', '.join(sorted(expected))}"
    for name, (kind, dimensions) in expected.items():
        if tensors[name][0] != kind or len(tensors[name][1]) != dimensions:
            return f"{name} has to be of type {kind} with {counted(dimensions, 'dimension')}"
    return ""


def _miscounted(shapes: Mapping[str, Shape], columns: int) -> str:
    """Which tensors have too many entries, or not as many as there are rows and steps; empty where none has."""
    rows, steps = shapes["inputs"][0], shapes["steps"][0]
    counts = {"starts": rows + 1, "symbols": steps, "values_bounds": rows * (columns + 1) + 1}
    for name, count in counts.items():
        if shapes[name][0] != count:
            return f"{name} has {shapes[name][0]:,} entries, not {count:,}"
    for name in ("inputs", "steps"):
        if is_large(shapes[name]):
            (count, width), (centres, size) = shapes[name], shapes[f"{name}_centres"]
            if shapes[f"{name}_cells"] != (count,) or not 1 <= centres <= count or size != width:
                return f"{centres:,} centres of {size:,} numbers, and {shapes[f'{name}_cells'][0]:,} cells"
    if not 1 <= shapes["vocabulary_bounds"][0] <= steps + 1:
        return f"a vocabulary of {shapes['vocabulary_bounds'][0] - 1:,} symbols for {steps:,} steps"
    return _excess(shapes)


def _excess(shapes: Mapping[str, Shape]) -> str:
    """What of an index is larger than it may be; empty where nothing is."""
    limits = {"inputs": MOST_VECTORS, "steps": MOST_VECTORS, "values": MAX_TEXTS, "vocabulary": MAX_TEXTS}
    for name, most in limits.items():
        if shapes[name][0] > most:
            return f"{name} has {shapes[name][0]:,} entries; allowed: at most {most:,}"
    return ""


def bounds_of(lengths: Iterable[int]) -> Int64[ndarray, " bounds"]:
    """Where parts of these lengths begin that stand one after the other, and the end."""
    return np.cumsum([0, *lengths], dtype=np.int64)


def _cosines(
    vectors: Float16[ndarray, "rows size"],
    unit: Float32[ndarray, " size"],
    places: Int64[ndarray, " places"] | None = None,
) -> Float32[ndarray, " cosines"]:
    """The cosine of every stored unit vector, or of those at some places, with this one, in blocks."""
    cosines = np.empty(len(vectors) if places is None else len(places), dtype=np.float32)
    for start in range(0, len(cosines), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        block = vectors[part if places is None else places[part]]
        cosines[part] = block.astype(np.float32) @ unit
    return cosines.clip(-1, 1)


def _largest(values: Float32[ndarray, " number"], k: int) -> list[tuple[int, float]]:
    """(place, value) of the k largest, the largest first, of equal ones the first."""
    few = np.argpartition(-values, k)[:k] if k < len(values) else np.arange(len(values))
    order = few[np.lexsort((few, -values[few]))]
    return [(int(place), float(values[place])) for place in order]
