"""Cross attention to one or several inputs: one attention per input, their contexts joined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention import Attention, Look, MultiHead, Prepared, TwoLevelAttention, build_attention
from seq2see.encoders import ByInput
from seq2see.memory import Memory, View
from seq2see.settings.attention import AttentionSettings


@dataclass
class Context:
    """context: (rows, size), all attentions joined; looks: by input name, rows first."""

    context: Float[Tensor, "rows *steps size"]
    looks: dict[str, Look]

    @classmethod
    def stacked(cls, seen: Sequence[Context]) -> Context:
        """What was seen at successive steps, (rows, steps, ...)."""
        looks = {name: Look.stacked([one.looks[name] for one in seen]) for name in seen[0].looks}
        return cls(_joined(looks), looks)

    def kept(self) -> Context:
        """The same without what only its own step needs, and what is as large as the input: for lists of steps."""
        return Context(
            self.context, {name: replace(look, energies=None, past=None) for name, look in self.looks.items()}
        )

    @property
    def past(self) -> dict[str, Tensor]:
        """{name: (rows, places)}, what the attentions that remember go on with."""
        return {name: look.past for name, look in self.looks.items() if look.past is not None}


class CrossAttention(nn.Module):
    """c_t = [c_t of the first input; c_t of the second; ...]; without attention an empty look."""

    def __init__(self, settings: AttentionSettings, *, query: int, views: Mapping[str, View]):
        super().__init__()
        self.over: ByInput[Attention | MultiHead | TwoLevelAttention] = ByInput(
            {name: build_attention(settings, query=query, view=view) for name, view in views.items()}
        )
        self.size = sum(view.size for view in views.values())

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
        position: int,
        past: Mapping[str, Tensor],
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Context:
        """One look of each row at step `position`; rows are `width` in a run per input (found from the sizes)."""
        looks = {}
        for name, attention in self.over.items():
            batch = len(prepared[name].mask)
            look: Look = attention(
                query.view(batch, -1, query.shape[-1]),
                prepared[name],
                positions=position,
                past=_grouped(past.get(name), batch),
                forced=_grouped((forced or {}).get(name), batch),
                generator=generator,
            )
            looks[name] = look.map(lambda part: part.flatten(0, 1))
        return Context(_joined(looks), looks)

    def all_at_once(
        self, queries: Float[Tensor, "rows steps size"], prepared: Mapping[str, Prepared], *, position: int
    ) -> Context:
        """The looks of a whole target from step `position` on, none depending on an earlier one: (rows, steps, ...)."""
        rows, steps, size = queries.shape
        looks = {}
        for name, attention in self.over.items():
            batch = len(prepared[name].mask)
            numbers = torch.arange(position, position + steps, device=queries.device).repeat(rows // max(batch, 1))
            look: Look = attention(queries.reshape(batch, -1, size), prepared[name], positions=numbers)
            looks[name] = look.map(lambda part: part.flatten(0, 1).unflatten(0, (rows, steps)))
        return Context(_joined(looks), looks)


def _grouped(rows: Tensor | None, batch: int) -> Tensor | None:
    return None if rows is None else rows.view(batch, -1, rows.shape[-1])


def _joined(looks: Mapping[str, Look]) -> Tensor:
    parts = [look.context for look in looks.values()]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
