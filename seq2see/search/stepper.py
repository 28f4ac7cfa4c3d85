"""One step of whatever is searched, behind one interface: a model, an ensemble, or an exported model of the runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from seq2see.search.hypotheses import EncoderLook, JointPlaces
from seq2see.search.top import Likeliest, likeliest

LEAST = -1e4
"""The least log-probability: symbols that a model finds impossible stay apart from forbidden ones (-inf)."""


@dataclass
class CopyVocabulary:
    """What can be generated for each input: the symbols of the output, followed by words of the input.

    vocabulary: the number of symbols that all models share; limits: (batch,), the number of ids of each input; words:
    those of the ids from `vocabulary` on, input by input.
    """

    vocabulary: int
    limits: Int[ndarray, " batch"]
    words: list[list[str]] = field(default_factory=list)

    @property
    def symbols(self) -> int:
        """The size of a distribution: that of the input with the most words."""
        return max(self.vocabulary, int(self.limits.max()))

    def cut(
        self, log_probs: Float[ndarray, "rows symbols"], inputs: Int[ndarray, " inputs"]
    ) -> Float[ndarray, "rows symbols"]:
        """Minus infinity at words that an input does not have; each input has the same number of rows, in a run."""
        if self.symbols == self.vocabulary:
            return log_probs
        limits = self.limits[inputs].repeat(len(log_probs) // len(inputs))
        return np.where(np.arange(self.symbols) >= limits[:, None], -np.inf, log_probs).astype(log_probs.dtype)


class Stepper(Protocol):
    """The hypotheses of a search; `width` of each input, in a run.

    places: what can be attended to; inner: the encoders' own attention; writable: what can be generated; all of them
    for the whole batch, also after inputs have left it.
    """

    @property
    def places(self) -> Mapping[str, JointPlaces]: ...
    @property
    def inner(self) -> Sequence[Mapping[str, EncoderLook]]: ...
    @property
    def writable(self) -> CopyVocabulary: ...

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""

    def step(
        self, tokens: Int[ndarray, " rows"] | None, forced: Mapping[str, Float[ndarray, "rows _"]] | None = None
    ) -> tuple[Float[ndarray, "rows symbols"], dict[str, Float[ndarray, "rows *heads _"]]]:
        """Extend every hypothesis by its token: log P of the next symbol, and {input name: (rows, places)}, the looks.

        With maps, looks with heads are (rows, heads, places), those of lower layers are included by their names, and so
        is self-attention to the symbols so far (`self_attention_name`). forced: attention weights that replace the
        model's own where they are not NaN. The caller may change the log-probabilities in place.
        """

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        """Continue with these hypotheses, as many as before for each of these inputs; the others leave the batch."""


def step_top(
    stepper: Stepper,
    tokens: Int[ndarray, " rows"],
    number: int,
    forced: Mapping[str, Float[ndarray, "rows _"]] | None = None,
) -> tuple[Likeliest, dict[str, Float[ndarray, "rows *heads _"]]]:
    """Extend every hypothesis by its token: the `number` likeliest next symbols of each, and the looks.

    A stepper may have a method of this name, where it finds them faster than a search over all symbols does.
    """
    own: Any = getattr(stepper, "step_top", None)
    if own is not None:
        found: tuple[Likeliest, dict[str, ndarray]] = own(tokens, number, forced)
        return found
    log_probs, looks = stepper.step(tokens, forced)
    return likeliest(log_probs, number), looks
