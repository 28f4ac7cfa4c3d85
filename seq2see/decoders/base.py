"""The base class of decoders, what conditions them, and their first state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention import AttentionSettings
from seq2see.cells import CellSettings
from seq2see.decoders.cross_attention import CrossAttention
from seq2see.decoders.records import DecoderEquations, Ready, State, Step
from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, normal
from seq2see.errors import UserError
from seq2see.memory import Memory, View
from seq2see.registry import Problem, Registry
from seq2see.settings.base import (
    FittedDropout,
    FittedSize,
    Layers,
    NameOf,
    Parts,
    Positions,
    Positive,
    Settings,
    Size,
    first_line,
    no_effect,
    or_plugin,
)
from seq2see.settings.columns import OutputColumn
from seq2see.settings.plugins import check_subclass, constructor_values, settings_from_constructor
from seq2see.symbols import Symbols, default_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

# --- Settings

KNOWN = ("settings", "attention", "conditions")
"""Arguments of a decoder's constructor that are known when it is built."""


def _check(name: str, kind: Any) -> None:
    check_subclass(f"decoder '{name}'", kind, Decoder)
    _check_taught(name, kind)


def _derive(name: str, kind: type[Decoder]) -> type[DecoderSettings]:
    """Settings of a decoder that a plug-in brings."""
    base = OwnAnswerSettings if kind.one_step else OwnDecoderSettings
    return settings_from_constructor(name, kind, base, known=KNOWN)


decoders: Registry[type[Decoder]] = Registry("decoder", check=_check, derive=_derive)


class DecoderSettings(Settings):
    """s_1 .. s_T: how the output is written, and what conditions it.

    writes: the kinds of output it can write, or what these are measured as (`OutputColumn.measured_as`); own: a plug-in
    brought it; starts_by_size: its first state has `size` numbers, whatever the summaries have;
    self_attends: its steps look at what was written before; reads_summaries: the summaries of `start` are those of the
    encoders, not its own.
    """

    parts = {"kind": Parts(decoders.settings)}
    writes: ClassVar[tuple[str, ...]] = ("text",)
    own: ClassVar[bool] = False
    starts_by_size: ClassVar[bool] = True
    self_attends: ClassVar[bool] = False
    reads_summaries: ClassVar[bool] = True
    plugin_keys = ("options",)
    kind: Annotated[str, NameOf(decoders.settings)] = Field(
        "recurrent",
        description="a recurrent network, layers of self-attention (transformer; for a label layers of looks and "
        "thoughts), or a decoder of one step: label for labels (matching: of two inputs, compared place by place), "
        "reconstruction for vectors and pictures; not given: the first that writes such an output",
    )
    size: FittedSize = Field(256, description="size of a state")
    dropout: FittedDropout = Field(0.0, description="on what the output layer sees")
    start: str | list[str] | None = Field(
        None, description="inputs whose summary makes s_0 (transformer: joins <sos>); none: s_0 is learned"
    )
    start_by: Literal["copy", "dense"] = Field("dense", description="the summary itself, or through a dense layer")
    join: Literal["concat", "compare"] = Field(
        "concat", description="how summaries of two inputs meet: [u; v], or [u; v; |u - v|; u * v]"
    )

    def layer_count(self, looks: int) -> int:
        """Layers that are built; looks: layers of the attention that each of its layers may have."""
        return 1

    @property
    def most_steps(self) -> int | None:
        """Symbols that it can write, `<eos>` counted; None: there is no limit."""
        return None

    def complete(self, *, stream: bool) -> dict[str, Any]:
        """Settings that follow from the data where the recipe does not state them; stream: a contiguous text."""
        return {key: value for key, value in self.stream_defaults(stream=stream).items() if self._open(key)}

    def _open(self, key: str) -> bool:
        return key not in self.model_fields_set or getattr(self, key) is None

    @classmethod
    def stream_defaults(cls, *, stream: bool) -> dict[str, Any]:
        """What holds where the recipe does not state it, as far as that depends on reading a contiguous text."""
        return {}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if not {recipe.output.kind, recipe.output.measured_as}.intersection(self.writes):
            allowed = or_plugin(writers_of(recipe.output))
            message = f"{self.kind} cannot write an output of kind {recipe.output.kind}; allowed: {allowed}"
            yield Problem(f"{path}.kind", message, "decoder-kind")
        yield from self._check_summaries(recipe, path)
        if not recipe.started_by:
            yield from no_effect(self, path, ["start_by"], "decoder.start is none")
            if not recipe.fed_every_step:
                yield from no_effect(self, path, ["join"], "no summaries are joined")

    def _check_summaries(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """Summaries that are copied or compared are of the size they meet."""
        joined = {"start": recipe.started_by, "every_step": recipe.fed_every_step}
        if self.join == "compare":
            for key, names in joined.items():
                if names and len(names) != 2:
                    message = f"compare needs two inputs in decoder.{key}, got {len(names)}"
                    yield Problem(f"{path}.join", message, "join")
        sizes = {name: recipe.encoder_of(name).summary_size for name in recipe.inputs}
        summaries = {name: size for name, size in sizes.items() if size is not None}
        if len(summaries) < len(sizes) or self.own:  # only the built model knows them
            return
        if recipe.started_by and self.start_by == "copy" and self.starts_by_size:
            width = sum(summaries[name] for name in recipe.started_by) * (2 if self.join == "compare" else 1)
            if message := check_copied_size(self.size, width):
                yield Problem(f"{path}.start_by", message, "summary-sizes")
        if self.join == "compare":
            for names in joined.values():
                if len(names) == 2 and summaries[names[0]] != summaries[names[1]]:
                    got = " and ".join(f"{summaries[name]} ({name})" for name in names)
                    yield Problem(f"{path}.join", f"compare needs summaries of one size, got {got}", "summary-sizes")


class SeenSettings(Settings):
    """What an output layer sees."""

    output: Literal["state", "all"] = Field("all", description="the output layer sees s_t, or [s_t; c_t; e(y_{t-1})]")


class ReadoutSettings(Settings):
    """What stands before an output layer."""

    readout: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="size of a tanh layer before the output layer; 0: none"
    )


class WrittenSettings(ReadoutSettings, DecoderSettings):
    """Decoders that write symbol by symbol."""

    layers: Layers = Field(1, description="number of layers")
    dropout: FittedDropout = Field(
        0.0,
        description="between layers and on what the output layer sees; transformer: also on the input and on "
        "the output of each part of a layer",
    )
    every_step: str | list[str] | None = Field(None, description="inputs whose summary enters every step")
    copy_from: str | None = Field(
        None, description="input whose words can be copied into the output, whether or not its vocabulary has them"
    )

    def layer_count(self, looks: int) -> int:
        return self.layers


class SymbolSettings(Settings):
    """Decoders that read the symbols they have written."""

    embedding: EmbeddingSettings = EmbeddingSettings()
    tied: bool = Field(False, description="the output layer uses the embeddings of the output's symbols")

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.tied and self.embedding.kind == "one-hot":
            yield Problem(f"{path}.tied", "a one-hot embedding has no weights to tie; allowed: false", "tied")
        elif self.tied:
            yield from no_effect(self, path, ["readout"], "tied: the readout has the size of the embedding")


class SelfAttentionSettings(Settings):
    """Layers of self-attention over what was written."""

    heads: Size = Field(4, description="heads that look at the output so far; must divide the size (not for labels)")
    feedforward: Size = Field(1024, description="size of the inner layer after each attention")
    positions: Positions = Field(
        "sinusoidal",
        description="how positions are encoded; rotary: by the distance between two symbols (the default in streams)",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="learned positions: symbols of the longest output, with <eos>"
    )
    memory: Positive | None = Field(
        None, description="symbols before its own that a step can see; not given: all, in streams 256"
    )


class AnswerSettings(SeenSettings, DecoderSettings):
    """Decoders of one step."""

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if not recipe.looked_at:
            reason = f"without attention a {self.kind} decoder has its state alone"
            yield from no_effect(self, path, ["output"], reason)

    @classmethod
    def spelled(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without `copy_from: none`, which says of every decoder what holds."""
        rest = {key: value for key, value in values.items() if key != "copy_from"}
        return rest if values.get("copy_from") == "none" else values


class OwnAnswerSettings(CellSettings, SeenSettings, SelfAttentionSettings, WrittenSettings):
    """What a decoder of a plug-in that gives a label in one step may make use of."""

    own = True
    writes: ClassVar[tuple[str, ...]] = ("label", "numbers")


class OwnDecoderSettings(SymbolSettings, OwnAnswerSettings):
    """What a decoder of a plug-in may make use of."""

    writes = ("text",)


def writers_of(output: OutputColumn | type[OutputColumn]) -> list[str]:
    """The kinds of decoder that write such an output; the first, the usual one, is meant where a recipe names none."""
    words = {output.kind_name(), output.measured_as}
    writers = [name for name, settings in decoders.settings.items() if words.intersection(settings.writes)]
    return sorted(writers, key=lambda name: name != output.usual_decoder)


# --- Decoders


@dataclass
class DenseLayers:
    """The sizes and the activation of dense layers."""

    sizes: Sequence[int] = ()
    activation: str = "relu"


@dataclass
class Conditions:
    """What conditions a decoder.

    embedding: of the output's symbols, None where none are read; looks: the places it attends to, by input name;
    places: those of all inputs, whether it attends to them or not;
    start, every: the sizes of the summaries that make s_0 and that enter every step, by input name;
    layers: those of a reconstruction decoder.
    """

    embedding: Embedding | OneHot | None = None
    looks: Mapping[str, View] = field(default_factory=dict)
    places: Mapping[str, View] = field(default_factory=dict)
    start: Mapping[str, int] = field(default_factory=dict)
    every: Mapping[str, int] = field(default_factory=dict)
    layers: DenseLayers = field(default_factory=DenseLayers)


class Decoder(nn.Module):
    """Generates an output while attending to a memory.

    features_size: the size of what its output layer sees; one_step: it has a single step and reads no symbol (labels,
    vectors); direct: an output layer that is tied to embeddings compares them with its features themselves;
    embedding_deviation: the least of first embeddings that the output layer does not share.

    A user's own decoder has the same three constructor arguments; further ones are its options.
    """

    one_step: bool = False
    direct: bool = False
    embedding_deviation: float = 0.0
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

    @property
    def way_of_teaching(self) -> str:
        """How `teach` goes through a target, for `show`."""
        return "step by step"

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


def _check_taught(name: str, kind: type[Decoder]) -> None:
    """Refuse a class with its own `step` and an inherited faster `teach`: training would never use its step."""
    steps, teaches = (next(base for base in kind.__mro__ if method in vars(base)) for method in ("step", "teach"))
    if teaches is not Decoder and steps is not teaches and issubclass(steps, teaches):
        raise TypeError(
            f"decoder '{name}': {steps.__name__} writes its own step, and training would go by the teach of "
            f"{teaches.__name__}; write teach too, or `teach = Decoder.teach`, which takes step after step"
        )


# --- Summaries and the first state


def check_copied_size(size: int, width: int) -> str:
    """Why a summary of that width cannot be copied into a state of that size; nothing where it can."""
    if width == size:
        return ""
    needs = f"copy needs decoder.size equal to the summary's size, got {size} and {width}"
    return f"{needs}; use dense, or set decoder.size={width}"


def joined_size(sizes: list[int], join: str) -> int:
    """The size of several joined summaries; join: `concat` or `compare`."""
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

    >>> joined_equation(["image", "question"], "concat")
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
            self.s_0 = nn.Parameter(normal(layers * states * size, times=0.1))
            return
        width = joined_size(list(sizes.values()), join)
        if self.copied and (message := check_copied_size(size, width)):
            raise UserError(f"decoder.start_by: {message}")
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
