"""Beam search: at each step the best `beam` hypotheses of each input continue; those that end compete by score."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.data.batches import EOS, SOS
from seq2see.search.constraints import Constraints, Oracle
from seq2see.search.hypotheses import Coverage, Endings, History, best_attainable, normalised
from seq2see.search.options import SearchOptions
from seq2see.search.stepper import Stepper


class BestOutputs:
    """The best outputs of each input so far: their scores, best first (-inf: none), and where each ended."""

    def __init__(self, rows: int, *, best: int, device: torch.device):
        self.scores: Float[Tensor, "batch best"] = torch.full((rows, best), -torch.inf, device=device)
        self._steps = torch.zeros((rows, best), dtype=torch.long, device=device)
        self._candidates = torch.zeros((rows, best), dtype=torch.long, device=device)

    def add(self, inputs: Int[Tensor, " inputs"], scores: Float[Tensor, "inputs candidates"], *, step: int) -> None:
        """Add the candidates of a step that ended: those whose score is not -inf."""
        numbers = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
        merged = torch.cat([self.scores[inputs], scores], 1).topk(self.scores.shape[1], dim=1)
        self.scores[inputs] = merged.values
        self._steps[inputs] = _merge(self._steps[inputs], torch.full_like(numbers, step), merged.indices)
        self._candidates[inputs] = _merge(self._candidates[inputs], numbers, merged.indices)

    def endings(self, *, finished: bool) -> Endings:
        """The endings of all outputs."""
        there = self.scores > -torch.inf
        inputs = torch.arange(len(there), device=there.device)[:, None].expand_as(there)[there]
        return Endings(inputs, self._steps[there], self._candidates[there], torch.full_like(inputs, finished).bool())


def _merge(old: Tensor, new: Tensor, order: Tensor) -> Tensor:
    return torch.cat([old, new], 1).gather(1, order)


def finished(
    live: Float[Tensor, " inputs"],
    kept: Float[Tensor, "inputs n_best"],
    count: Int[Tensor, " inputs"],
    options: SearchOptions,
    *,
    length: int,
) -> Bool[Tensor, " inputs"]:
    """Whether the search for each input can stop.

    live: the log-probability of the likeliest live hypothesis, of `length` symbols, -inf where none is left; kept: the
    scores of the n-best list, best first, -inf where it is not full; count: how many outputs have ended.
    """
    hopeless = kept[:, -1] >= best_attainable(live, options)
    behind = kept[:, 0] >= normalised(live, length, options)
    return hopeless | (behind & (count >= options.beam * options.patience)) | (live == -torch.inf)


def beam_search(
    stepper: Stepper, history: History, options: SearchOptions, *, allowed: Constraints, oracle: Oracle
) -> Endings:
    """The endings of the n best outputs of each input; unfinished ones only where max_length left too few others.

    Of 2 * beam candidates at most half end (one `<eos>` for each hypothesis): those among the first `beam` have
    finished, and the first `beam` of the others continue. Live hypotheses all have the same length, so they are
    compared by log-probability; scores are for outputs of different lengths.
    """
    width, device = options.beam, stepper.device
    inputs = torch.arange(history.rows, device=device)
    live: Float[Tensor, "inputs slots"] = torch.full((history.rows, width), -torch.inf, device=device)
    live[:, 0] = 0.0
    count = torch.zeros(history.rows, dtype=torch.long, device=device)
    tokens = torch.full((history.rows * width,), SOS, device=device)
    done, cut = (BestOutputs(history.rows, best=options.kept, device=device) for _ in range(2))
    coverage = Coverage(stepper.places, options)
    stepper.begin(width)
    for step in range(options.max_length):
        raw, looks = stepper.step(tokens, oracle.at(step, inputs, width=width))
        log_probs = raw.view(len(inputs), width, stepper.symbols)
        penalty = coverage.look(looks, inputs).expand(len(inputs), width)
        best = allowed.forbid(live[..., None] + log_probs, step, inputs).flatten(1).topk(2 * width, dim=1)
        parents, symbols = best.indices // stepper.symbols, best.indices % stepper.symbols
        scores = normalised(best.values, step + 1, options) + penalty.gather(1, parents)

        ends = (symbols == EOS) & (torch.arange(2 * width, device=device) < width)
        done.add(inputs, scores.masked_fill(~ends, -torch.inf), step=step)
        count = count + (ends & best.values.isfinite()).sum(1)
        carried = (symbols == EOS).long().argsort(dim=1, stable=True)[:, :width]
        live = best.values.gather(1, carried)
        history.add(inputs, tokens=symbols, parents=parents, carried=carried, log_probs=log_probs, looks=looks)

        if step == options.max_length - 1:
            cut.add(inputs, scores.masked_fill(symbols == EOS, -torch.inf), step=step)
        going = ~finished(live[:, 0], done.scores[inputs], count, options, length=step + 1)
        if not going.any():
            break
        rows = torch.arange(len(inputs), device=device)[:, None] * width + parents.gather(1, carried)
        stepper.select(rows.flatten(), width)
        if not going.all():
            stepper.compact(going.nonzero().squeeze(1))
        coverage.select(rows[going].flatten())
        tokens = symbols.gather(1, carried)[going].flatten()
        inputs, live, count = inputs[going], live[going], count[going]
    return Endings.joined([done.endings(finished=True), cut.endings(finished=False)])
