"""The front of the room: inputs in, hypotheses out, by whichever search the options ask for."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seq2see.errors import UserError
from seq2see.search.allowed import Allowed
from seq2see.search.beam import beam_search
from seq2see.search.coverage import check_coverage
from seq2see.search.greedy import likeliest
from seq2see.search.history import History
from seq2see.search.hypothesis import Hypothesis
from seq2see.search.options import SearchOptions
from seq2see.search.oracle import Oracle
from seq2see.search.sampling import Draw
from seq2see.search.stepper import Source, Stepper, at_rest
from seq2see.search.telling import tell
from seq2see.search.walk import walk


def search(
    sources: Sequence[Source],
    rows: Sequence[int],
    options: SearchOptions | None = None,
    *,
    device: torch.device | str | None = None,
    maps: bool = False,
) -> list[list[Hypothesis]]:
    """For each input its hypotheses, best first, at most n_best of them.

    sources: one model with its inputs, or several that form an ensemble over one output vocabulary;
    rows: the inputs' numbers in their data set, which (with the seed) fix what is sampled;
    device: where the models are, if the inputs are still elsewhere;
    maps: also tell heads and layers apart (of a single model).
    What is found for an input does not depend on the other inputs of the batch.
    """
    options = options if options is not None else SearchOptions()
    if any(model.decoder.one_step for model, _ in sources):
        raise UserError("this model gives labels or numbers, which are classified or reconstructed, not searched for")
    if not rows:
        return []
    with at_rest([model for model, _ in sources]):
        stepper = Stepper(moved(sources, device), len(rows), maps=maps, ctc=options.ctc)
        check_coverage(stepper.places, options)
        allowed = Allowed(options, writable=stepper.writable, device=stepper.device)
        oracle = Oracle(options.oracle, stepper.places, rows=len(rows), max_length=options.max_length)
        history = History(len(rows), options.runners_up)
        if options.beam > 1:
            endings = beam_search(stepper, history, options, allowed=allowed, oracle=oracle)
        else:
            endings = walk(
                stepper,
                history,
                Draw(options, rows, device=stepper.device) if options.sample else likeliest,
                allowed=allowed,
                oracle=oracle,
                width=options.n_best,
                max_length=options.max_length,
            )
        paths = history.read_off(endings)
        return tell(
            paths,
            endings,
            places=stepper.places,
            inner=stepper.inner,
            writable=stepper.writable,
            prefixes=allowed.prefixes,
            options=options,
        )


def moved(sources: Sequence[Source], device: torch.device | str | None) -> list[Source]:
    """The same sources with their inputs on the device; None leaves them where they are."""
    if device is None:
        return list(sources)
    return [(model, {name: column.to(device) for name, column in inputs.items()}) for model, inputs in sources]
