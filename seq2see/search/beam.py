"""Beam search: the best `beam` hypotheses of each input go on, and those that end compete by their score."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.batches import EOS, SOS
from seq2see.search.allowed import Allowed
from seq2see.search.coverage import Coverage
from seq2see.search.history import Endings, History
from seq2see.search.options import SearchOptions
from seq2see.search.oracle import Oracle
from seq2see.search.pool import Pool
from seq2see.search.scoring import normalised
from seq2see.search.stepper import Stepper
from seq2see.search.stopping import over


def beam_search(
    stepper: Stepper, history: History, options: SearchOptions, *, allowed: Allowed, oracle: Oracle
) -> Endings:
    """The endings of the n best outputs of each input; unfinished ones only where max_length left too few finished.

    Of twice as many candidates as the beam is wide, at most half end (one `<eos>` for each hypothesis): those among the
    first `beam` that do have finished, and the first `beam` that do not go on. Live hypotheses are all of one length,
    so they are compared by log-probability; a score is only needed where lengths differ.
    """
    width, device = options.beam, stepper.device
    inputs = torch.arange(history.rows, device=device)
    live: Float[Tensor, "inputs slots"] = torch.full((history.rows, width), -torch.inf, device=device)
    live[:, 0] = 0.0
    count = torch.zeros(history.rows, dtype=torch.long, device=device)
    tokens = torch.full((history.rows * width,), SOS, device=device)
    done, cut = (Pool(history.rows, best=options.kept, device=device) for _ in range(2))
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
        going = ~over(live[:, 0], done.scores[inputs], count, options, length=step + 1)
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
