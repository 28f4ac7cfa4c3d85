"""Beam search: at each step the best `beam` hypotheses of each input continue; those that end compete by score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from seq2see.data.vocabulary import EOS, SOS
from seq2see.search.constraints import Constraints, Oracle
from seq2see.search.hypotheses import Coverage, Endings, History, best_attainable, normalised
from seq2see.search.language_model import Fusion
from seq2see.search.options import SearchOptions
from seq2see.search.stepper import Stepper, step_top
from seq2see.search.top import Likeliest, likeliest, pick


class BestOutputs:
    """The best outputs of each input so far: their scores, best first (-inf: none), and where each ended."""

    def __init__(self, rows: int, *, best: int):
        self.scores: Float[ndarray, "batch best"] = np.full((rows, best), -np.inf, dtype=np.float32)
        self._steps = np.zeros((rows, best), dtype=np.int64)
        self._candidates = np.zeros((rows, best), dtype=np.int64)

    def add(self, inputs: Int[ndarray, " inputs"], scores: Float[ndarray, "inputs candidates"], *, step: int) -> None:
        """Add the candidates of a step that ended: those whose score is not -inf."""
        some = np.flatnonzero((scores > -np.inf).any(1))
        if not len(some):
            return
        inputs, scores = inputs[some], scores[some]
        both = np.concatenate([self.scores[inputs], scores], axis=1)
        order = np.argsort(-both, axis=1, kind="stable")[:, : self.scores.shape[1]]
        numbers = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        self.scores[inputs] = pick(both, order)
        self._steps[inputs] = _merge(self._steps[inputs], np.full_like(numbers, step), order)
        self._candidates[inputs] = _merge(self._candidates[inputs], numbers, order)

    def endings(self, *, finished: bool) -> Endings:
        """The endings of all outputs."""
        there = self.scores > -np.inf
        inputs = np.nonzero(there)[0]
        return Endings(inputs, self._steps[there], self._candidates[there], np.full(len(inputs), finished))


def _merge(old: ndarray, new: ndarray, order: ndarray) -> ndarray:
    return pick(np.concatenate([old, new], axis=1), order)


def finished(
    live: Float[ndarray, " inputs"],
    kept: Float[ndarray, "inputs n_best"],
    count: Int[ndarray, " inputs"],
    options: SearchOptions,
    *,
    length: int,
) -> Bool[ndarray, " inputs"]:
    """Whether the search for each input can stop.

    live: the total of the best live hypothesis, of `length` symbols, -inf where none is left; kept: the
    scores of the n-best list, best first, -inf where it is not full; count: how many outputs have ended.
    """
    hopeless = kept[:, -1] >= best_attainable(live, options)
    behind = kept[:, 0] >= normalised(live, length, options)
    return np.asarray(hopeless | (behind & (count >= options.beam * options.patience)) | (live == -np.inf))


@dataclass
class Continuations:
    """The likeliest continuations of each input, twice as many as slots, best first.

    symbols, parents, log_probs: (inputs, candidates), the symbol of each, the slot it continues, log P of the symbol;
    added: (inputs, candidates), by language models, if there are any;
    totals: (inputs, candidates), the log-probability of the hypothesis with it, and all that was added;
    likeliest: the likeliest symbols of each slot, forbidden ones included; looks: of each slot.
    """

    symbols: Int[ndarray, "inputs candidates"]
    parents: Int[ndarray, "inputs candidates"]
    log_probs: Float[ndarray, "inputs candidates"]
    totals: Float[ndarray, "inputs candidates"]
    likeliest: Likeliest
    looks: dict[str, ndarray]
    added: Float[ndarray, "inputs candidates"] | None = None


def continuations(
    stepper: Stepper,
    tokens: Int[ndarray, " rows"],
    live: Float[ndarray, "inputs slots"],
    *,
    allowed: Constraints,
    step: int,
    inputs: Int[ndarray, " inputs"],
    runners_up: int,
    forced: Mapping[str, ndarray] | None,
    fusion: Fusion,
) -> Continuations:
    """One step; live: the total of each hypothesis; forced: attention weights of the caller."""
    slots, added = live.shape[1], None
    if not fusion and not allowed.avoids and allowed.forced(step, inputs) is None:
        never = allowed.never(step)
        each, looks = step_top(stepper, tokens, max(2 * slots, runners_up) + len(never), forced)
        ids, log_probs, free = each.ids, each.log_probs, each.without(never).reshape(*live.shape, -1)
    else:
        log_probs, looks = stepper.step(tokens, forced)
        each, ids = likeliest(log_probs, runners_up), np.broadcast_to(np.arange(log_probs.shape[1]), log_probs.shape)
        scores = log_probs.copy()
        if fusion:
            added = fusion.step(tokens)
            scores += added
        free = allowed.forbid(scores.reshape(*live.shape, -1), step, inputs)
    best = likeliest((live[..., None] + free).reshape(len(live), -1), 2 * slots)
    symbols, own = (pick(part.reshape(len(live), -1), best.ids) for part in (ids, log_probs))
    more = None if added is None else pick(added.reshape(len(live), -1), best.ids)
    return Continuations(symbols, best.ids // ids.shape[1], own, best.log_probs, each.first(runners_up), looks, more)


def beam_search(
    stepper: Stepper,
    history: History,
    options: SearchOptions,
    *,
    allowed: Constraints,
    oracle: Oracle,
    fusion: Fusion | None = None,
) -> Endings:
    """The endings of the n best outputs of each input; unfinished ones only where max_length left too few others.

    Of 2 * beam candidates at most half end (one `<eos>` for each hypothesis): those among the first `beam` have
    finished, and the first `beam` of the others continue. Live hypotheses all have the same length, so they are
    compared by log-probability (with what language models add); scores are for outputs of different lengths.
    """
    fusion = fusion if fusion is not None else Fusion()
    width = options.beam
    inputs = np.arange(history.rows)
    live: Float[ndarray, "inputs slots"] = np.full((history.rows, width), -np.inf, dtype=np.float32)
    live[:, 0] = 0.0
    count = np.zeros(history.rows, dtype=np.int64)
    tokens = np.full(history.rows * width, SOS)
    done, cut = (BestOutputs(history.rows, best=options.kept) for _ in range(2))
    coverage = Coverage(stepper.places, options)
    stepper.begin(width)
    fusion.begin(width)
    allowed.begin(width)
    for step in range(options.max_length):
        found = continuations(
            stepper,
            tokens,
            live,
            allowed=allowed,
            step=step,
            inputs=inputs,
            runners_up=history.runners_up,
            forced=oracle.at(step, inputs, width=width),
            fusion=fusion,
        )
        symbols, values, parents = found.symbols, found.totals, found.parents
        penalty = coverage.look(found.looks, inputs)
        scores = normalised(values, step + 1, options)
        scores = scores if penalty is None else scores + pick(penalty, parents)

        ends = symbols == EOS
        carried = np.argsort(ends, axis=1, kind="stable")[:, :width]
        live = pick(values, carried)
        ended = ends[:, :width] & (values[:, :width] > -np.inf)
        done.add(inputs, np.where(ended, scores[:, :width], -np.inf), step=step)
        count = count + ended.sum(1)
        history.add(
            inputs,
            tokens=symbols,
            parents=parents,
            carried=carried,
            log_probs=found.log_probs,
            likeliest=found.likeliest,
            looks=found.looks,
            added=found.added,
            totals=values,
        )

        if step == options.max_length - 1:
            cut.add(inputs, np.where(ends, -np.inf, scores), step=step)
        going = ~finished(live[:, 0], done.scores[inputs], count, options, length=step + 1)
        if not going.any():
            break
        rows = np.arange(len(inputs))[:, None] * width + pick(parents, carried)
        kept = rows[going].reshape(-1)
        stepper.select(kept, np.flatnonzero(going))
        fusion.select(kept, np.flatnonzero(going))
        coverage.select(kept)
        allowed.select(kept)
        tokens = pick(symbols, carried)[going].reshape(-1)
        allowed.follow(tokens)
        inputs, live, count = inputs[going], live[going], count[going]
    return Endings.joined([done.endings(finished=True), cut.endings(finished=False)])
