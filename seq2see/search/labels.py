"""Labels: a decoder of one step, so a search of one choice."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seq2see.errors import UserError
from seq2see.search.history import Endings, History
from seq2see.search.hypothesis import Hypothesis
from seq2see.search.options import SearchOptions, Weights
from seq2see.search.oracle import Oracle
from seq2see.search.run import moved
from seq2see.search.stepper import Source, Stepper, at_rest
from seq2see.search.telling import tell


def classify(
    sources: Sequence[Source],
    rows: Sequence[int],
    n_best: int = 1,
    *,
    runners_up: int = 5,
    oracle: Weights | Sequence[Weights] | None = None,
    device: torch.device | str | None = None,
    maps: bool = False,
) -> list[list[Hypothesis]]:
    """For each input its likeliest labels, best first, each a hypothesis of one id whose looks have one row.

    There are as many as n_best asks for, or as there are labels. `oracle` may hand in the weights of step 0.
    maps: also tell heads apart (of a single model).
    """
    if not all(model.decoder.one_step for model, _ in sources):
        raise UserError("this model writes sequences, which are searched for, not classified")
    if not all(model.head.symbols for model, _ in sources):
        raise UserError("this model gives numbers, which are reconstructed, not classified")
    options = SearchOptions(sample=True, n_best=n_best, max_length=1, runners_up=runners_up, oracle=oracle)
    if not rows:
        return []
    with at_rest([model for model, _ in sources]):
        stepper = Stepper(moved(sources, device), len(rows), maps=maps)
        inputs = torch.arange(len(rows), device=stepper.device)
        forced = Oracle(oracle, stepper.places, rows=len(rows), max_length=1).at(0, inputs, width=1)
        stepper.begin(1)
        log_probs, looks = stepper.step(None, forced)
        best = log_probs.topk(min(n_best, stepper.symbols), dim=1).indices
        first = torch.zeros_like(best)
        history = History(len(rows), runners_up)
        history.add(inputs, tokens=best, parents=first, carried=first[:, :1], log_probs=log_probs[:, None], looks=looks)
        numbers = torch.arange(best.shape[1], device=best.device).expand_as(best)
        endings = Endings(
            inputs[:, None].expand_as(best).flatten(),
            first.flatten(),
            numbers.flatten(),
            torch.ones_like(best, dtype=torch.bool).flatten(),
        )
        paths = history.read_off(endings)
        return tell(
            paths,
            endings,
            places=stepper.places,
            inner=stepper.inner,
            writable=stepper.writable,
            prefixes=[()] * len(rows),
            options=options,
        )
