"""One step of a model or of an ensemble, behind one interface for all searches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from seq2see.decoders import Ready, State
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.search.ctc_prefix import CtcPrefixScorer
from seq2see.search.hypotheses import encoder_looks, joint_places, mean_looks, resized, self_attention_name

# --- The extended vocabulary of copying: the symbols of the output, followed by words of each input


@dataclass
class CopyVocabulary:
    """What can be generated for each input.

    vocabulary: the number of symbols that all models share; limits: (batch,), the number of ids of each input; words:
    those of the ids from `vocabulary` on, input by input.
    """

    vocabulary: int
    limits: Int[Tensor, " batch"]
    words: list[list[str]]

    @classmethod
    def of(cls, models: Sequence[EncoderDecoder], readies: Sequence[Ready]) -> CopyVocabulary:
        """That of an ensemble: what one model can copy, all can."""
        vocabulary = _one_vocabulary(models)
        pairs = list(zip(models, readies, strict=True))
        further = torch.stack([model.head.further(ready) for model, ready in pairs]).amax(0)
        known = [words for model, ready in pairs if (words := model.head.words(ready)) is not None]
        longest = [max(rows, key=len) for rows in zip(*known, strict=True)] if known else [[] for _ in further]
        return cls(vocabulary, vocabulary + further, longest)

    @property
    def symbols(self) -> int:
        """The size of a distribution: that of the input with the most words."""
        return max(self.vocabulary, int(self.limits.max()))

    def padded(self, log_probs: Float[Tensor, "rows _"]) -> Float[Tensor, "rows symbols"]:
        """A model's distribution, with minus infinity at the words that it cannot copy."""
        missing = self.symbols - log_probs.shape[-1]
        return pad(log_probs, (0, missing), value=-torch.inf) if missing else log_probs

    def cut(
        self, log_probs: Float[Tensor, "rows symbols"], inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "rows symbols"]:
        """Minus infinity at words that an input does not have; each input has the same number of rows, in a run."""
        if self.symbols == self.vocabulary:
            return log_probs
        limits = self.limits[inputs].repeat_interleave(len(log_probs) // len(inputs))
        return log_probs.masked_fill(torch.arange(self.symbols, device=limits.device) >= limits[:, None], -torch.inf)


def _one_vocabulary(models: Sequence[EncoderDecoder]) -> int:
    if not models:
        raise UserError("a search needs at least one model, got none")
    sizes = [model.head.symbols for model in models]
    if len(set(sizes)) > 1:
        raise UserError(f"the models of an ensemble need one output vocabulary, got sizes {sizes}")
    return sizes[0]


# --- The steps

Source = tuple[EncoderDecoder, Mapping[str, Any]]
"""A model and its inputs: the columns of a batch."""

LEAST = -1e4
"""The least log-probability: symbols that a model finds impossible stay apart from forbidden ones (-inf)."""


class Stepper:
    """The states of all models; their memories hold each input once, however many hypotheses it has.

    places: what can be attended to; inner: the encoders' own attention; writable: what can be generated; all of them
    for the whole batch, also after compaction.
    """

    def __init__(self, sources: Sequence[Source], rows: int, *, maps: bool = False, ctc: float = 0.0):
        """maps: also return the looks of each head and layer, and self-attention (of a single model);
        ctc: the share of the CTC prefix score in the probabilities of each model."""
        self._models = [model for model, _ in sources]
        self._apart = maps and len(sources) == 1
        self._ready = [model.ready(inputs, rows, maps=self._apart) for model, inputs in sources]
        self.writable = CopyVocabulary.of(self._models, self._ready)
        self.symbols = self.writable.symbols
        self._inputs = torch.arange(rows, device=self.writable.limits.device)
        self._states: list[State] = []
        self._share, self._ctc = ctc, list[CtcPrefixScorer]()
        if ctc and any(model.ctc is None for model in self._models):
            raise UserError(f"ctc {ctc:g}: this model was trained without loss.ctc; allowed: 0")
        self.places = joint_places(self._ready)
        self.inner = encoder_looks(self._ready)
        self.device = self._models[0].head.device

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""
        pairs = list(zip(self._models, self._ready, strict=True))
        self._states = [model.begin(ready, width=width) for model, ready in pairs]
        if self._share:
            self._ctc = [
                CtcPrefixScorer.begin(*model.ctc_log_probs(ready.memory), width=width) for model, ready in pairs
            ]

    def step(
        self, tokens: Int[Tensor, " rows"] | None, forced: Mapping[str, Float[Tensor, "rows _"]] | None = None
    ) -> tuple[Float[Tensor, "rows symbols"], dict[str, Float[Tensor, "rows *heads _"]]]:
        """Extend every hypothesis by its token: log P of the next symbol, and {input name: (rows, places)}, the looks.

        With maps, looks with heads are (rows, heads, places), those of lower layers are included by their names, and so
        is self-attention to the symbols so far (`self_attention_name`). The probabilities of an ensemble are the mean
        of its models'. forced: attention weights that replace the models' own where they are not NaN.
        """
        log_probs, looks = [], []
        for number, (model, ready) in enumerate(zip(self._models, self._ready, strict=True)):
            layers = ready.by_layer()
            own = {
                name: resized(weights, layers[name].mask.shape[-1])
                for name, weights in (forced or {}).items()
                if name in layers
            }
            step = model.step(ready, self._states[number], tokens, forced=own or None)
            self._states[number] = step.state
            log_probs.append(self.writable.padded(self._with_ctc(number, model.log_probs(step, ready), tokens)))
            if self._apart:
                apart = {name: look.by_head() for name, look in step.by_layer().items()}
                apart |= {
                    self_attention_name(layer): weights for layer, weights in enumerate(step.self_weights, start=1)
                }
                looks.append(apart)
            else:
                looks.append({name: look.dense() for name, look in step.looks.items()})
        joint = _mean_probability(log_probs)
        if joint[:, 0].isnan().any():  # a softmax that fails fails in every symbol
            raise UserError("the model's probabilities are not numbers: its weights are damaged, or training diverged")
        return self.writable.cut(joint.clamp_(min=LEAST), self._inputs), mean_looks(looks)

    def _with_ctc(
        self, number: int, log_probs: Float[Tensor, "rows _"], tokens: Int[Tensor, " rows"] | None
    ) -> Float[Tensor, "rows _"]:
        """A model's distribution times that of its CTC prefix scorer, each to the power of its share."""
        if not self._share or tokens is None:
            return log_probs
        self._ctc[number] = self._ctc[number].read(tokens)
        scores = self._ctc[number].log_probs().to(log_probs).clamp(min=LEAST)
        return torch.log_softmax((1 - self._share) * log_probs.clamp(min=LEAST) + self._share * scores, dim=-1)

    def select(self, rows: Int[Tensor, " chosen"], width: int) -> None:
        """Continue with these hypotheses, `width` in a run for each input; memories stay as they are."""
        self._states = [state.select(rows, width) for state in self._states]
        self._ctc = [scorer.select(rows) for scorer in self._ctc]

    def compact(self, kept: Int[Tensor, " inputs"]) -> None:
        """Continue with these inputs alone: the others are removed from states and memories."""
        width = self._states[0].width
        rows = (kept[:, None] * width + torch.arange(width, device=kept.device)).flatten()
        self.select(rows, width)
        self._ready = [ready.select(kept) for ready in self._ready]
        self._ctc = [scorer.compact(kept) for scorer in self._ctc]
        self._inputs = self._inputs[kept]


def _mean_probability(log_probs: list[Tensor]) -> Tensor:
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
