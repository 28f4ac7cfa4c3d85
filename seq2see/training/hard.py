"""Learning where to look when a look is a draw: the score-function estimator, with a moving baseline."""

from __future__ import annotations

from collections.abc import Mapping

from jaxtyping import Bool, Float
from torch import Tensor

from seq2see.attention import Look
from seq2see.recipe.schema import LossSettings
from seq2see.training.regularisers import entropy

BASELINE, VARIANCE = "baseline", "return_variance"
"""What is carried and reported: b, and the variance of R_t over the rows and steps of a batch. The latter is not the
variance of the gradient, which is R_t times the slope of log a_t, but what a better baseline lowers in it."""


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
    moving mean of log P of a symbol. `state` carries b and the variance of R_t, both as moving
    means, from update to update.
    """
    rewards = log_probs.detach() * steps
    mean = float(rewards.sum() / steps.sum().clamp(min=1))
    baseline = state.get(BASELINE, mean)
    above = (rewards - baseline) * steps
    signal = above.flip(1).cumsum(1).flip(1)
    total = log_probs.new_zeros(())
    for look in looks.values():
        chances = look.place_log_prob
        assert chances is not None
        chances = chances.view(*steps.shape, -1).sum(-1)
        total = total - (signal * chances * steps).sum()
        if settings.exploration:
            spread = entropy(look.weights).view(*steps.shape, -1).sum(-1)
            total = total - settings.exploration * (spread * steps).sum()
    _move(state, BASELINE, mean, settings.baseline_decay)
    _move(state, VARIANCE, float(signal[steps].var(unbiased=False)), settings.baseline_decay)
    return total


def _move(state: dict[str, float], name: str, value: float, decay: float) -> None:
    state[name] = value if name not in state else decay * state[name] + (1 - decay) * value
