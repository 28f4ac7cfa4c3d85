"""One layer of a Transformer's decoder: back at what was written, then at the input, then a thought for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import dropout

from seq2see.attention import SelfAttention
from seq2see.decoders.looking import Looking
from seq2see.encoders.feed_forward import FeedForward
from seq2see.memory import View
from seq2see.recipe.schema import AttentionSettings, DecoderSettings

Cache = tuple[Tensor, ...]
"""Keys and values of the steps so far, each (rows, heads, steps, part)."""


class DecoderLayer(nn.Module):
    """x = x + self(norm(x)); x = x + W_c look(norm(x)); x = x + feed(norm(x))

    W_c brings contexts to the layer's size; heads have a W_o of their own, and where that does it there is no W_c.
    alone: there is one step, with none before it, so that there is no self(norm(x)) to learn.
    """

    def __init__(
        self,
        settings: DecoderSettings,
        attention: AttentionSettings,
        views: Mapping[str, View],
        *,
        alone: bool = False,
    ):
        super().__init__()
        size = settings.size
        self.dropout, self.memory = settings.dropout, settings.memory
        self.norm_1 = None if alone else nn.LayerNorm(size)
        rotary = settings.positions == "rotary"
        self.inward = None if alone else SelfAttention(size, heads=settings.heads, rotary=rotary)
        self.looking = Looking(attention, query=size, views=views)
        self.norm_2 = nn.LayerNorm(size) if views else None
        needed = attention.heads == 1 or self.looking.size != size
        self.W_c = nn.Linear(self.looking.size, size) if views and needed else None
        self.norm_3 = nn.LayerNorm(size)
        self.feed = FeedForward(size, settings.feedforward)

    def empty(self, rows: int) -> Cache:
        """The cache before the first step."""
        if self.inward is None:
            return ()
        none = self.inward.W_k.weight.new_zeros(rows, self.inward.heads, 0, self.inward.size // self.inward.heads)
        return none, none

    def forward(
        self,
        states: Float[Tensor, "rows steps size"],
        cache: Cache,
        look: Callable[[Tensor], Tensor] | None,
        *,
        tell: bool = False,
    ) -> tuple[Float[Tensor, "rows steps size"], Cache, Float[Tensor, "rows heads steps _"] | None]:
        """New steps after those in the cache, each seeing the ones up to itself; `look` gives contexts of queries.

        What comes back to be kept is what the next step may see: all of them, or the last `memory`.
        With `tell` also how each of them looked at those up to itself.
        """
        weights = None
        if self.norm_1 is not None and self.inward is not None:
            normal = self.norm_1(states)
            new = self.inward.keys_and_values(normal)
            keys, values = (torch.cat([old, one], dim=2) for old, one in zip(cache, new, strict=True))
            mask = _earlier(states.shape[1], keys, self.memory)
            found, weights = self.inward(normal, keys, values, mask=mask, tell=tell)
            states = states + self._dropped(found)
            seen = self.memory or keys.shape[2]
            cache = keys[:, :, -seen:], values[:, :, -seen:]
        if look is not None and self.norm_2 is not None:
            context = look(self.norm_2(states))
            states = states + self._dropped(context if self.W_c is None else self.W_c(context))
        return states + self._dropped(self.feed(self.norm_3(states))), cache, weights

    def _dropped(self, states: Tensor) -> Tensor:
        return dropout(states, self.dropout, self.training)


def _earlier(steps: int, keys: Tensor, memory: int | None) -> Bool[Tensor, "1 steps places"] | None:
    """Which of all steps each of the new ones may see: itself and those before it, of these the last `memory` where
    there is a limit. None: the only new one sees all that is there."""
    every = keys.shape[2]
    if steps == 1:
        return None
    seen = torch.ones(1, steps, every, dtype=torch.bool, device=keys.device).tril(every - steps)
    return seen if memory is None else seen.triu(every - steps - memory)
