"""Constraints on the symbols of a step: forced prefixes, minimum length, and never <pad> or <sos>."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.batches import EOS, PAD, SOS, UNK
from seq2see.errors import UserError
from seq2see.search.options import SearchOptions
from seq2see.search.stepper import CopyVocabulary

FREE = -1


class Constraints:
    """Which symbols are allowed at each step; prefixes: the ids that the outputs of each input begin with."""

    def __init__(self, options: SearchOptions, *, writable: CopyVocabulary, device: torch.device):
        limits = writable.limits.tolist()
        rows = len(limits)
        self.prefixes = _per_row(options.prefix, rows)
        for row, (ids, limit) in enumerate(zip(self.prefixes, limits, strict=True)):
            _check(ids, row, symbols=limit, longest=options.max_length)
        self.longest = max(map(len, self.prefixes), default=0)
        padded = [ids + [FREE] * (self.longest - len(ids)) for ids in self.prefixes]
        self._wanted = torch.tensor(padded, dtype=torch.long, device=device).view(rows, self.longest)
        self._min_length = options.min_length
        self._never = [PAD, SOS, UNK] if options.avoid_unknown else [PAD, SOS]

    def forbid(
        self, scores: Float[Tensor, "inputs width symbols"], step: int, inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "inputs width symbols"]:
        """Set the scores of forbidden symbols to -inf, in place; inputs: their numbers in the whole batch."""
        wanted = self._wanted[inputs, step] if step < self.longest else None
        kept = None if wanted is None else _at(scores, wanted.clamp(min=0))
        scores[..., self._never] = -torch.inf
        if step < self._min_length:
            scores[..., EOS] = -torch.inf
        if wanted is not None and kept is not None:
            forced = wanted != FREE
            scores[forced] = -torch.inf
            scores[forced, :, wanted[forced]] = kept[forced]
        return scores


def _at(scores: Float[Tensor, "inputs width symbols"], ids: Int[Tensor, " inputs"]) -> Float[Tensor, "inputs width"]:
    return scores.gather(2, ids[:, None, None].expand(-1, scores.shape[1], 1)).squeeze(-1)


def _per_row(prefix: Sequence[int] | Sequence[Sequence[int]], rows: int) -> list[list[int]]:
    if all(isinstance(part, int) for part in prefix):
        return [list(prefix)] * rows  # type: ignore[arg-type]
    if len(prefix) != rows:
        raise UserError(f"one prefix for each input is needed: {rows} inputs, {len(prefix)} prefixes")
    return [list(row) for row in prefix]  # type: ignore[arg-type]


def _check(ids: list[int], row: int, *, symbols: int, longest: int) -> None:
    if len(ids) > longest:
        raise UserError(f"prefix of input {row}: {len(ids)} tokens, but max_length is {longest}")
    for place, token in enumerate(ids):
        last = place == len(ids) - 1
        if not 0 <= token < symbols or token in (PAD, SOS) or (token == EOS and not last):
            raise UserError(
                f"prefix of input {row}: token {place} is {token}; allowed: ids below {symbols} other than "
                f"<pad> ({PAD}) and <sos> ({SOS}), and <eos> ({EOS}) only at the end"
            )
