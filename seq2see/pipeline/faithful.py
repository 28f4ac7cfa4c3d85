"""Whether attention shows what an output depends on: attention weights beside occlusion and gradients.

y_t is the output of the table, so that all models are measured on the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.decoders import Ready, Step
from seq2see.errors import UserError, counted
from seq2see.evaluation.faithfulness import Faithfulness, PlaceWeights, faithfulness
from seq2see.modalities.base import Occlusion, inputs
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.evaluator import choose_questions
from seq2see.pipeline.frozen_features import use_features
from seq2see.pipeline.inputs import warn
from seq2see.pipeline.predictor import OnProgress, Progress
from seq2see.search.options import BATCH_TOKENS

Row = Mapping[str, str]
OCCLUSION, GRADIENT = "occlusion", "gradient"
MANY_PLACES = 64
"""From so many places of a row on, progress is reported by place and not only by row."""
MANY_SYMBOLS = 15_000
"""From so many symbols to read on, a warning comes first: a quarter of a minute of video on one core."""


def faithful(
    bundle: Bundle, rows: Sequence[Row], *, most: int = 0, places: int = 0, progress: Progress | None = None
) -> Faithfulness:
    """The agreement of attention with occlusion and with gradients. most: at most so many distinct inputs (0: all);
    places: at most so many of each input, drawn at random, always the same (0: all)."""
    _check(bundle)
    chosen = [rows[question.rows[0]] for question in choose_questions(rows, most)]
    measured: dict[str, list[PlaceWeights]] = {name: [] for name in bundle.recipe.looked_at}
    with use_features([bundle], [], None):  # read the files themselves: features have no places that could be hidden
        for number, row in enumerate(chosen, start=1):
            importance = PlaceImportance(bundle, row, most=places)
            if number == 1:
                warn(importance.cost_warning(len(chosen)))
            for name, weights in importance.measure(_place_progress(progress, number, len(chosen))).items():
                measured[name].append(weights)
            if progress is not None and not importance.many:
                progress("rows asked", number, len(chosen))
    return faithfulness(measured, total=len(chosen))


def _place_progress(progress: Progress | None, number: int, rows: int) -> OnProgress:
    """The progress within one row."""

    def on_progress(done: int, places: int) -> None:
        if progress is not None and places >= MANY_PLACES:
            progress(f"places hidden, row {number:,} of {rows:,}", done, places)

    return on_progress


def _check(bundle: Bundle) -> None:
    recipe = bundle.recipe
    if not recipe.looked_at:
        if not recipe.inputs:
            raise UserError(
                "a language model reads no input, so there is nothing that its looks could tell the truth of"
            )
        raise UserError("the model has no attention to test; attention.score sets one")
    for name in recipe.looked_at:
        source, _, part = name.partition(".")
        field = bundle.fields.inputs.get(source)
        if field is None or part not in field.hidden_parts:
            raise UserError(
                f"attention.over: '{name}' has no places that could be left out or hidden one by one; "
                f"allowed: inputs of kind {', '.join(_kinds_with_occlusion())}"
            )


def _kinds_with_occlusion() -> Iterator[str]:
    """Kinds of inputs whose places can be hidden, with their further places."""
    for kind in inputs:
        further = [part for part in inputs[kind].hidden_parts if part]
        if inputs[kind].hidden_parts:
            yield kind + (f" (and {', '.join(further)} of these)" if further else "")


class PlaceImportance:
    """Measures how much each place of one row's input matters for the row's output.

    most: at most so many places (0: all); target_scores: log P of the output, step by step; looks: attention weights
    (steps, places) by input.
    """

    def __init__(self, bundle: Bundle, row: Row, *, most: int = 0):
        self.bundle, self.row, self.network, self.most = bundle, row, bundle.network, most
        self.network.eval()
        with torch.inference_mode():
            batch = self._batch(1)
            step, ready = self.network.forward_batch(batch)
            self.target_scores = self._target_scores(batch, step, ready)
        self.shapes: dict[str, list[int]] = {
            name: places.layout.to_dict(int(places.mask[0].sum()))["shape"]
            for name, places in ready.memory.places.items()
        }
        looks = {name: look.dense().reshape(self.target_scores.shape[1], -1) for name, look in step.looks.items()}
        self.looks = {name: weights for name, weights in looks.items() if weights.shape[1] > 1}
        self.places = {name: self._choose_places(weights.shape[1]) for name, weights in self.looks.items()}

    @property
    def many(self) -> bool:
        """Whether progress is reported by place."""
        return any(len(places) >= MANY_PLACES for places in self.places.values())

    def cost_warning(self, rows: int) -> list[str]:
        """A message before a long wait: how often inputs like this one will be read."""
        return [
            f"{name}: {len(places):,} places in the first row, each hidden in turn: about {rows * len(places):,} "
            f"inputs are read for {counted(rows, 'row')}; --rows N takes fewer rows, --places N fewer places of each"
            for name, places in self.places.items()
            if len(places) >= MANY_PLACES and rows * len(places) * self._symbols(name) > MANY_SYMBOLS
        ]

    def measure(self, on_progress: OnProgress | None = None) -> dict[str, PlaceWeights]:
        """Attention, occlusion and gradients by input, each (steps, places). Inputs of a single place are left out, as
        there is nothing to compare."""
        measured: dict[str, PlaceWeights] = {}
        for name, weights in self.looks.items():
            places = self.places[name]
            importance = {
                OCCLUSION: _as_array(self._occlusion(name, on_progress)),
                GRADIENT: _as_array(self._gradient(name)[:, places]),
            }
            measured[name] = PlaceWeights(_as_array(weights[:, places]), importance)
        return measured

    def _choose_places(self, count: int) -> Int[Tensor, " places"]:
        """The places that are measured, in order. They are drawn at random: evenly spaced ones could miss whole columns
        of a grid."""
        if not 0 < self.most < count:
            return torch.arange(count, device=self.bundle.device)
        drawn = np.random.default_rng(count).choice(count, self.most, replace=False)
        return torch.from_numpy(np.sort(drawn)).to(self.bundle.device)

    @torch.inference_mode()
    def _occlusion(self, name: str, on_progress: OnProgress | None = None) -> Float[Tensor, "steps places"]:
        """log P(y_t | x) - log P(y_t | x without x_j)"""
        source, places, scores = name.partition(".")[0], self.places[name], self.target_scores[0]
        drops: list[Tensor] = []
        done = 0
        for chosen in places.split(self._batch_rows(name)):
            batch = self._batch(len(chosen))
            batch.inputs[source] = self._occluder(batch, name).without(chosen)
            drops.append(scores - self._target_scores(batch, *self.network.forward_batch(batch)))
            done += len(chosen)
            if on_progress is not None:
                on_progress(done, len(places))
        return torch.cat(drops).T

    def _gradient(self, name: str) -> Float[Tensor, "steps places"]:
        """|d log P(y_t) / d e(x_j) * e(x_j)|, the norm over the numbers of e(x_j); of a sentence the sum of its words'.

        The batch has the row once for each step, so that one backward pass gives the gradients of all steps.
        """
        source, steps = name.partition(".")[0], self.target_scores.shape[1]
        norms = []
        for chosen in torch.arange(steps, device=self.bundle.device).split(self._batch_rows(name)):
            batch = self._batch(len(chosen))
            with embedding_leaves(self.network, source) as vectors:
                scores = self._target_scores(batch, *self.network.forward_batch(batch))
            gradients = torch.autograd.grad(scores.gather(1, chosen[:, None]).sum(), vectors)
            places = self._occluder(batch, name)
            parts = [
                places.by_place((gradient * vector).detach())
                for gradient, vector in zip(gradients, vectors, strict=True)
            ]
            norms.append(torch.linalg.vector_norm(torch.stack(parts), dim=0))
        return torch.cat(norms)

    def _batch(self, times: int) -> Batch:
        return self.bundle.fields.batch([self.row] * times, target=True).to(self.bundle.device)

    def _target_scores(self, batch: Batch, step: Step, ready: Ready) -> Float[Tensor, "rows steps"]:
        """log P of the row's own output, step by step."""
        target = batch.target
        if not isinstance(target, Sequences | Labels):
            raise ValueError("a batch without symbols to write has nothing to ask about")
        mask = torch.ones_like(target.ids, dtype=torch.bool) if isinstance(target, Labels) else target.mask
        return self.network.head.target_scores(step, ready, target.ids, mask=mask).view(len(batch.rows), -1)

    def _batch_rows(self, name: str) -> int:
        """How many copies of the row make a batch."""
        return max(1, BATCH_TOKENS // (self._symbols(name) + self.target_scores.shape[1]))

    def _symbols(self, name: str) -> int:
        """How much of a batch the input takes, in symbols."""
        return self._occluder(self._batch(1), name).room

    def _occluder(self, batch: Batch, name: str) -> Occlusion:
        source, _, part = name.partition(".")
        changes = self.network.encoder(source).sees_changes
        column, shape = batch.inputs[source], self.shapes.get(name, [])
        return self.bundle.fields.inputs[source].occlusion(column, part, shape, changes=changes)


@contextmanager
def embedding_leaves(network: EncoderDecoder, name: str) -> Iterator[list[Tensor]]:
    """Make the vectors e(x_j) of an input leaves of the gradient while the network runs inside the context.

    They are (batch, places, size); of documents (sentences of all documents, words, size), of images (batch, size,
    rows, columns), of sounds (batch, frames, size), of videos (batch, frames, size, rows, columns), where there may be
    two: what is in a frame and what moves. Inputs that share an encoder are read one after the other, in the order of
    the recipe.
    """
    module = network.encoder(name).vectors
    if module is None:
        raise UserError(f"the encoder of '{name}' has no embedding to take gradients of")
    readers = [other for other in network.reader_of if network.reader_of[other] == network.reader_of[name]]
    own_call, leaves = readers.index(name), list[Tensor]()
    calls = 0

    def detach(_module: nn.Module, _inputs: object, vectors: Tensor | list[Tensor]) -> Tensor | list[Tensor]:
        nonlocal calls
        calls += 1
        if calls - 1 != own_call:
            return vectors
        parts = vectors if isinstance(vectors, list) else [vectors]
        leaves.extend(part.detach().requires_grad_() for part in parts)
        return list(leaves) if isinstance(vectors, list) else leaves[0]

    hook = module.register_forward_hook(detach)
    try:
        yield leaves
    finally:
        hook.remove()


def _as_array(tensor: Tensor) -> Float[np.ndarray, "steps places"]:
    return np.asarray(tensor.double().cpu().numpy())
