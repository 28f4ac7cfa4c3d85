"""What every decoder offers to the model, to training and to search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.decoders.cross_attention import CrossAttention
from seq2see.decoders.records import Ready, State, Step
from seq2see.embeddings import Embedding, OneHot
from seq2see.errors import UserError
from seq2see.memory import Memory, View
from seq2see.registry import Registry
from seq2see.settings.attention import AttentionSettings
from seq2see.settings.base import first_line
from seq2see.settings.decoders import WRITERS, DecoderSettings
from seq2see.settings.plugins import DECODERS, read_class


@dataclass
class Layers:
    """Dense layers by their sizes, and what each gives is passed through."""

    sizes: Sequence[int] = ()
    activation: str = "relu"


@dataclass
class Conditions:
    """What a decoder is built into: the symbols it reads, places it may look at, and sizes of summaries, by input name.

    embedding: of the output's symbols, None where none are read; start: what makes s_0; every: what enters each step;
    layers: what lies between a code and the numbers it becomes again.
    """

    embedding: Embedding | OneHot | None = None
    looks: Mapping[str, View] = field(default_factory=dict)
    start: Mapping[str, int] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)
    layers: Layers = field(default_factory=Layers)


class Decoder(nn.Module):
    """Writes while looking at a memory.

    features_size: what its output head sees; one_step: it gives a single answer and reads no symbol (labels, vectors);
    direct: its features are made to be compared with embeddings as they are, where the output layer is tied to them.

    A decoder of one's own takes the same three arguments; whatever its constructor takes beyond them are its options.
    """

    one_step: bool = False
    direct: bool = False
    features_size: int
    looking: CrossAttention

    def __init__(self, settings: Any, attention: AttentionSettings, conditions: Conditions):
        super().__init__()

    def prepare(self, memory: Memory) -> Ready:
        """What is computed once per input."""
        raise NotImplementedError

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        """The state before the first step, `width` rows for each input."""
        raise NotImplementedError

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        """The only transition there is; a decoder of one step reads no token. The generator draws hard looks."""
        raise NotImplementedError

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """The steps of a whole given target: the same function as `step`, which a kind may compute faster."""
        if self.one_step:
            raise TypeError("an answer that is decoded in one step: there is no target to teach symbol by symbol")
        steps: list[Step] = []
        for token in tokens.unbind(1):
            steps.append(self.step(ready, steps[-1].state if steps else state, token))
        return Step.stacked(steps)

    @classmethod
    def equations(cls, settings: DecoderSettings) -> list[str]:
        """How a decoder of one's own goes from step to step, line by line: for `show`."""
        return [first_line(cls) or settings.kind]


def build_decoder(settings: DecoderSettings, attention: AttentionSettings, conditions: Conditions) -> Decoder:
    """The decoder of that kind, under these conditions."""
    kind: Any = decoders[settings.kind]
    options = {} if settings.own is None else settings.own.values(settings.options)
    made: Decoder = kind(settings, attention, conditions, **options)
    if not isinstance(getattr(made, "features_size", None), int):
        raise UserError(f"decoder '{settings.kind}': its constructor sets no self.features_size, a whole number")
    return made


def _tell(name: str, kind: type) -> None:
    """Let recipes name a decoder that is none of the house's."""
    if name in WRITERS:
        return
    if not issubclass(kind, Decoder):
        raise TypeError(f"decoder '{name}': {kind.__name__} is no subclass of seq2see.decoders.Decoder")
    _check_taught(name, kind)
    DECODERS[name] = read_class(name, kind, given=GIVEN, one_step=kind.one_step)


def _check_taught(name: str, kind: type[Decoder]) -> None:
    """Refuse a class that steps in its own way and is taught in another's: training would never see its step."""
    steps, teaches = (next(one for one in kind.__mro__ if method in vars(one)) for method in ("step", "teach"))
    if teaches is not Decoder and steps is not teaches and issubclass(steps, teaches):
        raise TypeError(
            f"decoder '{name}': {steps.__name__} writes its own step, and training would go by the teach of "
            f"{teaches.__name__}; write teach too, or `teach = Decoder.teach`, which takes step after step"
        )


GIVEN = ("settings", "attention", "conditions")
decoders: Registry[type[Decoder]] = Registry("decoder", tell=_tell)


# ---------------- s_0


def joined_size(sizes: list[int], join: str) -> int:
    """Size of several summaries joined as the recipe says."""
    if join == "compare":
        if len(sizes) != 2 or sizes[0] != sizes[1]:
            raise UserError(f"decoder.join compare needs two inputs of one summary size, got sizes {sizes}")
        return 4 * sizes[0]
    return sum(sizes)


def join_summaries(summaries: list[Float[Tensor, "batch _"]], join: str) -> Float[Tensor, "batch _"]:
    """[u; v; ...], or [u; v; |u - v|; u * v]."""
    if join == "compare":
        u, v = summaries
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
    return summaries[0] if len(summaries) == 1 else torch.cat(summaries, dim=-1)


class InitialState(nn.Module):
    """The first state: `parts` vectors of `size` (layers times what a cell carries).

    copy: every layer's output starts as the summary, what else a cell carries as zeros.
    """

    def __init__(self, sizes: Mapping[str, int], *, size: int, layers: int, states: int, by: str, join: str):
        super().__init__()
        self.names = tuple(sizes)
        self.size, self.layers, self.states, self.join = size, layers, states, join
        self.copied = bool(sizes) and by == "copy"
        if not sizes:
            # Not zero: as a first query it would give every place the same energy, and W_q no gradient.
            self.s_0 = nn.Parameter(0.1 * torch.randn(layers * states * size))
            return
        width = joined_size(list(sizes.values()), join)
        if self.copied and width != size:
            raise UserError(
                f"decoder.start_by copy needs decoder.size equal to the summary's size {width}, got {size}; "
                f"set decoder.size={width} or decoder.start_by=dense"
            )
        if not self.copied:
            self.W_start = nn.Linear(width, layers * states * size)

    def forward(self, summaries: Mapping[str, Tensor], rows: int) -> list[tuple[Tensor, ...]]:
        """Per layer the first cell state, each part (rows, size)."""
        if not self.names:
            flat = self.s_0.expand(rows, -1)
        else:
            summary = join_summaries([summaries[name] for name in self.names], self.join)
            if self.copied:
                rest = (torch.zeros_like(summary),) * (self.states - 1)
                return [(summary, *rest) for _ in range(self.layers)]
            flat = torch.tanh(self.W_start(summary)).float()
        parts = flat.view(rows, self.layers, self.states, self.size)
        return [tuple(parts[:, layer, part] for part in range(self.states)) for layer in range(self.layers)]
