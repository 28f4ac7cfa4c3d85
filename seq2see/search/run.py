"""Search: a stepper in, hypotheses out, by greedy search, beam search or sampling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from seq2see.errors import UserError
from seq2see.search.beam import beam_search
from seq2see.search.constraints import Constraints, Oracle, nothing_left
from seq2see.search.greedy import search_greedily
from seq2see.search.hypotheses import (
    EncoderLook,
    Endings,
    History,
    Hypothesis,
    JointPlaces,
    Paths,
    check_coverage,
    coverage_penalty_of,
    normalised,
)
from seq2see.search.language_model import Fusion
from seq2see.search.options import SearchOptions
from seq2see.search.sampling import Sampler
from seq2see.search.stepper import CopyVocabulary, Stepper
from seq2see.search.top import likeliest
from seq2see.search.tree import search_trees

# --- Ranking by agreement (minimum Bayes risk)

LONGEST = 4
"""The length of the longest phrases that are compared, in symbols."""

Phrases = list[Counter[tuple[int, ...]]]


def by_agreement(hypotheses: Sequence[Hypothesis], temperature: float) -> list[Hypothesis]:
    """Finished hypotheses first, each by its mean similarity to all, weighted by P ** (1 / temperature)."""
    if not hypotheses:
        return []
    phrases = [phrases_of(hypothesis.ids) for hypothesis in hypotheses]
    totals = [hypothesis.log_probability + hypothesis.added for hypothesis in hypotheses]
    weights = [math.exp((total - max(totals)) / temperature) for total in totals]
    agreement = [
        sum(weight * similarity(mine, other) for weight, other in zip(weights, phrases, strict=True))
        for mine in phrases
    ]
    order = sorted(
        range(len(hypotheses)),
        key=lambda number: (hypotheses[number].finished, agreement[number], hypotheses[number].score),
        reverse=True,
    )
    return [hypotheses[number] for number in order]


def similarity(first: Phrases, second: Phrases) -> float:
    """The mean over lengths of the F1 of common phrases.

    >>> similarity(phrases_of([4, 5]), phrases_of([4, 5])), similarity(phrases_of([4]), phrases_of([5]))
    (1.0, 0.0)
    """
    shares = [
        2 * (mine & theirs).total() / (mine.total() + theirs.total())
        for mine, theirs in zip(first, second, strict=True)
        if mine or theirs
    ]
    return sum(shares) / len(shares) if shares else 1.0


def phrases_of(ids: Sequence[int]) -> Phrases:
    """The count of each phrase of 1, 2, .. symbols; `<eos>` is a symbol, so that endings count too."""
    return [Counter(zip(*(ids[start:] for start in range(length)), strict=False)) for length in range(1, LONGEST + 1)]


# --- Hypotheses


def build_hypotheses(
    paths: Paths,
    endings: Endings,
    *,
    places: Mapping[str, JointPlaces],
    writable: CopyVocabulary,
    prefixes: Sequence[Sequence[int]],
    options: SearchOptions,
    inner: Sequence[Mapping[str, EncoderLook]] = (),
) -> list[list[Hypothesis]]:
    """At most `n_best` hypotheses of each input, finished ones first, by score or by agreement, highest first."""
    rows, steps, finished = endings.inputs.tolist(), endings.steps.tolist(), endings.finished.tolist()
    log_probs, chances = paths.log_probs.astype(np.float64), np.exp(paths.chances.astype(np.float64))
    looks = paths.looks
    masks = {name: joint.mask for name, joint in places.items()}
    limits = writable.limits.tolist()
    hypotheses: list[list[Hypothesis]] = [[] for _ in prefixes]
    for output, row in enumerate(rows):
        length, limit = steps[output] + 1, limits[row]
        inward = [name for name in looks if name not in places]
        shared = [name for name in looks if name in places and places[name].agreed[row]]
        apart = {name: looks[name][output, :length][..., masks[name][row]].astype(np.float32) for name in shared}
        looked = {name: _mean_of_heads(weights) for name, weights in apart.items() if not places[name].lower}
        each = log_probs[output, :length].tolist()
        likeliest, shares = paths.runners_up[output, :length].tolist(), chances[output, :length].tolist()
        if limit < writable.symbols:  # words of other inputs come last, since they have no probability
            there = (paths.runners_up[output, :length] < limit).sum(1).tolist()
            likeliest, shares = (
                [step[:few] for few, step in zip(there, part, strict=True)] for part in (likeliest, shares)
            )
        total, added = sum(each), float(paths.added[output, :length].sum())
        hypotheses[row].append(
            Hypothesis(
                ids=paths.tokens[output, :length].tolist(),
                log_probs=each,
                log_probability=total,
                score=_score(total + added, length, looked, options),
                finished=finished[output],
                added=added,
                likeliest=likeliest,
                shares=shares,
                looks=looked,
                maps={
                    name: np.swapaxes(weights, 0, -2)
                    for name, weights in apart.items()
                    if weights.ndim > 2 or places[name].lower
                },
                places={name: known[row] for name in shared if (known := places[name].tokens) is not None},
                layouts={name: places[name].layout_of(row) for name in apart},
                inner=dict(inner[row]) if inner else {},
                inward={
                    name: looks[name][output, :length, ..., :length].astype(np.float32).swapaxes(0, 1)
                    for name in inward
                },
                words=writable.words[row],
                forced=min(len(prefixes[row]), length),
            )
        )
    return [_best(row, options) for row in hypotheses]


def rescored(hypotheses: Sequence[Hypothesis], added: Sequence[float], options: SearchOptions) -> list[Hypothesis]:
    """The hypotheses of one input ranked again, and at most `n_best` of them; added: to each log-probability."""
    return _best(
        [
            replace(each, added=more, score=_score(each.log_probability + more, len(each.ids), each.looks, options))
            for each, more in zip(hypotheses, added, strict=True)
        ],
        options,
    )


def _mean_of_heads(weights: Float[ndarray, "steps *heads places"]) -> Float[ndarray, "steps places"]:
    """One look for each step: the mean over heads, where there are any."""
    return weights if weights.ndim == 2 else weights.mean(1)


def _score(log_probability: float, length: int, looks: dict[str, ndarray], options: SearchOptions) -> float:
    score = normalised(log_probability, length, options)
    if options.coverage_penalty == 0:
        return score
    totals = {name: weights.sum(0) for name, weights in looks.items()}
    real = {name: np.ones_like(total, dtype=bool) for name, total in totals.items()}
    return score + float(coverage_penalty_of(totals, real, options))


def _best(hypotheses: list[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
    ranked = sorted(hypotheses, key=lambda hypothesis: (hypothesis.finished, hypothesis.score), reverse=True)
    if options.agreeing:
        ranked = by_agreement(ranked[: options.kept], options.consensus)
    return ranked[: options.n_best]


def run_search(
    stepper: Stepper, rows: Sequence[int], options: SearchOptions, fusion: Fusion | None = None
) -> list[list[Hypothesis]]:
    """For each input its hypotheses, best first, at most n_best of them.

    rows: the inputs' numbers in their data set, which (with the seed) fix what is sampled; fusion: language models that
    have a say at every step. Samples are drawn from the product of all, renormalised.
    What is found for an input does not depend on the other inputs of the batch.
    """
    check_coverage(stepper.places, options)
    allowed = Constraints(options, stepper.writable.limits)
    oracle = Oracle(options.oracle, stepper.places, rows=len(rows), max_length=options.max_length)
    history = History(len(rows), options.runners_up)
    if options.beam > 1:
        endings = beam_search(stepper, history, options, allowed=allowed, oracle=oracle, fusion=fusion)
    else:
        endings = search_greedily(
            stepper,
            history,
            Sampler(options, rows) if options.sample else None,
            allowed=allowed,
            oracle=oracle,
            fusion=fusion,
            width=options.n_best,
            max_length=options.max_length,
        )
    hypotheses = build_hypotheses(
        history.backtrack(endings),
        endings,
        places=stepper.places,
        inner=stepper.inner,
        writable=stepper.writable,
        prefixes=allowed.prefixes,
        options=options,
    )
    for row, outputs in enumerate(hypotheses):
        if not outputs:
            raise nothing_left(row) if allowed.avoids else UserError(f"input {row}: the search left nothing to write")
    if not options.tree:
        return hypotheses
    trees = search_trees(history)
    return [[replace(each, tree=tree) for each in row] for row, tree in zip(hypotheses, trees, strict=True)]


def rank_labels(stepper: Stepper, rows: int, options: SearchOptions) -> list[list[Hypothesis]]:
    """The `n_best` likeliest labels of each input, best first: hypotheses of one id, whose looks have one row."""
    inputs = np.arange(rows)
    forced = Oracle(options.oracle, stepper.places, rows=rows, max_length=1).at(0, inputs, width=1)
    stepper.begin(1)
    log_probs, looks = stepper.step(None, forced)
    labels = likeliest(log_probs, options.n_best)
    best, first = labels.ids, np.zeros_like(labels.ids)
    history = History(rows, options.runners_up)
    history.add(
        inputs,
        tokens=best,
        parents=first,
        carried=first[:, :1],
        log_probs=labels.log_probs,
        likeliest=likeliest(log_probs, options.runners_up),
        looks=looks,
    )
    endings = Endings(
        inputs.repeat(best.shape[1]),
        first.reshape(-1),
        np.tile(np.arange(best.shape[1]), rows),
        np.ones(best.size, dtype=bool),
    )
    return build_hypotheses(
        history.backtrack(endings),
        endings,
        places=stepper.places,
        inner=stepper.inner,
        writable=stepper.writable,
        prefixes=[()] * rows,
        options=options,
    )
