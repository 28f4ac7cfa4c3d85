"""Looking at one or several inputs at once: one attention per input, their contexts joined into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention import Attention, Prepared, build_score
from seq2see.encoders import ByInput
from seq2see.memory import Memory
from seq2see.recipe.schema import AttentionSettings


@dataclass
class Seen:
    """context: (rows, size), all attentions joined; weights, energies, contexts and past by input name, rows first."""

    context: Float[Tensor, "rows *steps size"]
    weights: dict[str, Tensor]
    energies: dict[str, Tensor]
    contexts: dict[str, Tensor]
    past: dict[str, Tensor]


class Looking(nn.Module):
    """c_t = [c_t of the first input; c_t of the second; ...]; without attention an empty look."""

    def __init__(self, settings: AttentionSettings, *, query: int, sizes: Mapping[str, int]):
        super().__init__()
        options = settings.score_settings
        self.over: ByInput[Attention] = ByInput(
            {name: Attention(build_score(settings.score, query, size, options)) for name, size in sizes.items()}
        )
        self.size = sum(sizes.values())

    def __bool__(self) -> bool:
        return len(self.over) > 0

    def prepare(self, memory: Memory) -> dict[str, Prepared]:
        return {name: attention.prepare(memory.places[name]) for name, attention in self.over.items()}

    def begin(self, prepared: Mapping[str, Prepared], width: int) -> dict[str, Tensor]:
        """{name: (rows, places)} for the attentions that remember their looks."""
        past = {name: attention.begin(prepared[name], width) for name, attention in self.over.items()}
        return {name: first.flatten(0, 1) for name, first in past.items() if first is not None}

    def forward(
        self,
        query: Float[Tensor, "rows size"],
        prepared: Mapping[str, Prepared],
        *,
        past: Mapping[str, Tensor],
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
    ) -> Seen:
        """One look of each row; rows are `width` in a run per input (width found from the sizes)."""
        seen = Seen(query, {}, {}, {}, {})
        for name, attention in self.over.items():
            ready = prepared[name]
            batch = len(ready.mask)
            queries = query.view(batch, -1, query.shape[-1])
            look = attention(
                queries,
                ready,
                past=_grouped(past.get(name), batch),
                forced=_grouped((forced or {}).get(name), batch),
            )
            seen.weights[name] = look.weights.flatten(0, 1)
            seen.energies[name] = look.energies.flatten(0, 1)
            seen.contexts[name] = look.context.flatten(0, 1)
            if look.past is not None:
                seen.past[name] = look.past.flatten(0, 1)
        seen.context = _joined(seen.contexts)
        return seen

    def all_at_once(self, queries: Float[Tensor, "rows steps size"], prepared: Mapping[str, Prepared]) -> Seen:
        """The looks of a whole target, where no look depends on an earlier one: (rows, steps, ...) throughout."""
        rows, steps, size = queries.shape
        seen = self(queries.reshape(rows * steps, size), prepared, past={})
        weights, energies, contexts = (
            {name: part.unflatten(0, (rows, steps)) for name, part in parts.items()}
            for parts in (seen.weights, seen.energies, seen.contexts)
        )
        return Seen(seen.context.unflatten(0, (rows, steps)), weights, energies, contexts, {})


def _grouped(rows: Tensor | None, batch: int) -> Tensor | None:
    return None if rows is None else rows.view(batch, -1, rows.shape[-1])


def _joined(contexts: Mapping[str, Tensor]) -> Tensor:
    parts = list(contexts.values())
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
