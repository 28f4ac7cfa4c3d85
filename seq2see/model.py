"""The encoder-decoder model: encoders fill a Memory, a decoder generates while attending to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2see.data.batches import Batch, Sequences
from seq2see.data.vocabulary import SOS
from seq2see.decoders import (
    Conditions,
    CopyHead,
    CtcHead,
    Decoder,
    DenseLayers,
    Head,
    NumbersHead,
    PixelsHead,
    Ready,
    SoftmaxHead,
    State,
    Step,
    build_decoder,
    decoders,
)
from seq2see.decoders.base import ReadoutSettings, SymbolSettings
from seq2see.decoders.reconstruction import (
    channel_sizes,
    hidden_activation,
    hidden_sizes,
    output_activation,
    reconstruction_of,
)
from seq2see.embeddings import Embedding, OneHot, build_embedding
from seq2see.encoders import ByInput, Encoder, InputInfo, build_encoder, check_encoded
from seq2see.errors import UserError, nearest
from seq2see.memory import Memory, View
from seq2see.packed_weights import PackedWeights
from seq2see.recipe import Recipe
from seq2see.symbols import Symbols, prefixed, symbols_of


@dataclass
class Sizes:
    """The number of symbols (of a vector, numbers) of each input and of the output.

    vectors: pre-trained embeddings (symbols, size), by input name or `output`.
    """

    inputs: dict[str, int]
    output: int
    vectors: dict[str, Tensor] = field(default_factory=dict)


class EncoderDecoder(nn.Module):
    """The model of a resolved recipe, with vocabularies of these sizes; checks that its parts fit each other."""

    def __init__(self, recipe: Recipe, sizes: Sizes):
        super().__init__()
        self.encoders = _build_encoders(recipe, sizes)
        self.reader_of = {name: recipe.reader_of(name) for name in recipe.inputs}
        self.looked_at = frozenset(recipe.looked_at)
        self.own = frozenset(name for name in recipe.inputs if recipe.encoder_of(name).own)
        views = {key: view for name in recipe.inputs for key, view in self.encoder(name).views(name).items()}
        summaries = {name: self.encoder(name).summary_size for name in recipe.inputs}
        _check_views(recipe, views)
        conditions = Conditions(
            None if recipe.output.one_step else _output_embedding(recipe, sizes),
            looks={name: views[name] for name in recipe.looked_at},
            places=views,
            start={name: summaries[name] for name in recipe.started_by},
            every={name: summaries[name] for name in recipe.fed_every_step},
            layers=_dense_layers(recipe),
        )
        self.decoder: Decoder = build_decoder(recipe.decoder, recipe.attention, conditions)
        _check_copied(recipe, views)
        self.head: Head = _build_head(recipe, self.decoder, sizes.output, tied=_tied(recipe, conditions))
        self.most_steps = None if recipe.output.one_step else recipe.decoder.most_steps
        self.read_along, self.copied = recipe.read_along, recipe.copied_places
        self.ctc = None if self.read_along is None else CtcHead(views[self.read_along], sizes.output)

    def encoder(self, name: str) -> Encoder:
        """The encoder of the input of that name; inputs may share one."""
        return self.encoders[self.reader_of[name]]

    def fetch(self) -> None:
        """Load pre-trained weights of encoders, before a new model is trained."""
        for _, encoder in self.encoders.items():
            encoder.fetch()

    def encode(
        self, inputs: Mapping[str, Any], rows: int, *, maps: bool = False, packed: PackedWeights | None = None
    ) -> Memory:
        """Encode every input: places and summaries; maps: also the encoders' own attention; packed: weights for a
        prediction."""
        memory = Memory(rows=rows)
        for name, column in inputs.items():
            encoder = self.encoder(name)
            encoded = encoder.read(column, maps=maps) if packed is None else encoder.predict(column, packed, maps=maps)
            if name in self.own:
                check_encoded(name, self.encoder(name), encoded, column)
            memory.summaries[name] = encoded.summary
            memory.places |= {name: encoded.places}
            memory.places |= {f"{name}.{key}": places for key, places in encoded.further.items()}
            copyable = getattr(column, "copyable", None)
            if copyable is not None and self.copied is not None:
                memory.places[self.copied] = replace(memory.places[self.copied], copyable=copyable)
            memory.maps |= {f"{name}.{key}": encoder_map for key, encoder_map in encoded.maps.items()}
        return memory

    def ready(
        self,
        inputs: Mapping[str, Any],
        rows: int,
        *,
        maps: bool = False,
        packed: PackedWeights | None = None,
        times: int = 1,
    ) -> Ready:
        """Encode every input and prepare for decoding; maps: also the self-attention of encoders and decoder; packed:
        weights for the steps of a prediction; times: rows that are decoded of each input, all inputs once, then all
        again."""
        memory = self.encode(inputs, rows, maps=maps, packed=packed)
        if times > 1:
            memory = memory.select(torch.arange(rows, device=self.head.device).repeat(times))
        prepared = self.decoder.prepare(memory)
        return replace(prepared, maps=maps).with_packed(packed)

    def ctc_log_probs(self, memory: Memory) -> tuple[Float[Tensor, "batch line symbols"], Bool[Tensor, "batch line"]]:
        """log P of every symbol (or blank) at each place in order, and which places are real: see `loss.ctc`."""
        if self.ctc is None or self.read_along is None:
            raise ValueError("this model was built without the CTC loss")
        log_probs: tuple[Tensor, Tensor] = self.ctc.log_probs(memory.places[self.read_along])
        return log_probs

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
        """The output of a model that gives numbers."""
        return self.head.numbers(step)

    def teach(self, ready: Ready, targets: Int[Tensor, "batch steps"], state: State | None = None) -> Step:
        """Teacher forcing: all steps of the targets, each of which reads the true symbol before it."""
        state = state if state is not None else self.begin(ready)
        return self.decoder.teach(ready, state, self.head.readable(shifted(targets)))

    def read_on(self, ready: Ready, tokens: Int[Tensor, "batch steps"], state: State) -> Step:
        """All steps of reading these symbols from a state on, in a contiguous stream."""
        return self.decoder.teach(ready, state, tokens)

    def forward_batch(self, batch: Batch, *, times: int = 1) -> tuple[Step, Ready]:
        """What the loss needs of a batch, whatever the kind of output; times: targets of each input, as for `ready`."""
        ready = self.ready(batch.inputs, len(batch.rows), times=times)
        if self.decoder.one_step:
            step = self.step(ready, self.begin(ready), None)
        elif isinstance(batch.target, Sequences):
            step = self.teach(ready, batch.target.ids)
        else:
            raise ValueError("a batch without targets has no loss")
        if step.looks.keys() != self.looked_at:
            raise UserError(
                f"the decoder ({type(self.decoder).__name__}) gives looks at {', '.join(step.looks) or 'nothing'}, and "
                f"the recipe asks for {', '.join(sorted(self.looked_at)) or 'none'} (attention.over)"
            )
        return step, ready

    def parameter_symbols(self) -> Symbols:
        """The symbol and the part of every parameter, for `show`."""
        symbols: Symbols = {}
        for key, encoder in zip(self.encoders.keys(), self.encoders.values(), strict=True):
            symbols |= _listed(f"encoders.{key}", encoder, f"encoder of {key}")
        parts = {"decoder": "decoder", "head": "output layer", "ctc": "output along the places"}
        for name, part in parts.items():
            module = getattr(self, name)
            symbols |= {} if module is None else _listed(name, module, part)
        return symbols


def _listed(name: str, module: nn.Module, part: str) -> Symbols:
    """The symbols of a module, under its part unless they have one of their own."""
    return {
        key: replace(symbol, part=symbol.part or part) for key, symbol in prefixed(name, symbols_of(module)).items()
    }


def shifted(targets: Int[Tensor, "batch steps"]) -> Int[Tensor, "batch steps"]:
    """<sos> and all symbols but the last: what the decoder reads when its targets are these."""
    first = torch.full_like(targets[:, :1], SOS)
    return torch.cat([first, targets[:, :-1]], dim=1)


def _build_encoders(recipe: Recipe, sizes: Sizes) -> ByInput[Encoder]:
    encoders: ByInput[Encoder] = ByInput()
    for name in recipe.inputs:
        if recipe.reader_of(name) != name:
            continue
        settings = recipe.encoder_of(name)
        shape = (getattr(recipe.inputs[name], key, 0) for key in ("channels", "height", "width"))
        info = InputInfo(sizes.inputs.get(name, 0), sizes.vectors.get(name), *shape)
        encoders[name] = build_encoder(settings, info)
    return encoders


def _dense_layers(recipe: Recipe) -> DenseLayers:
    """Those behind the code, where numbers are given."""
    return DenseLayers(hidden_sizes(recipe), hidden_activation(recipe)) if recipe.output.numeric else DenseLayers()


def _build_head(recipe: Recipe, decoder: Decoder, symbols: int, *, tied: nn.Parameter | None) -> Head:
    settings = recipe.decoder
    if recipe.output.numeric:
        return _build_numbers(recipe, decoder.features_size, symbols)
    assert isinstance(settings, ReadoutSettings)
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
    activation, shape = output_activation(recipe), recipe.output.shape
    if shape is None:
        return NumbersHead(features, numbers, output=activation)
    if reconstruction_of(recipe).pixels == "dense":
        return NumbersHead(features, prod(shape), output=activation)
    return PixelsHead(features, shape, channel_sizes(recipe), output=activation, activation=hidden_activation(recipe))


def _check_views(recipe: Recipe, views: Mapping[str, View]) -> None:
    """Refuse places that do not exist, which is known of a user's own encoder only once it is built."""
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
    settings = recipe.decoder
    assert isinstance(settings, SymbolSettings)
    return build_embedding(
        settings.embedding,
        sizes.output,
        vectors=sizes.vectors.get("output"),
        deviation=0.0 if settings.tied else decoders[settings.kind].embedding_deviation,
    )


def _tied(recipe: Recipe, conditions: Conditions) -> nn.Parameter | None:
    tied = isinstance(recipe.decoder, SymbolSettings) and recipe.decoder.tied
    if not tied or conditions.embedding is None:
        return None
    weight = conditions.embedding.weight
    if not isinstance(weight, nn.Parameter):
        raise UserError("decoder.tied needs an embedding with weights; decoder.embedding.kind is one-hot")
    return weight
