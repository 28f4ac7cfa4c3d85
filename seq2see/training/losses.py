"""The loss of a batch: that of the output head, and the terms that a recipe adds to it.

Cross entropy, label smoothing and squared error are computed by the output heads (`decoders/output_heads.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.attention import Look
from seq2see.data.batches import Batch, Labels, Sequences, TimeSpans
from seq2see.data.vocabulary import EOS, PAD, UNK
from seq2see.decoders import Ready, State, Step
from seq2see.decoders.output_heads import FLOOR, two_pass_divergence
from seq2see.errors import UserError, nearest
from seq2see.memory import Memory
from seq2see.model import EncoderDecoder, shifted
from seq2see.pipeline.fields import Fields
from seq2see.recipe.schema import LossSettings, NoiseSettings
from seq2see.search.models import mean_probability
from seq2see.training.rewards import (
    Rewards,
    Symbols,
    advantages,
    draw_outputs,
    drawable,
    most_drawn,
    with_outputs,
    without_dropout,
)

Sums = Callable[[Sequence[float]], list[float]]
"""Sums numbers over the processes that share a batch (`training/distributed.py`); of a single one these are the same
numbers."""


@dataclass
class Loss:
    """The loss of a batch.

    total: the sum over real targets (with gradient); targets: their number; count: their number weighted by class;
    terms: the parts of the total beside -log P or the squared error. A target is a symbol, or a row's label, vector or
    image.
    """

    total: Float[Tensor, ""]
    count: float
    targets: int
    terms: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> Float[Tensor, ""]:
        """The loss per target, which is minimised."""
        return self.total / self.count

    def nothing(self) -> Loss:
        """The same loss, counted as that of no target; its gradient is 0."""
        return Loss(self.total * 0, 0.0, 0, dict.fromkeys(self.terms, 0.0))


class Objective:
    """Computes the loss of a batch as the recipe's `loss` defines it; `state` is carried from update to update.

    sums: over the processes that share a batch; teachers: the models of `loss.distillation`, in evaluation mode;
    noise: on the inputs that the model reads, not on those of the teachers; rewards: those of `loss.reward`. decoding:
    whether the decoder is run; in the first part of a run (`loss.ctc_first`) the loss is that of CTC alone, and the
    decoder has no gradient. rewarding: whether outputs are drawn and rewarded, in the last part (`loss.reward.last`).
    """

    def __init__(
        self,
        settings: LossSettings,
        fields: Fields,
        *,
        sums: Sums = list,
        teachers: Sequence[EncoderDecoder] = (),
        noise: NoiseSettings | None = None,
        rewards: Rewards | None = None,
    ):
        self.settings, self.sums, self.teachers, self.rewards = settings, sums, list(teachers), rewards
        self.noise = noise if noise is not None and noise.any else None
        self.state: dict[str, float] = {}
        self.decoding, self.rewarding = True, False
        self.smoothing = settings.label_smoothing
        self.weights = class_weights(settings, fields)
        self.aligned = fields.alignment.name if fields.alignment is not None and settings.alignment.weight else None

    def begin(self, share: float, *, rewarding: bool = False) -> None:
        """Take the loss of the part of the run that an update belongs to. share: of the run that is done; rewarding:
        the last part has begun already."""
        self.decoding = share >= self.settings.ctc_first
        self.rewarding = self.rewards is not None and (rewarding or share >= 1 - self.settings.reward.last)

    @property
    def passes(self) -> int:
        """How often each row is in a batch, all rows once, then all rows again: twice for consistency."""
        return 2 if self.settings.consistency and not self.rewarding else 1

    def __call__(self, model: EncoderDecoder, batch: Batch, *, own_share: float = 0.0, idle: bool = False) -> Loss:
        """own_share: how often the model reads its own last symbol instead of the true one (scheduled sampling).
        idle: the batch belongs to another process, and counts nothing here."""
        read = batch if self.noise is None else noised_batch(batch, self.noise)
        if not self.decoding:
            return self.ctc_alone(model, read, idle=idle)
        if self.rewarding:
            return self.expected_reward(model, read, idle=idle)
        if own_share > 0:
            step, ready = scheduled_sampling(model, read, own_share)
        else:
            step, ready = model.forward_batch(read)
        return self.loss(model, step, ready, batch, idle=idle)

    def loss(self, model: EncoderDecoder, step: Step, ready: Ready, batch: Batch, *, idle: bool = False) -> Loss:
        targets, mask = targets_of(batch)
        classes = None if self.weights is None else self.weights.to(targets.device)
        own = 1 - self.settings.distillation.weight if self.teachers else 1.0
        total = torch.zeros((), device=targets.device)
        parts: dict[str, float] = {}
        if self.settings.consistency and not self.teachers:
            total, term = model.head.consistent_loss(
                step,
                ready,
                targets,
                mask=mask,
                consistency=self.settings.consistency,
                smoothing=self.smoothing,
                weights=classes,
            )
            parts["consistency"] = float(term)
        elif own:
            total = own * model.head.loss(step, ready, targets, mask=mask, smoothing=self.smoothing, weights=classes)
        real = int(mask.sum())
        terms = self._terms(model, step, ready, targets, mask, idle=idle)
        if self.teachers:
            log_probs = model.log_probs(step, ready)
            each = self._distillation(log_probs, batch, mask)
            terms["distillation"] = each.sum() if classes is None else (each * classes[targets[mask]]).sum()
            if self.settings.consistency:
                terms["consistency"] = self.settings.consistency * two_pass_divergence(log_probs, mask)
        if self.aligned is not None and batch.alignment is not None:
            weights, places = step.looks[self.aligned].dense(), ready.looks[self.aligned].mask
            terms["alignment"] = self.settings.alignment.weight * alignment(weights, batch.alignment, places)
        if model.ctc is not None:
            terms["ctc"] = self._ctc(model, ready.memory, targets, mask, idle=idle)
            if self.settings.ctc_alignment:
                terms["ctc_alignment"] = self.settings.ctc_alignment * ctc_alignment(model, step, ready, targets, mask)
        for term in terms.values():
            total = total + term
        count = float(real if classes is None else classes[targets].sum())
        parts |= {name: float(term.detach()) for name, term in terms.items()}
        loss = Loss(total, count, real, parts)
        return loss.nothing() if idle else loss

    def ctc_alone(self, model: EncoderDecoder, batch: Batch, *, idle: bool = False) -> Loss:
        """The term of CTC and no other: the decoder is not run."""
        targets, mask = targets_of(batch)
        total = self._ctc(model, model.encode(batch.inputs, len(batch.rows)), targets, mask, idle=idle)
        real = int(mask.sum())
        loss = Loss(total, float(real), real, {"ctc": float(total.detach())})
        return loss.nothing() if idle else loss

    def expected_reward(self, model: EncoderDecoder, batch: Batch, *, idle: bool = False) -> Loss:
        """The loss of outputs that are drawn from the model for the rows of a batch, and rewarded."""
        assert self.rewards is not None
        samples = self.rewards.samples
        with without_dropout(model):
            outputs = draw_outputs(model, batch, samples=samples, longest=most_drawn(model, batch))
            return self.rewarded(model, batch, outputs, self.rewards(batch.rows * samples, outputs), idle=idle)

    def rewarded(
        self,
        model: EncoderDecoder,
        batch: Batch,
        outputs: Sequence[Symbols],
        rewards: Float[Tensor, " outputs"],
        *,
        idle: bool = False,
    ) -> Loss:
        """-sum_k (r_k - mean of the other rewards of the row) log P(y_k) / d over the drawn outputs y_k. A step down
        its gradient estimates, but for its length, a step up that of the expected reward.

        d: the root of the mean square of the differences, so that a step is about as long as one of the loss before,
        whatever the metric's unit. For the same reason the loss counts as that of the table's outputs, as often as each
        row is drawn for: a mean over the symbols drawn would count those of short outputs more. The terms of the
        attention weights are added, and that of CTC, which reads the table's outputs as before: search may use it.
        """
        samples = self.settings.reward.samples
        drawn = with_outputs(batch, outputs)
        step, ready = model.forward_batch(drawn, times=samples)
        log_probs = drawable(model.log_probs(step, ready))
        gain = advantages(rewards, samples)
        each = [float(rewards.sum()), float(gain.square().sum()), float(len(rewards))]
        reward, squares, number = self.sums([0.0] * 3 if idle else each)
        _moving_mean(self.state, REWARD, reward / max(number, 1), REWARD_DECAY)
        targets, mask = targets_of(drawn)
        gain = gain.to(targets.device) / max((squares / max(number, 1)) ** 0.5, LEAST_DIFFERENCE)
        scores = log_probs.gather(-1, targets[..., None]).squeeze(-1)
        total = -(gain[:, None] * scores.where(mask, 0)).sum()
        terms = {"reward": total, **self._terms(model, step, ready, targets, mask, idle=idle)}
        true, real = targets_of(batch)
        if model.ctc is not None:
            memory = ready.memory.select(torch.arange(len(true), device=true.device))  # each row once
            terms["ctc"] = samples * self._ctc(model, memory, true, real, idle=idle)
        parts = {name: float(term.detach()) for name, term in terms.items()}
        count = samples * float(real.sum())
        loss = Loss(torch.stack(list(terms.values())).sum(), count, int(mask.sum()), parts)
        return loss.nothing() if idle else loss

    def _ctc(
        self, model: EncoderDecoder, memory: Memory, targets: Tensor, mask: Tensor, *, idle: bool
    ) -> Float[Tensor, ""]:
        """The weighted term of CTC; rows that it leaves out are counted."""
        ctc, left_out = ctc_loss(model, memory, targets, mask)
        rows, left_out = self.sums([0, 0] if idle else [len(targets), left_out])
        self.state[CTC_ROWS] = self.state.get(CTC_ROWS, 0) + rows
        self.state[CTC_LEFT_OUT] = self.state.get(CTC_LEFT_OUT, 0) + left_out
        return self.settings.ctc * ctc

    def _distillation(
        self, log_probs: Float[Tensor, "rows *steps symbols"], batch: Batch, mask: Bool[Tensor, "rows *steps"]
    ) -> Float[Tensor, " real"]:
        """The weighted divergence from the teachers, of each real target."""
        settings = self.settings.distillation
        taught = teacher_log_probs(self.teachers, batch)
        each = divergence(taught[mask], log_probs[mask], temperature=settings.temperature)
        return settings.weight * settings.temperature**2 * each

    def _terms(
        self, model: EncoderDecoder, step: Step, ready: Ready, targets: Tensor, mask: Tensor, *, idle: bool
    ) -> dict[str, Float[Tensor, ""]]:
        """The terms of the attention weights; a label is a row of one step."""
        steps = mask.view(len(mask), -1)
        terms: dict[str, Tensor] = {}
        looks, attended = step.by_layer(), ready.by_layer()
        for name, look in looks.items():
            for kind, term in look_terms(self.settings, look, places=attended[name].mask, steps=steps).items():
                terms[kind] = terms[kind] + term if kind in terms else term
        if chosen := sampled(looks):
            log_probs = torch.zeros(mask.shape, device=mask.device)
            log_probs[mask] = model.head.target_scores(step, ready, targets, mask=mask).detach()
            counted = steps & (not idle)
            terms["draws"] = score_function(
                self.settings, chosen, log_probs.view_as(steps), counted, self.state, sums=self.sums
            )
        return terms


def targets_of(batch: Batch) -> tuple[Tensor, Bool[Tensor, "batch *steps"]]:
    """(targets, mask of the real ones): symbols (batch, steps), labels (batch,) or numbers (batch, size)."""
    if isinstance(batch.target, Sequences):
        return batch.target.ids, batch.target.mask
    if batch.target is None:
        raise ValueError("a batch without targets has no loss")
    targets = batch.target.ids if isinstance(batch.target, Labels) else batch.target.values
    return targets, torch.ones(len(targets), dtype=torch.bool, device=targets.device)


def noised_batch(batch: Batch, settings: NoiseSettings) -> Batch:
    """The batch with noise on the symbols of its texts."""
    inputs = {
        name: noised(column, settings) if isinstance(column, Sequences) else column
        for name, column in batch.inputs.items()
    }
    return replace(batch, inputs=inputs)


def noised(column: Sequences, settings: NoiseSettings) -> Sequences:
    """Symbols swapped with the next one, then masked, then dropped; at least one of each row stays.

    Random numbers are torch's own, of the CPU, so that a resumed run draws the same.
    """
    ids, real = column.ids, column.mask

    def drawn(share: float) -> Bool[Tensor, "batch length"]:
        return (torch.rand(ids.shape) < share).to(ids.device) & real

    if settings.swap and ids.shape[1] > 1:
        first = drawn(settings.swap)[:, :-1] & real[:, 1:]
        first[:, 1:] &= ~first[:, :-1].clone()  # no symbol moves twice
        order = torch.arange(ids.shape[1], device=ids.device).repeat(len(ids), 1)
        order[:, :-1] += first.long()
        order[:, 1:] -= first.long()
        ids = ids.gather(1, order)
    if settings.mask:
        ids = ids.masked_fill(drawn(settings.mask), UNK)
    if settings.drop:
        kept = real & ~drawn(settings.drop)
        kept[:, 0] |= real[:, 0] & ~kept.any(1)
        order = torch.argsort((~kept).int(), dim=1, stable=True)
        real = kept.gather(1, order)
        ids = ids.gather(1, order).masked_fill(~real, PAD)
        longest = max(int(real.sum(1).max()), 1)
        ids, real = ids[:, :longest], real[:, :longest]
    return replace(column, ids=ids, mask=real)


def scheduled_sampling(model: EncoderDecoder, batch: Batch, share: float) -> tuple[Step, Ready]:
    """Run the decoder with scheduled sampling: with probability `share` a step reads the model's own likeliest
    symbol."""
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
    """One weight per label: none, `balanced` (rows / (classes * rows of the class)), or those of the recipe."""
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


# ---------------------------------------------------------------- distillation (Hinton et al. 2015; Kim and Rush 2016)


@torch.no_grad()
def teacher_log_probs(teachers: Sequence[EncoderDecoder], batch: Batch) -> Float[Tensor, "rows *steps symbols"]:
    """log of the mean probability that the teachers give every symbol, each of them reading the true symbols."""
    return mean_probability([model.log_probs(*model.forward_batch(batch)) for model in teachers])


def divergence(
    teacher: Float[Tensor, "targets symbols"], student: Float[Tensor, "targets symbols"], *, temperature: float = 1.0
) -> Float[Tensor, " targets"]:
    """KL(p || q) of each target, p and q being proportional to the two probabilities to the power 1 / temperature.

    The factor temperature ** 2 that goes with it keeps the size of the gradient.

    >>> log_probs = torch.log_softmax(torch.tensor([[1.0, 2.0]]), -1)
    >>> divergence(log_probs, log_probs, temperature=2.0)
    tensor([0.])
    """
    p, q = teacher.clamp(min=FLOOR), student.clamp(min=FLOOR)
    if temperature != 1:
        p, q = torch.log_softmax(p / temperature, -1), torch.log_softmax(q / temperature, -1)
    return (p.exp() * (p - q)).sum(-1)


REWARD, REWARD_DECAY = "reward", 0.95
"""The moving mean of the rewards of drawn outputs, which is reported."""
LEAST_DIFFERENCE = 1e-3
"""Between the rewards of a batch: smaller ones are not scaled up any further."""


# ---------------------------------------------------------------- CTC

CTC_LEFT_OUT, CTC_ROWS = "ctc_left_out", "ctc_rows"


def ctc_loss(
    model: EncoderDecoder,
    memory: Memory,
    targets: Int[Tensor, "rows steps"],
    mask: Bool[Tensor, "rows steps"],
) -> tuple[Float[Tensor, ""], float]:
    """(-sum log P of the targets by CTC over the encoder's places, the number of rows left out since their output is
    too long for their places)."""
    assert model.ctc is not None
    assert model.read_along is not None
    symbols = mask & (targets != EOS)
    loss = model.ctc.loss(memory.places[model.read_along], model.head.readable(targets), mask=symbols)
    return loss.total, loss.left_out


def ctc_alignment(
    model: EncoderDecoder,
    step: Step,
    ready: Ready,
    targets: Int[Tensor, "rows steps"],
    mask: Bool[Tensor, "rows steps"],
) -> Float[Tensor, ""]:
    """-sum_t log sum_j a_tj over the places j where CTC's likeliest path has symbol t, or beside them."""
    assert model.ctc is not None
    assert model.read_along is not None
    symbols = mask & (targets != EOS)
    places = ready.memory.places[model.read_along]
    inside = model.ctc.where(places, model.head.readable(targets), mask=symbols)
    return -log_share(step.looks[model.read_along].dense(), inside)


def ctc_note(state: dict[str, float]) -> str | None:
    """A note for the end of a run about rows that CTC left out; None where there were none."""
    if not state.get(CTC_LEFT_OUT):
        return None
    share = state[CTC_LEFT_OUT] / state[CTC_ROWS]
    return f"{share:.1%} of the rows read had fewer places than their output takes, and no part in loss.ctc"


# ---------------------------------------------------------------- attention regularisers

SMALLEST = 1e-12


def look_terms(
    settings: LossSettings, look: Look, *, places: Bool[Tensor, "rows places"], steps: Bool[Tensor, "rows steps"]
) -> dict[str, Float[Tensor, ""]]:
    """The recipe's terms of the attention weights, each weighted and summed over the real steps and places of a
    batch."""
    terms: dict[str, Tensor] = {}
    if not (settings.doubly_stochastic or settings.entropy or settings.coverage):
        return terms
    weights = look.dense().view(*steps.shape, -1) * steps[..., None]
    if settings.doubly_stochastic:
        terms["doubly_stochastic"] = settings.doubly_stochastic * doubly_stochastic(weights, places, steps)
    if settings.entropy:
        terms["entropy"] = settings.entropy * entropy(weights).sum()
    if settings.coverage:
        terms["coverage"] = settings.coverage * coverage(weights)
    return terms


def alignment(
    weights: Float[Tensor, "rows steps places"],
    truth: Float[Tensor, "rows steps places"] | TimeSpans,
    mask: Bool[Tensor, "rows places"],
) -> Float[Tensor, ""]:
    """Supervised attention: -sum_t sum_j a_true_tj log a_tj, and where times are known -sum_t log sum_j a_tj over the
    places j within the time of step t; a step without a true link or time adds nothing. mask: the real places."""
    if not isinstance(truth, TimeSpans):
        return -(truth * weights.clamp(min=SMALLEST).log()).sum()
    return -log_share(weights, truth.inside(mask))


def log_share(
    weights: Float[Tensor, "rows steps places"], inside: Bool[Tensor, "rows steps places"]
) -> Float[Tensor, ""]:
    """sum_t log sum_j a_tj over the places j inside; a step without any adds nothing."""
    shares = (weights * inside).sum(-1).clamp(min=SMALLEST)
    return shares[inside.any(-1)].log().sum()


def doubly_stochastic(
    weights: Float[Tensor, "rows steps places"], places: Bool[Tensor, "rows places"], steps: Bool[Tensor, "rows steps"]
) -> Float[Tensor, ""]:
    """sum_j (T / M - sum_t a_tj) ** 2: each of the M places should get the same total over the T output steps.

    With as many steps as places this is the (1 - sum_t a_tj) ** 2 of Xu et al. (2015).
    """
    count = places.sum(1, keepdim=True).clamp(min=1)
    expected = steps.sum(1, keepdim=True) / count
    return ((expected - weights.sum(1)).square() * places).sum()


def entropy(weights: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows"]:
    """-sum_j a_j log a_j of each step; a place without weight adds nothing."""
    return -(weights * weights.clamp(min=SMALLEST).log()).sum(-1)


def coverage(weights: Float[Tensor, "rows steps places"]) -> Float[Tensor, ""]:
    """Coverage loss (See, Liu and Manning 2017): sum_t sum_j min(a_tj, sum_{i<t} a_ij), the cost of attending again to
    the same places."""
    before = weights.cumsum(1) - weights
    return torch.minimum(weights, before).sum()


# ---------------------------------------------------------------- hard attention (score-function estimator)

BASELINE, VARIANCE, NOISE = "baseline", "return_variance", "gradient_variance"
"""Moving means that are carried from update to update and reported: b; the variance of R_t over the rows and steps of a
batch; and the variance of the gradient estimator with respect to the energies, where one sample gives R_t (1[j = place]
- a_tj): the mean of its squared norm. The squared mean is not subtracted, as one sample does not give it, so this is
slightly above the variance; with sparse weights it is that of the softmax of the same weights."""


def sampled(looks: Mapping[str, Look]) -> dict[str, Look]:
    """The looks whose place was sampled, so that its gradient has to be estimated."""
    return {name: look for name, look in looks.items() if look.place_log_prob is not None and look.by_score}


def score_function(
    settings: LossSettings,
    looks: Mapping[str, Look],
    log_probs: Float[Tensor, "rows steps"],
    steps: Bool[Tensor, "rows steps"],
    state: dict[str, float],
    *,
    sums: Sums = list,
) -> Float[Tensor, ""]:
    """-sum_t R_t log a_t(place) - exploration * sum_t H(a_t), whose gradient is that of the expected -log P.

    R_t = sum_{i>=t} (log P(y_i) - b) is the return of the place sampled at step t: the log-probability of this and
    later symbols above the baseline b, the moving mean of log P of a symbol. `state` carries b and the two variances
    from update to update; `sums` makes them those of a batch that several processes share.
    """
    rewards = log_probs.detach() * steps
    reward, symbols = sums([float(rewards.double().sum()), float(steps.sum())])
    mean = reward / max(symbols, 1)
    baseline = state.get(BASELINE, mean)
    advantages = (rewards - baseline) * steps
    returns = advantages.flip(1).cumsum(1).flip(1)
    total, noise = log_probs.new_zeros(()), torch.zeros_like(returns)
    for look in looks.values():
        place_log_prob = look.place_log_prob
        assert place_log_prob is not None
        norms = gradient_norms(look.weights.detach(), place_log_prob.detach()).view(*steps.shape, -1).sum(-1)
        noise = noise + returns.square() * norms
        place_log_prob = place_log_prob.view(*steps.shape, -1).sum(-1)
        total = total - (returns * place_log_prob * steps).sum()
        if settings.exploration:
            spread = entropy(look.weights).view(*steps.shape, -1).sum(-1)
            total = total - settings.exploration * (spread * steps).sum()
    _moving_mean(state, BASELINE, mean, settings.baseline_decay)
    real = returns[steps].double()
    first, second, noises = (
        value / max(symbols, 1)
        for value in sums([float(real.sum()), float(real.square().sum()), float(noise[steps].double().sum())])
    )
    _moving_mean(state, VARIANCE, max(second - first**2, 0.0), settings.baseline_decay)
    _moving_mean(state, NOISE, noises, settings.baseline_decay)
    return total


def gradient_norms(
    weights: Float[Tensor, "*batch places"], place_log_prob: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """|d log a(place) / d e|^2 of the softmax of energies e: |1[j = place] - a_j|^2, and 0 where no place is real."""
    return (1 - 2 * place_log_prob.exp() + weights.square().sum(-1)).clamp(min=0)


def _moving_mean(state: dict[str, float], name: str, value: float, decay: float) -> None:
    state[name] = value if name not in state else decay * state[name] + (1 - decay) * value
