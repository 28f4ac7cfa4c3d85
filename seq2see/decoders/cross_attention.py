"""Cross-attention of a decoder: one attention per input, their contexts concatenated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention import (
    Attention,
    Look,
    LookEquations,
    MultiHead,
    Prepared,
    TwoLevelAttention,
    build_attention,
)
from seq2see.attention.build import AttentionSettings
from seq2see.encoders import ByInput
from seq2see.memory import Memory, View
from seq2see.symbols import Symbols, symbols_of


@dataclass
class Context:
    """The result of cross-attention: context (rows, size), of all inputs concatenated; looks: by input name."""

    context: Float[Tensor, "rows *steps size"]
    looks: dict[str, Look]

    @classmethod
    def stacked(cls, contexts: Sequence[Context]) -> Context:
        """The contexts of successive steps as one, (rows, steps, ...)."""
        looks = {name: Look.stacked([step.looks[name] for step in contexts]) for name in contexts[0].looks}
        return cls(_concatenated(looks), looks)

    def trimmed(self) -> Context:
        """The same without what only a single step needs, some of it as large as the input."""
        return Context(self.context, {name: look.trimmed() for name, look in self.looks.items()})

    @property
    def past(self) -> dict[str, Tensor]:
        """{input name: (rows, places)}, the sum of looks so far, of the scores that remember it."""
        return {name: look.past for name, look in self.looks.items() if look.past is not None}


class CrossAttention(nn.Module):
    """c_t = [c_t of the first input; c_t of the second; ...]; false where no input is attended to."""

    def __init__(self, settings: AttentionSettings, *, query: int, views: Mapping[str, View]):
        super().__init__()
        self.over: ByInput[Attention | MultiHead | TwoLevelAttention] = ByInput(
            {name: build_attention(settings, query=query, view=view) for name, view in views.items()}
        )
        self.size = sum(view.size for view in views.values())

    def __bool__(self) -> bool:
        return len(self.over) > 0

    @property
    def remembers(self) -> bool:
        """Whether a look depends on earlier ones, by its score."""
        inner = [one.inner if isinstance(one, MultiHead) else one for _, one in self.over.items()]
        return any(attention.score.remembers for attention in inner)

    def prepare(self, memory: Memory) -> dict[str, Prepared]:
        return {name: attention.prepare(memory.places[name]) for name, attention in self.over.items()}

    def begin(self, prepared: Mapping[str, Prepared], width: int) -> dict[str, Tensor]:
        """{input name: (rows, places)}, the sums of looks before the first step, of the scores that remember it."""
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
        """One look of each row at step `position`; each input has the same number of rows, one after the other."""
        looks = {}
        for name, attention in self.over.items():
            batch = prepared[name].mask.shape[0]
            look: Look = attention(
                query.view(batch, -1, query.shape[-1]),
                prepared[name],
                positions=position,
                past=_grouped(past.get(name), batch),
                forced=_grouped((forced or {}).get(name), batch),
                generator=generator,
            )
            looks[name] = look.map(lambda part: part.flatten(0, 1))
        return Context(_concatenated(looks), looks)

    def all_at_once(
        self, queries: Float[Tensor, "rows steps size"], prepared: Mapping[str, Prepared], *, position: int
    ) -> Context:
        """The looks of all steps of a target from `position` on, (rows, steps, ...), where none depends on another."""
        rows, steps, size = queries.shape
        looks = {}
        for name, attention in self.over.items():
            batch = prepared[name].mask.shape[0]
            numbers = torch.arange(position, position + steps, device=queries.device).repeat(rows // max(batch, 1))
            look: Look = attention(queries.reshape(batch, -1, size), prepared[name], positions=numbers)
            looks[name] = look.map(lambda part: part.flatten(0, 1).unflatten(0, (rows, steps)))
        return Context(_concatenated(looks), looks)

    def equations(self) -> LookEquations | None:
        """How a query becomes a context, for `show`: that of the first attention, with the windows of all."""
        equations = [attention.equations() for _, attention in self.over.items()]
        if not equations:
            return None
        return replace(equations[0], window=list(dict.fromkeys(line for each in equations for line in each.window)))

    def parameter_symbols(self) -> Symbols:
        """Those of each attention, listed as a part of their own."""
        symbols: Symbols = {}
        for key, attention in zip(self.over.keys(), self.over.values(), strict=True):
            part = f"attention over {key.replace('/', '.')}"
            for name, symbol in symbols_of(attention).items():
                symbols[f"over.{key}.{name}"] = replace(symbol, part=part)
        return symbols


def _grouped(rows: Tensor | None, batch: int) -> Tensor | None:
    return None if rows is None else rows.view(batch, -1, rows.shape[-1])


def _concatenated(looks: Mapping[str, Look]) -> Tensor:
    parts = [look.context for look in looks.values()]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
