"""A model or an ensemble as a `Stepper`, and the probability of given outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor
from torch.nn.functional import pad

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.decoders import CopyHead, Ready, SoftmaxHead, State
from seq2see.decoders.fused_step import FusedSteps, fused_steps
from seq2see.decoders.top_symbols import top_symbols
from seq2see.errors import UserError
from seq2see.memory import EncoderMap, Memory, Places
from seq2see.model import EncoderDecoder
from seq2see.packed_weights import PackedWeights
from seq2see.search.ctc_prefix import CtcPrefixScorer
from seq2see.search.hypotheses import EncoderLook, Hypothesis, JointPlaces, self_attention_name
from seq2see.search.language_model import Fusion, NextSymbols, OutputLanguageModel
from seq2see.search.options import SearchOptions
from seq2see.search.run import run_search
from seq2see.search.stepper import LEAST, CopyVocabulary
from seq2see.search.top import Likeliest, best_first, likeliest

Source = tuple[EncoderDecoder, Mapping[str, Any]]
"""A model and its inputs: the columns of a batch."""


class ModelStepper:
    """The states of all models; their memories hold each input once, however many hypotheses it has.

    The probabilities of an ensemble are the mean of its models'.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        rows: int,
        *,
        maps: bool = False,
        ctc: float = 0.0,
        packed: Sequence[PackedWeights] | None = None,
    ):
        """maps: also return the looks of each head and layer, and self-attention (of a single model);
        ctc: the share of the CTC prefix score in the probabilities of each model; packed: the models' weights."""
        self._models = [model for model, _ in sources]
        self._apart = maps and len(sources) == 1
        weights: Sequence[PackedWeights | None] = packed or [None] * len(sources)
        self._ready = [
            model.ready(inputs, rows, maps=self._apart, packed=own)
            for (model, inputs), own in zip(sources, weights, strict=True)
        ]
        self.writable = _copy_vocabulary(self._models, self._ready)
        self._inputs = np.arange(rows)
        self._states: list[State] = []
        self._share, self._ctc = ctc, list[CtcPrefixScorer]()
        if ctc and any(model.ctc is None for model in self._models):
            raise UserError(f"ctc {ctc:g}: this model was trained without loss.ctc; allowed: 0")
        self.places = joint_places(self._ready)
        self.inner = encoder_looks(self._ready)
        self._device = self._models[0].head.device
        self._packed = weights
        self._fused = None if maps or ctc else self._fuse()

    def _fuse(self) -> FusedSteps | None:
        """The faster steps of a single model, where it has them."""
        if len(self._models) > 1:
            return None
        return fused_steps(self._models[0].decoder, self._models[0].head, self._ready[0], self._packed[0])

    def internal(self) -> ModelStepper:
        """The internal language model: the same decoders, whose memories are all zeros (zero-out, Meng et al. 2021).

        To be made before the search begins.
        """
        if any(isinstance(model.head, CopyHead) for model in self._models):
            raise UserError("language_model_internal: words that are copied come from the input alone; allowed: 0")
        other = copy(self)
        other._ready = [
            model.decoder.prepare(_zeroed(ready.memory)).with_packed(packed)
            for model, ready, packed in zip(self._models, self._ready, self._packed, strict=True)
        ]
        other._share, other._apart = 0.0, False
        other._fused = other._fuse()
        return other

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""
        if self._fused is not None:
            self._fused.begin(width)
            return
        pairs = list(zip(self._models, self._ready, strict=True))
        self._states = [model.begin(ready, width=width) for model, ready in pairs]
        if self._share:
            frames = [model.ctc_log_probs(ready.memory) for model, ready in pairs]
            self._ctc = [
                CtcPrefixScorer.begin(_array(log_probs), _array(mask), width=width) for log_probs, mask in frames
            ]

    def step(
        self, tokens: Int[ndarray, " rows"] | None, forced: Mapping[str, Float[ndarray, "rows _"]] | None = None
    ) -> tuple[Float[ndarray, "rows symbols"], dict[str, Float[ndarray, "rows *heads _"]]]:
        """Extend every hypothesis by its token: see `Stepper`."""
        if self._fused is None:
            return self._step_models(tokens, forced)
        read, looks = self._step_fused(self._fused, tokens, forced)
        log_probs = torch.log_softmax(self._ready[0].linear(read, self._head.V, self._head.c), dim=-1)
        times = 1 if tokens is None else len(tokens) // len(log_probs)
        return _array(_checked(log_probs)).repeat(times, 0), _repeated(looks, times)

    def step_top(
        self,
        tokens: Int[ndarray, " rows"],
        number: int,
        forced: Mapping[str, Float[ndarray, "rows _"]] | None = None,
    ) -> tuple[Likeliest, dict[str, Float[ndarray, "rows *heads _"]]]:
        """The same, of the likeliest symbols alone: see `stepper.step_top`."""
        if self._fused is None:
            log_probs, looks = self._step_models(tokens, forced)
            return likeliest(log_probs, number), looks
        read, looks = self._step_fused(self._fused, tokens, forced)
        ids, values = map(_array, top_symbols(self._head, read, self._ready[0], number))
        if np.isnan(values).any():
            raise UserError(DAMAGED)
        times = len(tokens) // len(ids)
        best = best_first(ids, np.maximum(values, LEAST))
        if times > 1:
            best = Likeliest(best.ids.repeat(times, 0), best.log_probs.repeat(times, 0))
        return best, _repeated(looks, times)

    def _step_fused(
        self,
        fused: FusedSteps,
        tokens: Int[ndarray, " rows"] | None,
        forced: Mapping[str, Float[ndarray, "rows _"]] | None,
    ) -> tuple[Float[Tensor, "_ width"], dict[str, Float[ndarray, "_ places"]]]:
        """What V is multiplied with, and the looks; at the first step of one row of each input."""
        assert tokens is not None
        weights = None if not forced or fused.name not in forced else torch.from_numpy(forced[fused.name])
        read, look = fused.step(torch.from_numpy(tokens), weights)
        return read, {fused.name: look.numpy()}

    @property
    def _head(self) -> SoftmaxHead:
        """The output layer of the one model that takes fused steps."""
        return cast(SoftmaxHead, self._models[0].head)

    def _step_models(
        self, tokens: Int[ndarray, " rows"] | None, forced: Mapping[str, Float[ndarray, "rows _"]] | None
    ) -> tuple[Float[ndarray, "rows symbols"], dict[str, Float[ndarray, "rows *heads _"]]]:
        log_probs, looks = [], []
        read = None if tokens is None else self._tensor(tokens)
        for number, (model, ready) in enumerate(zip(self._models, self._ready, strict=True)):
            step = model.step(ready, self._states[number], read, forced=self._forced(ready, forced))
            self._states[number] = step.state
            log_probs.append(self._padded(self._with_ctc(number, model.log_probs(step, ready), tokens)))
            if self._apart:
                apart = {name: look.by_head() for name, look in step.by_layer().items()}
                apart |= {
                    self_attention_name(layer): weights for layer, weights in enumerate(step.self_weights, start=1)
                }
                looks.append(apart)
            else:
                looks.append({name: look.dense() for name, look in step.looks.items()})
        joint = _checked(mean_probability(log_probs))
        seen = {name: _array(weights) for name, weights in mean_looks(looks).items()}
        return self.writable.cut(_array(joint), self._inputs), seen

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        """Continue with these hypotheses of these inputs; memories stay as they are while no input leaves."""
        left = len(inputs) < len(self._inputs)
        if self._fused is not None:
            self._fused.select(torch.from_numpy(rows), torch.from_numpy(inputs) if left else None)
            self._inputs = self._inputs[inputs]
            return
        width, chosen = self._states[0].width, self._tensor(rows)
        self._states = [state.select(chosen, width) for state in self._states]
        self._ctc = [scorer.select(rows) for scorer in self._ctc]
        if left:
            kept = self._tensor(inputs)
            self._ready = [ready.select(kept) for ready in self._ready]
            self._ctc = [scorer.compact(inputs) for scorer in self._ctc]
            self._inputs = self._inputs[inputs]

    def _tensor(self, array: ndarray) -> Tensor:
        return torch.from_numpy(array).to(self._device)

    def _forced(
        self, ready: Ready, forced: Mapping[str, Float[ndarray, "rows _"]] | None
    ) -> dict[str, Float[Tensor, "rows _"]] | None:
        """The weights for the places that a model has."""
        if not forced:
            return None
        layers = ready.by_layer()
        own = {
            name: resized(self._tensor(weights), layers[name].mask.shape[-1])
            for name, weights in forced.items()
            if name in layers
        }
        return own or None

    def _padded(self, log_probs: Float[Tensor, "rows _"]) -> Float[Tensor, "rows symbols"]:
        """A model's distribution, with minus infinity at the words that it cannot copy."""
        missing = self.writable.symbols - log_probs.shape[-1]
        return pad(log_probs, (0, missing), value=-torch.inf) if missing else log_probs

    def _with_ctc(
        self, number: int, log_probs: Float[Tensor, "rows _"], tokens: Int[ndarray, " rows"] | None
    ) -> Float[Tensor, "rows _"]:
        """A model's distribution times that of its CTC prefix scorer, each to the power of its share."""
        if not self._share or tokens is None:
            return log_probs
        self._ctc[number] = self._ctc[number].read(tokens)
        scores = self._tensor(self._ctc[number].log_probs()).to(log_probs).clamp(min=LEAST)
        return torch.log_softmax((1 - self._share) * log_probs.clamp(min=LEAST) + self._share * scores, dim=-1)


DAMAGED = "the model's probabilities are not numbers: its weights are damaged, or training diverged"


def _checked(log_probs: Float[Tensor, "rows symbols"]) -> Float[Tensor, "rows symbols"]:
    """The same (changed in place), none of them below the least; refused where they are not numbers."""
    if log_probs[:, 0].isnan().any():  # a softmax that fails fails in every symbol
        raise UserError(DAMAGED)
    return log_probs.clamp_(min=LEAST)


def _repeated(looks: dict[str, ndarray], times: int) -> dict[str, ndarray]:
    return looks if times == 1 else {name: weights.repeat(times, 0) for name, weights in looks.items()}


def _array(tensor: Tensor) -> ndarray:
    array: ndarray = tensor.numpy() if tensor.device.type == "cpu" else tensor.cpu().numpy()
    return array


def _zeroed(memory: Memory) -> Memory:
    """A memory of the same places, in which nothing is."""
    summaries = {name: torch.zeros_like(summary) for name, summary in memory.summaries.items()}
    return replace(memory, places={name: _empty(each) for name, each in memory.places.items()}, summaries=summaries)


def _empty(places: Places) -> Places:
    inside = None if places.inside is None else _empty(places.inside)
    return replace(places, states=torch.zeros_like(places.states), inside=inside)


def _copy_vocabulary(models: Sequence[EncoderDecoder], readies: Sequence[Ready]) -> CopyVocabulary:
    """That of an ensemble: what one model can copy, all can."""
    vocabulary = _one_vocabulary(models)
    pairs = list(zip(models, readies, strict=True))
    further = torch.stack([model.head.further(ready) for model, ready in pairs]).amax(0)
    known = [words for model, ready in pairs if (words := model.head.words(ready)) is not None]
    longest = [max(rows, key=len) for rows in zip(*known, strict=True)] if known else [[] for _ in further]
    return CopyVocabulary(vocabulary, vocabulary + _array(further), longest)


def _one_vocabulary(models: Sequence[EncoderDecoder]) -> int:
    if not models:
        raise UserError("a search needs at least one model, got none")
    sizes = [model.head.symbols for model in models]
    if len(set(sizes)) > 1:
        raise UserError(f"the models of an ensemble need one output vocabulary, got sizes {sizes}")
    return sizes[0]


def mean_probability(log_probs: list[Tensor]) -> Tensor:
    """The log of an ensemble's mean probability."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.logsumexp(torch.stack(log_probs), 0) - math.log(len(log_probs))


@contextmanager
def evaluating(models: Sequence[EncoderDecoder]) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards each module is in its former mode, so that training can go on."""
    training = [module for model in models for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True


def search(
    sources: Sequence[Source],
    rows: Sequence[int],
    options: SearchOptions | None = None,
    *,
    device: torch.device | str | None = None,
    maps: bool = False,
    packed: Sequence[PackedWeights] | None = None,
    language_model: OutputLanguageModel | None = None,
) -> list[list[Hypothesis]]:
    """For each input its hypotheses, best first, at most n_best of them (`run_search`).

    sources: one model with its inputs, or several that form an ensemble over one output vocabulary;
    device: where the models are, if the inputs are still elsewhere;
    maps: also tell heads and layers apart (of a single model);
    packed: the models' weights, packed for many searches;
    language_model: has a say at every step, with the weights of the options (shallow fusion).
    """
    options = options if options is not None else SearchOptions()
    if any(model.decoder.one_step for model, _ in sources):
        raise UserError("this model gives labels or numbers, which are classified or reconstructed, not searched for")
    if options.language_model is not None and language_model is None:
        raise UserError(f"language_model: {options.language_model} has to be loaded first, as `Model.predict` does")
    if not rows:
        return []
    with evaluating([model for model, _ in sources]):
        stepper = ModelStepper(move_inputs(sources, device), len(rows), maps=maps, ctc=options.ctc, packed=packed)
        return run_search(stepper, rows, options, _fusion(stepper, language_model, options))


def _fusion(stepper: ModelStepper, language_model: OutputLanguageModel | None, options: SearchOptions) -> Fusion:
    if language_model is None:
        return Fusion()
    parts: list[tuple[float, NextSymbols]] = [
        (float(options.language_model_weight), language_model.over_output(stepper.writable))
    ]
    if options.language_model_internal:
        parts.append((-float(options.language_model_internal), stepper.internal()))
    return Fusion(parts)


def move_inputs(sources: Sequence[Source], device: torch.device | str | None) -> list[Source]:
    """The sources with their inputs on the device; None: where they are."""
    if device is None:
        return list(sources)
    return [(model, {name: column.to(device) for name, column in inputs.items()}) for model, inputs in sources]


# --- Places and looks of the models


def joint_places(readies: Sequence[Ready]) -> dict[str, JointPlaces]:
    """The places of every input that any of the models attends to; `agreed` is decided for each row alone."""
    layers = [ready.by_layer() for ready in readies]
    names = dict.fromkeys(name for looks in layers for name in looks)
    joint = {name: _join([looks[name].places for looks in layers if name in looks]) for name in names}
    for name, places in joint.items():
        places.lower = not any(name in ready.looks for ready in readies)
    return joint


def _join(models: Sequence[Places]) -> JointPlaces:
    masks = _same_width([places.mask for places in models])
    agreed = torch.stack([(mask == masks[0]).all(-1) for mask in masks]).all(0)
    tokens = [places.tokens for places in models if places.tokens is not None]
    if len(tokens) > 1:
        same = [all(row == other for other in rest) for row, *rest in zip(*tokens, strict=True)]
        agreed = agreed & torch.tensor(same, device=agreed.device)
    parent = None if models[0].parent is None else _array(models[0].parent)
    return JointPlaces(_array(masks[0]), _array(agreed), models[0].layout, tokens[0] if tokens else None, parent=parent)


def mean_looks(looks: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, "rows *heads places"]]:
    """{name: (rows, places)}: the mean over the models that attend to that input."""
    if len(looks) == 1:
        return dict(looks[0])
    names = dict.fromkeys(name for model in looks for name in model)
    return {name: torch.stack(_same_width([model[name] for model in looks if name in model])).mean(0) for name in names}


def resized(weights: Float[Tensor, "rows _"], places: int) -> Float[Tensor, "rows places"]:
    """The same weights for so many places: padding is added or removed at the end."""
    return pad(weights, (0, places - weights.shape[-1]))


def _same_width(parts: list[Tensor]) -> list[Tensor]:
    width = max(part.shape[-1] for part in parts)
    return [part if part.shape[-1] == width else pad(part, (0, width - part.shape[-1])) for part in parts]


# --- Self-attention of encoders and decoders


def encoder_looks(readies: Sequence[Ready]) -> list[dict[str, EncoderLook]]:
    """For each input {name: its encoder's own attention}; nothing for an ensemble, whose encoders differ."""
    rows = readies[0].rows
    if len(readies) > 1:
        return [{} for _ in range(rows)]
    memory = readies[0].memory
    return [{name: _encoder_look(name, each, memory, row) for name, each in memory.maps.items()} for row in range(rows)]


def _encoder_look(name: str, maps: EncoderMap, memory: Memory, row: int) -> EncoderLook:
    """The real rows and places of a map.

    Its rows are the places it is named after (`document`, of a map `document.words` or `document.self-1`), its columns
    the further places of the map's own name, those of another input (`premise.hypothesis`), or the same places.
    """
    weights = maps.weights[row][..., maps.rows[row], :][..., maps.places[row]].float().cpu().numpy()
    own, _, part = name.rpartition(".")
    asking = memory.places[own]
    over = memory.places.get(name, memory.places.get(part, asking))
    parent = None if over.parent is None else _array(over.parent)
    layout = JointPlaces(_array(over.mask), _array(over.mask.any(-1)), maps.layout, parent=parent).layout_of(row)
    return EncoderLook(weights, layout, _tokens(over, row), _tokens(asking, row))


def _tokens(places: Places, row: int) -> list[str]:
    return [] if places.tokens is None else places.tokens[row]


# --- The probability of given outputs


@dataclass
class TargetScore:
    """log_probs: of each token of a given output, `<eos>` included, or of its label."""

    log_probs: list[float]

    @property
    def total(self) -> float:
        return sum(self.log_probs)


def score_targets(
    model: EncoderDecoder, batch: Batch, *, device: torch.device | str | None = None
) -> list[TargetScore]:
    """log P of each row's target, token by token: what a search would report of it."""
    if not batch.rows:
        return []
    with evaluating([model]):
        batch = batch if device is None else batch.to(device)
        step, ready = model.forward_batch(batch)
        ids, real = _targets(batch)
        chosen = model.head.target_scores(step, ready, ids, mask=real).clamp(min=LEAST)
        return [
            TargetScore(row.double().tolist()) for row in chosen.split(real.view(len(batch.rows), -1).sum(1).tolist())
        ]


def _targets(batch: Batch) -> tuple[Int[Tensor, "*shape"], Bool[Tensor, "*shape"]]:
    """Ids and which of them are real; a label is one target for each row."""
    if isinstance(batch.target, Sequences):
        return batch.target.ids, batch.target.mask
    if isinstance(batch.target, Labels):
        ids = batch.target.ids
        return ids, torch.ones_like(ids, dtype=torch.bool)
    raise ValueError("a batch without targets has nothing to score")
