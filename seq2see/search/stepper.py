"""One step of one model or of an ensemble, behind one interface: a search does not know which it drives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.decoders import State
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.search.copy_vocabulary import CopyVocabulary
from seq2see.search.ctc_prefix import Along
from seq2see.search.hypotheses import encoder_looks, fitted, joint_places, mean_looks, self_attention_name

Source = tuple[EncoderDecoder, Mapping[str, Any]]
"""A model and the columns of a batch that its encoders read."""

LEAST = -1e4
"""Floor of a log-probability: what a model holds impossible stays a number, apart from what a search forbids (-inf)."""


class Stepper:
    """Carries the states of all models; their memories hold each input once, however many hypotheses read it.

    places: what can be looked at, inner: where encoders looked, writable: what can be written; all for the inputs as
    they came (compaction leaves them as they are).
    """

    def __init__(self, sources: Sequence[Source], rows: int, *, maps: bool = False, ctc: float = 0.0):
        """maps: also tell each head and each layer apart, and where encoders looked (of one model, not of several);
        ctc: the share that what is read along the places has in what each model says."""
        self._models = [model for model, _ in sources]
        self._apart = maps and len(sources) == 1
        self._ready = [model.ready(inputs, rows, maps=self._apart) for model, inputs in sources]
        self.writable = CopyVocabulary.of(self._models, self._ready)
        self.symbols = self.writable.symbols
        self._inputs = torch.arange(rows, device=self.writable.limits.device)
        self._states: list[State] = []
        self._share, self._along = ctc, list[Along]()
        if ctc and any(model.ctc is None for model in self._models):
            raise UserError(f"ctc {ctc:g}: this model was trained without loss.ctc; allowed: 0")
        self.places = joint_places(self._ready)
        self.inner = encoder_looks(self._ready)
        self.device = self._models[0].head.device

    def begin(self, width: int) -> None:
        """`width` hypotheses for each input."""
        pairs = list(zip(self._models, self._ready, strict=True))
        self._states = [model.begin(ready, width=width) for model, ready in pairs]
        if self._share:
            self._along = [Along.begin(*model.ctc_log_probs(ready.memory), width=width) for model, ready in pairs]

    def step(
        self, tokens: Int[Tensor, " rows"] | None, forced: Mapping[str, Float[Tensor, "rows _"]] | None = None
    ) -> tuple[Float[Tensor, "rows symbols"], dict[str, Float[Tensor, "rows *heads _"]]]:
        """Every hypothesis reads its token: log P of each symbol, and {input name: (rows, places)}, where it looked.

        Told apart, looks with heads are (rows, heads, places), and those of lower layers are there by their names; so
        are those at what has been read so far (`inward_name`), which are as wide as that.
        An ensemble's P is the mean of its models' P. `forced` weights take the place of the models' own (NaN: free).
        """
        log_probs, looks = [], []
        for number, (model, ready) in enumerate(zip(self._models, self._ready, strict=True)):
            layers = ready.by_layer()
            own = {
                name: fitted(weights, layers[name].mask.shape[-1])
                for name, weights in (forced or {}).items()
                if name in layers
            }
            step = model.step(ready, self._states[number], tokens, forced=own or None)
            self._states[number] = step.state
            log_probs.append(self.writable.padded(self._with_line(number, model.log_probs(step, ready), tokens)))
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

    def _with_line(
        self, number: int, log_probs: Float[Tensor, "rows _"], tokens: Int[Tensor, " rows"] | None
    ) -> Float[Tensor, "rows _"]:
        """A model's own distribution times what is read along its places, each to the power of its share."""
        if not self._share or tokens is None:
            return log_probs
        self._along[number] = self._along[number].read(tokens)
        read = self._along[number].log_probs().to(log_probs).clamp(min=LEAST)
        return torch.log_softmax((1 - self._share) * log_probs.clamp(min=LEAST) + self._share * read, dim=-1)

    def select(self, rows: Int[Tensor, " chosen"], width: int) -> None:
        """Go on from these hypotheses, `width` in a run for each input; memories stay as they are."""
        self._states = [state.select(rows, width) for state in self._states]
        self._along = [along.select(rows) for along in self._along]

    def compact(self, kept: Int[Tensor, " inputs"]) -> None:
        """Go on with these inputs alone: the others leave states and memories."""
        width = self._states[0].width
        rows = (kept[:, None] * width + torch.arange(width, device=kept.device)).flatten()
        self.select(rows, width)
        self._ready = [ready.select(kept) for ready in self._ready]
        self._along = [along.compact(kept) for along in self._along]
        self._inputs = self._inputs[kept]


def _mean_probability(log_probs: list[Tensor]) -> Tensor:
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.logsumexp(torch.stack(log_probs), 0) - math.log(len(log_probs))


@contextmanager
def evaluating(models: Sequence[EncoderDecoder]) -> Iterator[None]:
    """Without dropout and gradients; each module goes back to its mode, so a training run can search in between."""
    training = [module for model in models for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True
