"""The base class of decoders, what conditions them, and their first state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.decoders.cross_attention import CrossAttention
from seq2see.decoders.records import DecoderEquations, Ready, State, Step
from seq2see.embeddings import Embedding, OneHot
from seq2see.errors import UserError
from seq2see.memory import Memory, View
from seq2see.registry import Registry
from seq2see.settings.attention import AttentionSettings
from seq2see.settings.base import first_line
from seq2see.settings.decoders import DECODERS, DecoderSettings, OwnAnswerSettings, OwnDecoderSettings
from seq2see.settings.plugins import constructor_values, settings_from_constructor
from seq2see.symbols import Symbols, default_symbols


@dataclass
class DenseLayers:
    """The sizes and the activation of dense layers."""

    sizes: Sequence[int] = ()
    activation: str = "relu"


@dataclass
class Conditions:
    """What conditions a decoder.

    embedding: of the output's symbols, None where none are read; looks: the places it attends to, by input name;
    start, every: the sizes of the summaries that make s_0 and that enter every step, by input name;
    layers: those of a reconstruction decoder.
    """

    embedding: Embedding | OneHot | None = None
    looks: Mapping[str, View] = field(default_factory=dict)
    start: Mapping[str, int] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)
    layers: DenseLayers = field(default_factory=DenseLayers)


class Decoder(nn.Module):
    """Generates an output while attending to a memory.

    features_size: the size of what its output layer sees; one_step: it has a single step and reads no symbol (labels,
    vectors); direct: an output layer that is tied to embeddings compares them with its features themselves.

    A user's own decoder has the same three constructor arguments; further ones are its options.
    """

    one_step: bool = False
    direct: bool = False
    features_size: int
    looking: CrossAttention

    def __init__(self, settings: Any, attention: AttentionSettings, conditions: Conditions):
        super().__init__()
        self.settings, self.conditions = settings, conditions

    def prepare(self, memory: Memory) -> Ready:
        """Compute what is needed once per input."""
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
        """One transition, for training, search and export alike.

        token: the symbol before, None for a decoder of one step; forced: attention weights by input name that replace
        the model's own where they are not NaN; generator: draws hard choices.
        """
        raise NotImplementedError

    def teach(self, ready: Ready, state: State, tokens: Int[Tensor, "rows steps"]) -> Step:
        """All steps of a target (teacher forcing): the same function as `step`, which a kind may compute faster."""
        if self.one_step:
            raise TypeError("a decoder of one step has no target to read symbol by symbol")
        steps: list[Step] = []
        for token in tokens.unbind(1):
            steps.append(self.step(ready, steps[-1].state if steps else state, token))
        return Step.stacked(steps)

    def equations(self, *, output: str = "an answer") -> DecoderEquations:
        """How it works, for `show` and `explain`; output: the kind of output, in words.

        By default that of a user's own decoder: the first line of its docstring is how a step goes.
        """
        kind, start = self.settings.kind, list(self.conditions.start)
        return DecoderEquations(
            f"{kind}, a decoder of the user's own",
            embedding="" if self.conditions.embedding is None else self.conditions.embedding.equation("y"),
            start=f"from {joined_equation(start, self.settings.join)}" if start else "from no input",
            every=joined_equation(list(self.conditions.every), self.settings.join),
            query=f"what {kind} asks with",
            attention=self.looking.equations() if hasattr(self, "looking") else None,
            step=[first_line(type(self)) or kind],
            features=f"features of {kind}",
        )

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self)


def build_decoder(settings: DecoderSettings, attention: AttentionSettings, conditions: Conditions) -> Decoder:
    """The decoder of the settings' kind, under these conditions."""
    kind: Any = decoders[settings.kind]
    options = constructor_values(settings) if settings.own else {}
    decoder: Decoder = kind(settings, attention, conditions, **options)
    if not isinstance(getattr(decoder, "features_size", None), int):
        raise UserError(f"decoder '{settings.kind}': its constructor sets no self.features_size, a whole number")
    return decoder


def _declare(name: str, kind: type) -> None:
    """Let recipes name a decoder that a plug-in brings."""
    if name in DECODERS:
        return
    if not issubclass(kind, Decoder):
        raise TypeError(f"decoder '{name}': {kind.__name__} is no subclass of seq2see.decoders.Decoder")
    _check_taught(name, kind)
    base = OwnAnswerSettings if kind.one_step else OwnDecoderSettings
    DECODERS[name] = settings_from_constructor(name, kind, base, given=GIVEN)


def _check_taught(name: str, kind: type[Decoder]) -> None:
    """Refuse a class with its own `step` and an inherited faster `teach`: training would never use its step."""
    steps, teaches = (next(base for base in kind.__mro__ if method in vars(base)) for method in ("step", "teach"))
    if teaches is not Decoder and steps is not teaches and issubclass(steps, teaches):
        raise TypeError(
            f"decoder '{name}': {steps.__name__} writes its own step, and training would go by the teach of "
            f"{teaches.__name__}; write teach too, or `teach = Decoder.teach`, which takes step after step"
        )


GIVEN = ("settings", "attention", "conditions")
decoders: Registry[type[Decoder]] = Registry("decoder", tell=_declare)


# --- Summaries and the first state


def joined_size(sizes: list[int], join: str) -> int:
    """The size of several joined summaries; join: `concatenate` or `compare`."""
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


def joined_equation(names: Sequence[str], join: str) -> str:
    """The joined summaries of these inputs, for `show`.

    >>> joined_equation(["image", "question"], "concatenate")
    '[summary of image; summary of question]'
    """
    parts = [f"summary of {name}" for name in names]
    if join == "compare" and len(parts) == 2:
        return f"[u; v; |u - v|; u * v], u = {parts[0]}, v = {parts[1]}"
    return "".join(parts) if len(parts) < 2 else f"[{'; '.join(parts)}]"


class InitialState(nn.Module):
    """The first state of each layer: a parameter, tanh(W_start summary + b_start), or (`by` copy) the summary itself.

    states: the tensors that a cell carries; of a copy all but the output start as zeros.
    """

    def __init__(self, sizes: Mapping[str, int], *, size: int, layers: int, states: int, by: str, join: str):
        super().__init__()
        self.names = tuple(sizes)
        self.size, self.layers, self.states, self.join = size, layers, states, join
        self.copied = bool(sizes) and by == "copy"
        if not sizes:
            # Not zeros: as the first query these would give all places the same energy, and W_q no gradient.
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
        """Per layer the first state of its cell, each tensor (rows, size)."""
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

    def equation(self, s: str) -> str:
        """For `show`; s: the first state in the equations."""
        if not self.names:
            return f"{s} is a parameter, learned with the rest"
        summary = joined_equation(self.names, self.join)
        return f"{s} = {summary}" if self.copied else f"{s} = tanh(W_start ({summary}) + b_start)"
