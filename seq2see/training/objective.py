"""The loss of a batch: -sum log P of the targets, teacher forced or with a share of the model's own symbols; of numbers
their squared error."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.data.fields import Fields
from seq2see.decoders import Ready, State, Step
from seq2see.errors import UserError, nearest
from seq2see.model import EncoderDecoder, shifted
from seq2see.recipe.schema import LossSettings
from seq2see.training.along import along
from seq2see.training.consistency import difference
from seq2see.training.hard import drawn, score_function
from seq2see.training.regularisers import alignment, look_terms


@dataclass
class Loss:
    """total: the sum over real targets (with gradient); targets: how many; count: the same, weighted where classes are.

    A target is a symbol, or a row's label, vector or picture. terms: what else is part of the total, beside -log P or
    the squared error.
    """

    total: Float[Tensor, ""]
    count: float
    targets: int
    terms: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> Float[Tensor, ""]:
        return self.total / self.count


class Objective:
    """What is minimised, from the recipe's `loss`; `state` is what it carries from update to update."""

    def __init__(self, settings: LossSettings, fields: Fields):
        self.settings = settings
        self.state: dict[str, float] = {}
        self.smoothing = settings.label_smoothing
        self.weights = class_weights(settings, fields)
        self.aligned = fields.aligning.name if fields.aligning is not None and settings.alignment.weight else None

    @property
    def readings(self) -> int:
        """How often each row of a batch is read, one reading of all rows behind the other."""
        return 2 if self.settings.consistency else 1

    def __call__(self, model: EncoderDecoder, batch: Batch, *, own_share: float = 0.0) -> Loss:
        """own_share: how often the model reads its own last symbol instead of the true one."""
        if own_share > 0:
            step, ready = own_symbols(model, batch, own_share)
        else:
            step, ready = model.taught(batch)
        return self.of(model, step, ready, batch)

    def of(self, model: EncoderDecoder, step: Step, ready: Ready, batch: Batch) -> Loss:
        targets, mask = targets_of(batch)
        weights = None if self.weights is None else self.weights.to(targets.device)
        total = model.head.loss(step, ready, targets, mask=mask, smoothing=self.smoothing, weights=weights)
        real = int(mask.sum())
        terms = self._terms(model, step, ready, targets, mask)
        if self.aligned is not None and batch.alignment is not None:
            looked = step.looks[self.aligned].dense()
            terms["alignment"] = self.settings.alignment.weight * alignment(looked, batch.alignment)
        if self.settings.consistency:
            terms["consistency"] = self.settings.consistency * difference(model.log_probs(step, ready), mask)
        if model.ctc is not None:
            terms["ctc"] = self.settings.ctc * along(model, ready, targets, mask, self.state)
        for term in terms.values():
            total = total + term
        count = float(real if weights is None else weights[targets].sum())
        return Loss(total, count, real, {name: float(term.detach()) for name, term in terms.items()})

    def _terms(
        self, model: EncoderDecoder, step: Step, ready: Ready, targets: Tensor, mask: Tensor
    ) -> dict[str, Float[Tensor, ""]]:
        """What looks cost or bring; a label is a row of one step."""
        steps = mask.view(len(mask), -1)
        terms: dict[str, Tensor] = {}
        looks, seen = step.by_layer(), ready.by_layer()
        for name, look in looks.items():
            for kind, term in look_terms(self.settings, look, places=seen[name].mask, steps=steps).items():
                terms[kind] = terms[kind] + term if kind in terms else term
        if chosen := drawn(looks):
            log_probs = torch.zeros(mask.shape, device=mask.device)
            log_probs[mask] = model.head.given(step, ready, targets, mask=mask).detach()
            terms["draws"] = score_function(self.settings, chosen, log_probs.view_as(steps), steps, self.state)
        return terms


def targets_of(batch: Batch) -> tuple[Tensor, Bool[Tensor, "batch *steps"]]:
    """What should come out, and what of it is real: symbols (batch, steps), labels (batch,), numbers (batch, size)."""
    if isinstance(batch.target, Sequences):
        return batch.target.ids, batch.target.mask
    if batch.target is None:
        raise ValueError("a batch without targets has no loss")
    targets = batch.target.ids if isinstance(batch.target, Labels) else batch.target.values
    return targets, torch.ones(len(targets), dtype=torch.bool, device=targets.device)


def own_symbols(model: EncoderDecoder, batch: Batch, share: float) -> tuple[Step, Ready]:
    """Scheduled sampling: with probability `share` a step reads the model's own likeliest symbol, not the true one."""
    if not isinstance(batch.target, Sequences):
        raise ValueError("only text is written symbol by symbol")
    ready = model.ready(batch.inputs, len(batch.rows))
    state: State = model.begin(ready)
    truth = shifted(batch.target.ids)
    token = truth[:, 0]
    steps: list[Step] = []
    for t in range(truth.shape[1]):
        steps.append(model.step(ready, state, token))
        state = steps[-1].state
        if t + 1 < truth.shape[1]:
            with torch.no_grad():
                own = model.log_probs(steps[-1], ready).argmax(-1)
            use_own = torch.rand(len(own), device=own.device) < share
            token = torch.where(use_own, own, truth[:, t + 1])
    return Step.stacked(steps), ready


def class_weights(settings: LossSettings, fields: Fields) -> Float[Tensor, " classes"] | None:
    """One weight per label: none, `balanced` (rows / (classes * rows of the class)), or those the recipe gives."""
    if settings.class_weights == "none":
        return None
    labels = fields.label_output.labels
    if isinstance(settings.class_weights, dict):
        for name in settings.class_weights:
            if name not in labels:
                raise UserError(
                    f"loss.class_weights: no label is called '{name}'{nearest(name, labels)}; "
                    f"labels: {', '.join(labels)}"
                )
        return torch.tensor([settings.class_weights.get(label, 1.0) for label in labels])
    counts = torch.tensor(fields.label_output.counts, dtype=torch.float32).clamp(min=1)
    return counts.sum() / (len(labels) * counts)
