"""What a caller constrains: the symbols of a step (forced and avoided prefixes, minimum length), and where the model
looks (the oracle)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from seq2see.data.vocabulary import EOS, PAD, SOS, UNK
from seq2see.errors import UserError, counted, nearest
from seq2see.search.hypotheses import JointPlaces
from seq2see.search.options import Real, SearchOptions, Weights

# ---------------- Symbols

FREE = -1

Trie = dict[int, Any]
"""Avoided prefixes by their symbols: {symbol: the Trie of what follows, None after the last symbol of a prefix}."""


class Constraints:
    """Which symbols are allowed at each step.

    prefixes: the ids that the outputs of each input begin with; avoids: whether there are prefixes to avoid, which are
    followed symbol by symbol: `begin`, `select` and `follow` say which hypotheses there are.
    """

    def __init__(self, options: SearchOptions, limits: Int[ndarray, " batch"]):
        """limits: the number of ids that can be generated for each input."""
        rows = len(limits)
        self.prefixes = _prefixes(options.prefix, rows)
        for row, (ids, limit) in enumerate(zip(self.prefixes, limits.tolist(), strict=True)):
            if len(ids) > options.max_length:
                raise UserError(f"prefix of input {row}: {len(ids)} tokens, but max_length is {options.max_length}")
            _check_ids(ids, f"prefix of input {row}", symbols=limit)
        self.longest = max(map(len, self.prefixes), default=0)
        padded = [ids + [FREE] * (self.longest - len(ids)) for ids in self.prefixes]
        self._wanted = np.array(padded, dtype=np.int64).reshape(rows, self.longest)
        self._min_length = options.min_length
        self._never = [PAD, SOS, UNK] if options.avoid_unknown else [PAD, SOS]
        self._tries = _avoided(options, self.prefixes, limits.tolist())
        self.avoids = any(self._tries)
        self._following: list[Trie | None] = []

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""
        if self.avoids:
            self._following = [trie for trie in self._tries for _ in range(width)]

    def select(self, rows: Int[ndarray, " chosen"]) -> None:
        """Continue with these hypotheses."""
        if self.avoids:
            self._following = [self._following[row] for row in rows.tolist()]

    def follow(self, symbols: Int[ndarray, " rows"]) -> None:
        """Extend every hypothesis by its symbol."""
        if self.avoids:
            pairs = zip(self._following, symbols.tolist(), strict=True)
            self._following = [None if trie is None else trie.get(symbol) for trie, symbol in pairs]

    def never(self, step: int) -> list[int]:
        """The symbols that no output may have at this step."""
        return [*self._never, EOS] if step < self._min_length else self._never

    def forced(self, step: int, inputs: Int[ndarray, " inputs"]) -> Int[ndarray, " inputs"] | None:
        """The symbols of the prefixes at this step, -1 where an input is free; None where all are."""
        if step >= self.longest:
            return None
        wanted: ndarray = self._wanted[inputs, step]
        return wanted if (wanted != FREE).any() else None

    def forbid(
        self, scores: Float[ndarray, "inputs width symbols"], step: int, inputs: Int[ndarray, " inputs"]
    ) -> Float[ndarray, "inputs width symbols"]:
        """Set the scores of forbidden symbols to -inf, in place; inputs: their numbers in the whole batch."""
        wanted = self.forced(step, inputs)
        rows = None if wanted is None else np.flatnonzero(wanted != FREE)
        kept = None if rows is None or wanted is None else scores[rows, :, wanted[rows]]
        scores[..., self.never(step)] = -np.inf
        if rows is not None and wanted is not None:
            scores[rows] = -np.inf
            scores[rows, :, wanted[rows]] = kept
        flat = scores.reshape(-1, scores.shape[-1])
        for row, trie in enumerate(self._following):
            if trie is not None:
                flat[row, [symbol for symbol, rest in trie.items() if rest is None]] = -np.inf
        return scores

    def check_possible(self, scores: Float[ndarray, "inputs width symbols"], inputs: Int[ndarray, " inputs"]) -> None:
        """Refuse avoided prefixes that leave a hypothesis, of which there is no other, without a symbol."""
        if self.avoids:
            for row in inputs[(scores == -np.inf).all(-1).any(-1)].tolist():
                raise nothing_left(row)


def nothing_left(row: int) -> UserError:
    """Every continuation of the input's hypotheses is avoided."""
    return UserError(f"avoid_prefixes of input {row}: nothing is left to write; avoid less, or use a wider beam")


def _prefixes(prefix: Sequence[int] | Sequence[Sequence[int]], rows: int) -> list[list[int]]:
    if all(isinstance(part, int) for part in prefix):
        return [list(prefix)] * rows  # type: ignore[arg-type]
    if len(prefix) != rows:
        raise UserError(f"one prefix for each input is needed: {rows} inputs, {len(prefix)} prefixes")
    return [list(row) for row in prefix]  # type: ignore[arg-type]


def _check_ids(ids: Sequence[int], where: str, *, symbols: int) -> None:
    for place, token in enumerate(ids):
        last = place == len(ids) - 1
        if not 0 <= token < symbols or token in (PAD, SOS) or (token == EOS and not last):
            raise UserError(
                f"{where}: token {place} is {token}; allowed: ids below {symbols} other than "
                f"<pad> ({PAD}) and <sos> ({SOS}), and <eos> ({EOS}) only at the end"
            )


def _avoided(options: SearchOptions, prefixes: Sequence[Sequence[int]], limits: Sequence[int]) -> list[Trie]:
    """The avoided prefixes of each input; prefixes: those that are forced; limits: the number of ids of each input."""
    rows = len(limits)
    each: Sequence[Any] = options.avoid_prefixes
    if not options.avoided_by_input or not each:
        each = [each] * rows
    if len(each) != rows:
        raise UserError(f"one list of avoid_prefixes for each input is needed: {rows} inputs, {len(each)} lists")
    tries: list[Trie] = []
    for row, (own, forced, symbols) in enumerate(zip(each, prefixes, limits, strict=True)):
        shared = row > 0 and symbols == limits[row - 1] and own == each[row - 1]
        tries.append(tries[-1] if shared else _trie(own, row, symbols=symbols, longest=options.max_length))
        for number, ids in enumerate(own if forced else ()):
            if list(forced[: len(ids)]) == list(ids):
                where = f"avoid_prefixes of input {row}, number {number}"
                raise UserError(f"{where}: the forced prefix begins with it, so that no output can avoid it")
    return tries


def _trie(prefixes: Sequence[Sequence[int]], row: int, *, symbols: int, longest: int) -> Trie:
    """The avoided prefixes of an input, without those that are longer than any output and so avoided anyway."""
    trie: Trie = {}
    for number, ids in enumerate(prefixes):
        where = f"avoid_prefixes of input {row}, number {number}"
        if not ids:
            raise UserError(f"{where}: empty, and every output begins with nothing; give one symbol or more")
        _check_ids(ids, where, symbols=symbols)
        if len(ids) <= longest:
            _insert(trie, ids)
    return trie


def _insert(trie: Trie, ids: Sequence[int]) -> None:
    """Add a prefix; with one that is shorter, a longer one is avoided already."""
    for token in ids[:-1]:
        rest = trie.setdefault(token, {})
        if rest is None:
            return
        trie = rest
    trie[ids[-1]] = None


# ---------------- Oracle attention: weights that the caller gives for some steps, from which the decoder continues

TOLERANCE = 1e-3
"""How far from 1 the sum of weights may be, since people round numbers."""


class Oracle:
    """The caller's weights by step: {input name: (batch, places)}, NaN in rows that are free, zeros at padding."""

    def __init__(
        self,
        weights: Weights | Sequence[Weights] | None,
        places: Mapping[str, JointPlaces],
        *,
        rows: int,
        max_length: int,
    ):
        self._steps: dict[int, dict[str, ndarray]] = {}
        for row, steps in enumerate(_oracles(weights, rows)):
            for step, maps in steps.items():
                if not 0 <= step < max_length:
                    raise UserError(f"oracle: step {step}; allowed: 0 to {max_length - 1} (max_length {max_length})")
                for name, look in maps.items():
                    self._place(step, name, places, row=row, weights=look)

    def at(
        self, step: int, inputs: Int[ndarray, " inputs"], *, width: int
    ) -> dict[str, Float[ndarray, "rows _"]] | None:
        """The weights at this step for `width` hypotheses of each input (by its number in the whole batch), if any."""
        if step not in self._steps:
            return None
        return {name: rows[inputs].repeat(width, 0) for name, rows in self._steps[step].items()}

    def _place(
        self,
        step: int,
        name: str,
        places: Mapping[str, JointPlaces],
        *,
        row: int,
        weights: Sequence[Real] | NDArray[Any],
    ) -> None:
        where = f"oracle of input {row}, step {step}"
        if not places:
            raise UserError(f"{where}: this model has no attention, so there are no weights to hand in")
        if name not in places:
            raise UserError(f"{where}: '{name}' is not looked at{nearest(name, places)}; allowed: {', '.join(places)}")
        if not places[name].agreed[row]:
            raise UserError(f"{where}: the models of the ensemble see different places in '{name}'")
        mask = places[name].mask
        real = int(mask[row].sum())
        if len(weights) != real:
            raise UserError(
                f"{where}: {counted(len(weights), 'weight')} for '{name}', which has {counted(real, 'place')}"
            )
        wrong = [weight for weight in weights if not 0 <= weight <= 1 + TOLERANCE]
        if wrong:
            raise UserError(f"{where}: the weights for '{name}' must be numbers from 0 to 1, got {wrong[0]}")
        total = math.fsum(weights)
        if real and abs(total - 1) > TOLERANCE:
            raise UserError(f"{where}: the weights for '{name}' must sum to 1, got {total:g}")
        maps = self._steps.setdefault(step, {})
        if name not in maps:
            maps[name] = np.full(mask.shape, np.nan, dtype=np.float32)
        maps[name][row] = 0.0
        maps[name][row, mask[row]] = weights


def _oracles(weights: Weights | Sequence[Weights] | None, rows: int) -> list[Weights]:
    if weights is None:
        return []
    if isinstance(weights, Mapping):
        return [weights] * rows
    if len(weights) != rows:
        raise UserError(f"one oracle for each input is needed: {rows} inputs, {len(weights)} oracles")
    return list(weights)
