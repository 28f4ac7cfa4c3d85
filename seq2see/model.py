"""The one model: encoders fill a Memory, a decoder writes while looking at it. A task is a recipe, not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2see.data.batches import SOS, Batch, Sequences
from seq2see.decoders import (
    Conditions,
    CopyHead,
    CtcHead,
    Decoder,
    Head,
    Layers,
    NumbersHead,
    PixelsHead,
    Ready,
    SoftmaxHead,
    State,
    Step,
    build_decoder,
)
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders import ByInput, Encoder, InputInfo, build_encoder, check_encoded
from seq2see.errors import UserError, nearest
from seq2see.memory import Memory, View
from seq2see.recipe import Recipe
from seq2see.recipe.numbers import activation_of, channels_of, hidden_of, output_of


@dataclass
class Sizes:
    """How many symbols (of a vector, numbers) each input and the output has; pre-trained vectors (symbols, size) by
    input name or `output`."""

    inputs: dict[str, int]
    output: int
    vectors: dict[str, Tensor] = field(default_factory=dict)


class EncoderDecoder(nn.Module):
    """Built from a (resolved) recipe and the sizes of its vocabularies; checks that the parts fit."""

    def __init__(self, recipe: Recipe, sizes: Sizes):
        super().__init__()
        self.encoders = _build_encoders(recipe, sizes)
        self.reader_of = {name: recipe.reader_of(name) for name in recipe.inputs}
        self.looked_at = frozenset(recipe.looked_at)
        self.own = frozenset(name for name in recipe.inputs if recipe.encoder_of(name).own is not None)
        views = {name: view for one in recipe.inputs for name, view in self.encoder(one).views(one).items()}
        summaries = {name: self.encoder(name).summary_size for name in recipe.inputs}
        _check_views(recipe, views)
        conditions = Conditions(
            None if recipe.output.one_step else _output_embedding(recipe, sizes),
            looks={name: views[name] for name in recipe.looked_at},
            start={name: summaries[name] for name in recipe.started_by},
            every={name: summaries[name] for name in recipe.fed_every_step},
            layers=Layers(hidden_of(recipe), activation_of(recipe)) if recipe.output.numeric else Layers(),
        )
        self.decoder: Decoder = build_decoder(recipe.decoder, recipe.attention, conditions)
        _check_copied(recipe, views)
        self.head: Head = _build_head(recipe, self.decoder, sizes.output, tied=_tied(recipe, conditions))
        self.read_along, self.copied = recipe.read_along, recipe.copied_places
        self.ctc = None if self.read_along is None else CtcHead(views[self.read_along], sizes.output)

    def encoder(self, name: str) -> Encoder:
        """The encoder that reads the input of that name (inputs may share one)."""
        return self.encoders[self.reader_of[name]]

    def fetch(self) -> None:
        """Take what encoders bring along from elsewhere: weights of pre-trained backbones."""
        for _, encoder in self.encoders.items():
            encoder.fetch()

    def remember(self, inputs: Mapping[str, Any], rows: int, *, maps: bool = False) -> Memory:
        """Read every input: places to look at and summaries; with `maps` also where encoders looked meanwhile."""
        memory = Memory(rows=rows)
        for name, column in inputs.items():
            encoded = self.encoder(name).read(column, maps=maps)
            if name in self.own:
                check_encoded(name, self.encoder(name), encoded, column)
            memory.summaries[name] = encoded.summary
            memory.places |= {name: encoded.places}
            memory.places |= {f"{name}.{key}": places for key, places in encoded.further.items()}
            copyable = getattr(column, "copyable", None)
            if copyable is not None and self.copied is not None:
                memory.places[self.copied] = replace(memory.places[self.copied], copyable=copyable)
            memory.maps |= {f"{name}.{key}": one for key, one in encoded.maps.items()}
        return memory

    def ready(self, inputs: Mapping[str, Any], rows: int, *, maps: bool = False) -> Ready:
        """Read every input and prepare for decoding; with `maps` both tell all of their looks."""
        return replace(self.decoder.prepare(self.remember(inputs, rows, maps=maps)), maps=maps)

    def along(self, memory: Memory) -> tuple[Float[Tensor, "batch line symbols"], Bool[Tensor, "batch line"]]:
        """log P of every symbol (or blank) at the places in their order, and which are real: see `loss.ctc`."""
        if self.ctc is None or self.read_along is None:
            raise ValueError("this model was built without a loss along its places")
        found: tuple[Tensor, Tensor] = self.ctc.log_probs(memory.places[self.read_along])
        return found

    def begin(self, ready: Ready, *, width: int = 1) -> State:
        return self.decoder.begin(ready, width=width)

    def step(
        self,
        ready: Ready,
        state: State,
        token: Int[Tensor, " rows"] | None,
        *,
        forced: Mapping[str, Float[Tensor, "rows places"]] | None = None,
        generator: torch.Generator | None = None,
    ) -> Step:
        read = None if token is None else self.head.readable(token)
        return self.decoder.step(ready, state, read, forced=forced, generator=generator)

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        return self.head.log_probs(step, ready)

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        """What a model gives that has no symbols to choose from."""
        return self.head.numbers(step)

    def teach(self, ready: Ready, targets: Int[Tensor, "batch steps"], state: State | None = None) -> Step:
        """Teacher forcing: every step of the given targets, each reading the true symbol before it."""
        state = state if state is not None else self.begin(ready)
        return self.decoder.teach(ready, state, self.head.readable(shifted(targets)))

    def read_on(self, ready: Ready, tokens: Int[Tensor, "batch steps"], state: State) -> Step:
        """Every step of reading the given symbols from a state on (contiguous streams)."""
        return self.decoder.teach(ready, state, tokens)

    def forward_batch(self, batch: Batch) -> tuple[Step, Ready]:
        """All that the loss needs of a batch, whatever its output is."""
        ready = self.ready(batch.inputs, len(batch.rows))
        if self.decoder.one_step:
            made = self.step(ready, self.begin(ready), None)
        elif isinstance(batch.target, Sequences):
            made = self.teach(ready, batch.target.ids)
        else:
            raise ValueError("a batch without targets cannot be taught")
        if made.looks.keys() != self.looked_at:
            raise UserError(
                f"the decoder ({type(self.decoder).__name__}) gives looks at {', '.join(made.looks) or 'nothing'}, and "
                f"the recipe asks for {', '.join(sorted(self.looked_at)) or 'none'} (attention.over)"
            )
        return made, ready


def shifted(targets: Int[Tensor, "batch steps"]) -> Int[Tensor, "batch steps"]:
    """<sos> and all but the last symbol: what the decoder reads while it should write `targets`."""
    first = torch.full_like(targets[:, :1], SOS)
    return torch.cat([first, targets[:, :-1]], dim=1)


def _build_encoders(recipe: Recipe, sizes: Sizes) -> ByInput[Encoder]:
    made: ByInput[Encoder] = ByInput()
    for name in recipe.inputs:
        if recipe.reader_of(name) != name:
            continue
        settings = recipe.encoder_of(name)
        channels, height, width = (getattr(recipe.inputs[name], key, 0) for key in ("channels", "height", "width"))
        material = InputInfo(sizes.inputs.get(name, 0), sizes.vectors.get(name), channels, height, width)
        made[name] = build_encoder(settings, material)
    return made


def _build_head(recipe: Recipe, decoder: Decoder, symbols: int, *, tied: nn.Parameter | None) -> Head:
    settings = recipe.decoder
    if recipe.output.numeric:
        return _build_numbers(recipe, decoder.features_size, symbols)
    source = recipe.copied_places
    kind = SoftmaxHead if source is None else partial(CopyHead, source=source)
    return kind(
        decoder.features_size,
        symbols,
        readout=settings.readout,
        tied=tied,
        dropout=settings.dropout,
        direct=decoder.direct,
    )


def _build_numbers(recipe: Recipe, features: int, numbers: int) -> NumbersHead:
    last, output = output_of(recipe), recipe.output
    shape = output.shape
    if shape is None:
        return NumbersHead(features, numbers, output=last)
    if recipe.decoder.reconstruction.pixels == "dense":
        return NumbersHead(features, prod(shape), output=last)
    return PixelsHead(features, shape, channels_of(recipe), output=last, activation=activation_of(recipe))


def _check_views(recipe: Recipe, views: Mapping[str, View]) -> None:
    """Places that only an encoder of the user's own knows, once it is built."""
    for name in recipe.looked_at:
        if name not in views:
            allowed = ", ".join(views)
            raise UserError(f"attention.over: there is no input '{name}'{nearest(name, views)}; allowed: {allowed}")
        if recipe.attention.through is not None and views[name].inside is None:
            raise UserError(f"attention.through: '{name}' has no places inside larger ones")


def _check_copied(recipe: Recipe, views: Mapping[str, View]) -> None:
    source = recipe.copied_places
    if source is not None and views[source].layout not in ("tokens", "set"):
        raise UserError(
            f"decoder.copy_from: the places of '{source}' are {views[source].layout}, not words that could be copied"
        )


def _output_embedding(recipe: Recipe, sizes: Sizes) -> Embedding | OneHot:
    return build_embedding(recipe.decoder.embedding, sizes.output, vectors=sizes.vectors.get("output"))


def _tied(recipe: Recipe, conditions: Conditions) -> nn.Parameter | None:
    if not recipe.decoder.tied or conditions.embedding is None:
        return None
    weight = conditions.embedding.weight
    if not isinstance(weight, nn.Parameter):
        raise UserError("decoder.tied needs an embedding with weights; decoder.embedding.kind is one-hot")
    return weight
