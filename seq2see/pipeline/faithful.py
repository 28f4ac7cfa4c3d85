"""What an output really depends on: places left out, and gradients, beside where the model looked.

y_t is the output that the table gives, so that every model is asked about the same words.
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
from seq2see.pipeline.frozen_features import kept_for
from seq2see.pipeline.input_warnings import tell
from seq2see.pipeline.predictor import BATCH_TOKENS, OnProgress, Progress

Row = Mapping[str, str]
OCCLUSION, GRADIENT = "occlusion", "gradient"
MANY = 64
"""Places of a row from which on those that are hidden are told, not rows alone."""
LONG = 15_000
"""Symbols' worth of reading that is warned of: a quarter of a minute of video on one core."""


def faithful(
    bundle: Bundle, rows: Sequence[Row], *, most: int = 0, places: int = 0, progress: Progress | None = None
) -> Faithfulness:
    """The agreement of attention with occlusion and with gradients. most: at most so many distinct inputs (0: all);
    places: at most so many of each input, drawn at random, always the same (0: all)."""
    _check(bundle)
    chosen = [rows[question.rows[0]] for question in choose_questions(rows, most)]
    weighed: dict[str, list[PlaceWeights]] = {name: [] for name in bundle.recipe.looked_at}
    with kept_for([bundle], [], None):  # files as they are: what was made of them cannot be hidden in part
        for number, row in enumerate(chosen, start=1):
            asked = _Asked(bundle, row, most=places)
            if number == 1:
                tell(asked.long(len(chosen)))
            for name, one in asked.weighed(_within(progress, number, len(chosen))).items():
                weighed[name].append(one)
            if progress is not None and not asked.many:
                progress("rows asked", number, len(chosen))
    return faithfulness(weighed, total=len(chosen))


def _within(progress: Progress | None, number: int, rows: int) -> OnProgress:
    """What is told of the places of one row."""

    def told(done: int, places: int) -> None:
        if progress is not None and places >= MANY:
            progress(f"places hidden, row {number:,} of {rows:,}", done, places)

    return told


def _check(bundle: Bundle) -> None:
    recipe = bundle.recipe
    if not recipe.looked_at:
        if not recipe.inputs:
            raise UserError(
                "a language model reads no input, so there is nothing that its looks could tell the truth of"
            )
        raise UserError("the model has no attention that could tell the truth; attention.score sets one")
    for name in recipe.looked_at:
        read, _, part = name.partition(".")
        field = bundle.fields.inputs.get(read)
        if field is None or part not in field.hidden_parts:
            raise UserError(
                f"attention.over: '{name}' has no places that could be left out or hidden one by one; "
                f"allowed: inputs of kind {', '.join(_hideable())}"
            )


def _hideable() -> Iterator[str]:
    """Kinds of inputs whose places can be hidden, with their further places."""
    for kind in inputs:
        further = [part for part in inputs[kind].hidden_parts if part]
        if inputs[kind].hidden_parts:
            yield kind + (f" (and {', '.join(further)} of these)" if further else "")


class _Asked:
    """One row, asked in many ways: its input as it is, and without each of its places, or of `most` of them."""

    def __init__(self, bundle: Bundle, row: Row, *, most: int = 0):
        self.bundle, self.row, self.network, self.most = bundle, row, bundle.network, most
        self.network.eval()
        with torch.inference_mode():
            batch = self._batch(1)
            step, ready = self.network.forward_batch(batch)
            self.given = self._given(batch, step, ready)
        self.shapes: dict[str, list[int]] = {
            name: places.layout.to_dict(int(places.mask[0].sum()))["shape"]
            for name, places in ready.memory.places.items()
        }
        looks = {name: look.dense().reshape(self.given.shape[1], -1) for name, look in step.looks.items()}
        self.looks = {name: weights for name, weights in looks.items() if weights.shape[1] > 1}
        self.places = {name: self._drawn(weights.shape[1]) for name, weights in self.looks.items()}

    @property
    def many(self) -> bool:
        """Whether a row takes so long that its places are worth telling."""
        return any(len(places) >= MANY for places in self.places.values())

    def long(self, rows: int) -> list[str]:
        """What to say before a wait: how often inputs like this one will be read."""
        return [
            f"{name}: {len(places):,} places in the first row, each hidden in turn: about {rows * len(places):,} "
            f"inputs are read for {counted(rows, 'row')}; --rows N takes fewer rows, --places N fewer places of each"
            for name, places in self.places.items()
            if len(places) >= MANY and rows * len(places) * self._room(name) > LONG
        ]

    def weighed(self, told: OnProgress | None = None) -> dict[str, PlaceWeights]:
        """Maps of (steps, places) by input; inputs of a single place have nothing to compare and are left out."""
        found: dict[str, PlaceWeights] = {}
        for name, weights in self.looks.items():
            occlusion, gradient = self._occlusion(name, self.given[0], told), self._gradient(name, self.given)
            places = self.places[name]
            measures = {OCCLUSION: _numbers(occlusion), GRADIENT: _numbers(gradient[:, places])}
            found[name] = PlaceWeights(_numbers(weights[:, places]), measures)
        return found

    def _drawn(self, count: int) -> Int[Tensor, " places"]:
        """The places that are asked about, in their order; a lattice of evenly chosen ones could miss whole columns."""
        if not 0 < self.most < count:
            return torch.arange(count, device=self.bundle.device)
        drawn = np.random.default_rng(count).choice(count, self.most, replace=False)
        return torch.from_numpy(np.sort(drawn)).to(self.bundle.device)

    @torch.inference_mode()
    def _occlusion(
        self, name: str, given: Float[Tensor, " steps"], told: OnProgress | None = None
    ) -> Float[Tensor, "steps places"]:
        """log P(y_t | x) - log P(y_t | x without x_j)"""
        read = name.partition(".")[0]
        places = self.places[name]
        drops: list[Tensor] = []
        done = 0
        for chosen in places.split(self._rows_at_once(name, len(given))):
            batch = self._batch(len(chosen))
            batch.inputs[read] = self._places(batch, name).without(chosen)
            drops.append(given - self._given(batch, *self.network.forward_batch(batch)))
            done += len(chosen)
            if told is not None:
                told(done, len(places))
        return torch.cat(drops).T

    def _gradient(self, name: str, given: Float[Tensor, "1 steps"]) -> Float[Tensor, "steps places"]:
        """|d log P(y_t) / d e(x_j) * e(x_j)|, the norm over the numbers of e(x_j); of a sentence the sum of its words'.

        The row stands once for each step, so that one pass backwards gives the gradients of all steps apart.
        """
        steps = given.shape[1]
        read = name.partition(".")[0]
        found = []
        for chosen in torch.arange(steps, device=self.bundle.device).split(self._rows_at_once(name, steps)):
            batch = self._batch(len(chosen))
            with embedded(self.network, read) as vectors:
                asked = self._given(batch, *self.network.forward_batch(batch)).gather(1, chosen[:, None]).sum()
            slopes = torch.autograd.grad(asked, vectors)
            places = self._places(batch, name)
            parts = [places.by_place((slope * one).detach()) for slope, one in zip(slopes, vectors, strict=True)]
            found.append(torch.linalg.vector_norm(torch.stack(parts), dim=0))
        return torch.cat(found)

    def _batch(self, times: int) -> Batch:
        return self.bundle.fields.batch([self.row] * times, target=True).to(self.bundle.device)

    def _given(self, batch: Batch, step: Step, ready: Ready) -> Float[Tensor, "rows steps"]:
        """log P of the row's own output, step by step."""
        target = batch.target
        if not isinstance(target, Sequences | Labels):
            raise ValueError("a batch without symbols to write has nothing to ask about")
        mask = torch.ones_like(target.ids, dtype=torch.bool) if isinstance(target, Labels) else target.mask
        return self.network.head.target_scores(step, ready, target.ids, mask=mask).view(len(batch.rows), -1)

    def _rows_at_once(self, name: str, steps: int) -> int:
        return max(1, BATCH_TOKENS // (self._room(name) + steps))

    def _room(self, name: str) -> int:
        return self._places(self._batch(1), name).room

    def _places(self, batch: Batch, name: str) -> Occlusion:
        read, _, part = name.partition(".")
        changes = self.network.encoder(read).sees_changes
        column, shape = batch.inputs[read], self.shapes.get(name, [])
        return self.bundle.fields.inputs[read].occlusion(column, part, shape, changes=changes)


@contextmanager
def embedded(network: EncoderDecoder, name: str) -> Iterator[list[Tensor]]:
    """The vectors e(x_j) of an input as it is read inside, where gradients end.

    They are (batch, places, size), those of documents (sentences of all documents, words, size), those of pictures
    (batch, size, rows, columns), those of sounds (batch, frames, size), those of videos (batch, frames, size, rows,
    columns), which may be several: what is in a frame, what moves. Inputs that share an encoder are read by it one
    after the other, in the order of the recipe.
    """
    module = network.encoder(name).vectors
    if module is None:
        raise UserError(f"the encoder of '{name}' has no embedding that gradients could be taken of")
    readers = [other for other in network.reader_of if network.reader_of[other] == network.reader_of[name]]
    waiting, kept = readers.index(name), list[Tensor]()
    calls = 0

    def keep(_module: nn.Module, _given: object, vectors: Tensor | list[Tensor]) -> Tensor | list[Tensor]:
        nonlocal calls
        calls += 1
        if calls - 1 != waiting:
            return vectors
        parts = vectors if isinstance(vectors, list) else [vectors]
        kept.extend(one.detach().requires_grad_() for one in parts)
        return list(kept) if isinstance(vectors, list) else kept[0]

    hook = module.register_forward_hook(keep)
    try:
        yield kept
    finally:
        hook.remove()


def _numbers(tensor: Tensor) -> Float[np.ndarray, "steps places"]:
    return np.asarray(tensor.double().cpu().numpy())
