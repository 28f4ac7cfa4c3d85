"""From tensors to hypotheses: each output with its probabilities, runners-up and looks, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.search.consensus import by_agreement
from seq2see.search.history import Endings, Paths
from seq2see.search.hypothesis import Hypothesis, InnerLook
from seq2see.search.joint import JointPlaces
from seq2see.search.options import SearchOptions
from seq2see.search.scoring import normalised, overlooked
from seq2see.search.writable import Writable


def tell(
    paths: Paths,
    endings: Endings,
    *,
    places: Mapping[str, JointPlaces],
    writable: Writable,
    prefixes: Sequence[Sequence[int]],
    options: SearchOptions,
    inner: Sequence[Mapping[str, InnerLook]] = (),
) -> list[list[Hypothesis]]:
    """For each input at most n_best hypotheses: finished ones before unfinished ones, each by score or by
    consensus, highest first."""
    whose, steps, finished = endings.inputs.tolist(), endings.steps.tolist(), endings.finished.tolist()
    tokens, log_probs = paths.tokens.tolist(), paths.log_probs.cpu().double().tolist()
    likeliest, chances = paths.runners_up.tolist(), paths.chances.cpu().double().exp().tolist()
    looks = {name: look.cpu() for name, look in paths.looks.items()}
    masks = {name: joint.mask.cpu() for name, joint in places.items()}
    limits = writable.limits.tolist()
    told: list[list[Hypothesis]] = [[] for _ in prefixes]
    for output, row in enumerate(whose):
        length = steps[output] + 1
        inward = [name for name in looks if name not in places]
        shared = [name for name in looks if name in places and places[name].agreed[row]]
        apart = {name: looks[name][output, :length][..., masks[name][row]].float() for name in shared}
        seen = {name: _together(weights) for name, weights in apart.items() if not places[name].lower}
        each = log_probs[output][:length]
        total = sum(each)
        told[row].append(
            Hypothesis(
                ids=tokens[output][:length],
                log_probs=each,
                log_probability=total,
                score=_score(total, length, seen, options),
                finished=finished[output],
                runners_up=[
                    [(one, share) for one, share in zip(ids, shares, strict=True) if one < limits[row]]
                    for ids, shares in zip(likeliest[output][:length], chances[output][:length], strict=True)
                ],
                looks={name: weights.numpy() for name, weights in seen.items()},
                maps={
                    name: weights.transpose(0, -2).numpy()
                    for name, weights in apart.items()
                    if weights.dim() > 2 or places[name].lower
                },
                places={name: known[row] for name in shared if (known := places[name].tokens) is not None},
                layouts={name: places[name].layout_of(row) for name in apart},
                inner=dict(inner[row]) if inner else {},
                inward={
                    name: looks[name][output, :length, ..., :length].float().transpose(0, 1).numpy() for name in inward
                },
                words=writable.words[row],
                forced=min(len(prefixes[row]), length),
            )
        )
    return [_best(row, options) for row in told]


def _together(weights: Float[Tensor, "steps *heads places"]) -> Float[Tensor, "steps places"]:
    """One look for each step: where there are heads, their mean."""
    return weights if weights.dim() == 2 else weights.mean(1)


def _score(log_probability: float, length: int, looks: dict[str, Tensor], options: SearchOptions) -> float:
    score = normalised(log_probability, length, options)
    if options.coverage_penalty == 0:
        return score
    totals = {name: weights.sum(0) for name, weights in looks.items()}
    real = {name: torch.ones_like(total, dtype=torch.bool) for name, total in totals.items()}
    return score + float(overlooked(totals, real, options))


def _best(hypotheses: list[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
    ranked = sorted(hypotheses, key=lambda one: (one.finished, one.score), reverse=True)
    if options.agreeing:
        ranked = by_agreement(ranked[: options.kept], options.consensus)
    return ranked[: options.n_best]
