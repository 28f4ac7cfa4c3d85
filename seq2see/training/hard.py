"""Learning where to look when a look is a draw: the score-function estimator, with a moving baseline."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2see.attention import Look
from seq2see.recipe.schema import LossSettings
from seq2see.training.regularisers import entropy

BASELINE, VARIANCE, NOISE = "baseline", "return_variance", "gradient_variance"
"""What is carried and reported, as moving means: b; the variance of R_t over the rows and steps of a batch; and the
variance of the estimator itself, seen at the energies, where one draw gives the gradient R_t (1[j = place] - a_tj): the
mean of its squared norm. The squared mean is not taken off, since it cannot be told from one draw, so this is a little
above the variance; with sparse weights it is that of the softmax of the same weights."""


def drawn(looks: Mapping[str, Look]) -> dict[str, Look]:
    """The looks whose place was drawn without a gradient of its own."""
    return {name: look for name, look in looks.items() if look.place_log_prob is not None and look.by_score}


def score_function(
    settings: LossSettings,
    looks: Mapping[str, Look],
    log_probs: Float[Tensor, "rows steps"],
    steps: Bool[Tensor, "rows steps"],
    state: dict[str, float],
) -> Float[Tensor, ""]:
    """-sum_t R_t log a_t(place) - exploration * sum_t H(a_t), whose gradient is that of the expected -log P.

    R_t = sum_{i>=t} (log P(y_i) - b) is what came of the draw at t and later, beside what was to be expected: b is the
    moving mean of log P of a symbol. `state` carries b and the two variances from update to update.
    """
    rewards = log_probs.detach() * steps
    mean = float(rewards.sum() / steps.sum().clamp(min=1))
    baseline = state.get(BASELINE, mean)
    above = (rewards - baseline) * steps
    signal = above.flip(1).cumsum(1).flip(1)
    total, noise = log_probs.new_zeros(()), torch.zeros_like(signal)
    for look in looks.values():
        chances = look.place_log_prob
        assert chances is not None
        slopes = slope_norms(look.weights.detach(), chances.detach()).view(*steps.shape, -1).sum(-1)
        noise = noise + signal.square() * slopes
        chances = chances.view(*steps.shape, -1).sum(-1)
        total = total - (signal * chances * steps).sum()
        if settings.exploration:
            spread = entropy(look.weights).view(*steps.shape, -1).sum(-1)
            total = total - settings.exploration * (spread * steps).sum()
    _move(state, BASELINE, mean, settings.baseline_decay)
    _move(state, VARIANCE, float(signal[steps].var(unbiased=False)), settings.baseline_decay)
    _move(state, NOISE, float(noise[steps].mean()), settings.baseline_decay)
    return total


def slope_norms(
    weights: Float[Tensor, "*batch places"], log_chances: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """|d log a(place) / d e|^2 of softmax, e the energies: |1[j = place] - a_j|^2, and 0 where no place is real."""
    return (1 - 2 * log_chances.exp() + weights.square().sum(-1)).clamp(min=0)


def _move(state: dict[str, float], name: str, value: float, decay: float) -> None:
    state[name] = value if name not in state else decay * state[name] + (1 - decay) * value
