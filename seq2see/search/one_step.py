"""Outputs of one step: labels, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from seq2see.decoders import Ready, Step
from seq2see.errors import UserError
from seq2see.search.constraints import Oracle
from seq2see.search.hypotheses import Endings, History, Hypothesis, JointPlaces
from seq2see.search.models import ModelStepper, Source, encoder_looks, evaluating, joint_places, move_inputs
from seq2see.search.options import SearchOptions, Weights
from seq2see.search.run import build_hypotheses
from seq2see.search.top import likeliest


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
    """The `n_best` likeliest labels of each input, best first: hypotheses of one id, whose looks have one row.

    oracle: attention weights for step 0; maps: also the looks of each head (of a single model).
    """
    if not all(model.decoder.one_step for model, _ in sources):
        raise UserError("this model writes sequences, which are searched for, not classified")
    if not all(model.head.symbols for model, _ in sources):
        raise UserError("this model gives numbers, which are reconstructed, not classified")
    options = SearchOptions(sample=True, n_best=n_best, max_length=1, runners_up=runners_up, oracle=oracle)
    if not rows:
        return []
    with evaluating([model for model, _ in sources]):
        stepper = ModelStepper(move_inputs(sources, device), len(rows), maps=maps)
        inputs = np.arange(len(rows))
        forced = Oracle(oracle, stepper.places, rows=len(rows), max_length=1).at(0, inputs, width=1)
        stepper.begin(1)
        log_probs, looks = stepper.step(None, forced)
        labels = likeliest(log_probs, n_best)
        best, first = labels.ids, np.zeros_like(labels.ids)
        history = History(len(rows), runners_up)
        history.add(
            inputs,
            tokens=best,
            parents=first,
            carried=first[:, :1],
            log_probs=labels.log_probs,
            likeliest=likeliest(log_probs, runners_up),
            looks=looks,
        )
        endings = Endings(
            inputs.repeat(best.shape[1]),
            first.reshape(-1),
            np.tile(np.arange(best.shape[1]), len(rows)),
            np.ones(best.size, dtype=bool),
        )
        paths = history.backtrack(endings)
        return build_hypotheses(
            paths,
            endings,
            places=stepper.places,
            inner=stepper.inner,
            writable=stepper.writable,
            prefixes=[()] * len(rows),
            options=options,
        )


def reconstruct(
    source: Source,
    rows: Sequence[int],
    *,
    oracle: Weights | Sequence[Weights] | None = None,
    device: torch.device | str | None = None,
    maps: bool = False,
) -> list[Hypothesis]:
    """The numbers that a model gives for each input, as a hypothesis without ids; its looks, if any, have one row.

    oracle: attention weights for step 0; maps: also the looks of each head.
    """
    ((model, inputs),) = move_inputs([source], device)
    if not rows:
        return []
    with evaluating([model]):
        ready = model.ready(inputs, len(rows), maps=maps)
        places = joint_places([ready])
        forced = Oracle(oracle, places, rows=len(rows), max_length=1).at(0, np.arange(len(rows)), width=1) or {}
        weights = {name: torch.from_numpy(rows).to(model.head.device) for name, rows in forced.items()}
        step = model.step(ready, model.begin(ready), None, forced=weights or None)
        outputs = model.numbers(step)
        if not outputs.isfinite().all():
            raise UserError("what the model gives are not numbers: its weights are damaged, or training diverged")
        return _hypotheses(outputs.cpu(), ready, step, places, maps=maps)


def _hypotheses(
    outputs: torch.Tensor, ready: Ready, step: Step, places: Mapping[str, JointPlaces], *, maps: bool
) -> list[Hypothesis]:
    inner = encoder_looks([ready])
    hypotheses = []
    for row, numbers in enumerate(outputs):
        real = {name: torch.from_numpy(places[name].mask[row]) for name in step.looks}
        looks = {name: look.dense()[row : row + 1, real[name]].cpu().numpy() for name, look in step.looks.items()}
        by_head = {name: look.by_head()[row][..., real[name]] for name, look in step.looks.items()} if maps else {}
        hypotheses.append(
            Hypothesis(
                ids=[],
                log_probs=[],
                log_probability=0.0,
                score=0.0,
                finished=True,
                looks=looks,
                maps={name: weights[:, None].cpu().numpy() for name, weights in by_head.items() if weights.dim() > 1},
                places={name: known[row] for name in step.looks if (known := places[name].tokens) is not None},
                layouts={name: places[name].layout_of(row) for name in step.looks},
                inner=inner[row],
                numbers=numbers.numpy(),
            )
        )
    return hypotheses
