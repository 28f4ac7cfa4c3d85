"""What an output really depends on: places left out, and gradients, beside where the model looked.

y_t is the output that the table gives, so that every model is asked about the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.data.references import group
from seq2see.decoders import Ready, Step
from seq2see.errors import UserError
from seq2see.evaluation.faithfulness import Faithfulness, Weighed, faithfulness
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.chunks import BATCH_TOKENS, Told
from seq2see.pipeline.evaluator import some
from seq2see.pipeline.features import kept_for
from seq2see.pipeline.taken_apart import Apart, apart

Row = Mapping[str, str]
OCCLUSION, GRADIENT = "occlusion", "gradient"
PARTS = {
    "text": ("",),
    "set": ("",),
    "texts": ("", "words"),
    "image": ("",),
    "sound": ("",),
    "video": ("", "regions"),
}
"""Places that can be left out, by kind of input: its own, or further ones."""


def faithful(bundle: Bundle, rows: Sequence[Row], *, most: int = 0, told: Told | None = None) -> Faithfulness:
    """The agreement of attention with occlusion and with gradients. most: at most so many distinct inputs (0: all)."""
    _check(bundle)
    chosen = [rows[question.rows[0]] for question in some(group(rows), most)]
    weighed: dict[str, list[Weighed]] = {name: [] for name in bundle.recipe.looked_at}
    with kept_for([bundle], [], None):  # files as they are: what was made of them cannot be hidden in part
        for number, row in enumerate(chosen, start=1):
            for name, one in _Asked(bundle, row).weighed().items():
                weighed[name].append(one)
            if told is not None:
                told(number, len(chosen))
    return faithfulness(weighed, asked=len(chosen))


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
        kind = recipe.inputs[read].kind if read in recipe.inputs else ""
        if part not in PARTS.get(kind, ()):
            raise UserError(
                f"attention.over: '{name}' has no places that could be left out or hidden one by one; "
                "allowed: inputs of kind text, set, texts (and words of these), image, sound and video (and regions "
                "of these)"
            )


class _Asked:
    """One row, asked in many ways: its input as it is, and without each of its places."""

    def __init__(self, bundle: Bundle, row: Row):
        self.bundle, self.row, self.network = bundle, row, bundle.network
        self.shapes: dict[str, list[int]] = {}
        self.network.eval()

    def weighed(self) -> dict[str, Weighed]:
        """Maps of (steps, places) by input; inputs of a single place have nothing to compare and are left out."""
        with torch.inference_mode():
            batch = self._batch(1)
            step, ready = self.network.taught(batch)
            given = self._given(batch, step, ready)
        self.shapes = {
            name: places.layout.to_dict(int(places.mask[0].sum()))["shape"]
            for name, places in ready.memory.places.items()
        }
        looks = {name: look.dense().reshape(given.shape[1], -1) for name, look in step.looks.items()}
        return {
            name: Weighed(
                _numbers(weights),
                {OCCLUSION: _numbers(self._occlusion(name, given[0])), GRADIENT: _numbers(self._gradient(name, given))},
            )
            for name, weights in looks.items()
            if weights.shape[1] > 1
        }

    @torch.inference_mode()
    def _occlusion(self, name: str, given: Float[Tensor, " steps"]) -> Float[Tensor, "steps places"]:
        """log P(y_t | x) - log P(y_t | x without x_j)"""
        read = name.partition(".")[0]
        places = self._apart(self._batch(1), name).count
        drops = []
        for chosen in torch.arange(places, device=self.bundle.device).split(self._rows_at_once(name, len(given))):
            batch = self._batch(len(chosen))
            batch.inputs[read] = self._apart(batch, name).without(chosen)
            drops.append(given - self._given(batch, *self.network.taught(batch)))
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
                asked = self._given(batch, *self.network.taught(batch)).gather(1, chosen[:, None]).sum()
            slopes = torch.autograd.grad(asked, vectors)
            places = self._apart(batch, name)
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
        return self.network.head.given(step, ready, target.ids, mask=mask).view(len(batch.rows), -1)

    def _rows_at_once(self, name: str, steps: int) -> int:
        return max(1, BATCH_TOKENS // (self._apart(self._batch(1), name).room + steps))

    def _apart(self, batch: Batch, name: str) -> Apart:
        read, _, part = name.partition(".")
        changes = self.network.encoder(read).reads_changes
        return apart(batch.inputs[read], part, self.shapes.get(name, []), changes)


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
