"""The extended vocabulary of copying: the symbols of the output, followed by words of each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from seq2see.decoders import Ready
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder


@dataclass
class CopyVocabulary:
    """What can be generated for each input.

    vocabulary: the number of symbols that all models share; limits: (batch,), the number of ids of each input; words:
    those of the ids from `vocabulary` on, input by input.
    """

    vocabulary: int
    limits: Int[Tensor, " batch"]
    words: list[list[str]]

    @classmethod
    def of(cls, models: Sequence[EncoderDecoder], readies: Sequence[Ready]) -> CopyVocabulary:
        """That of an ensemble: what one model can copy, all can."""
        vocabulary = _one_vocabulary(models)
        pairs = list(zip(models, readies, strict=True))
        further = torch.stack([model.head.further(ready) for model, ready in pairs]).amax(0)
        known = [words for model, ready in pairs if (words := model.head.words(ready)) is not None]
        longest = [max(rows, key=len) for rows in zip(*known, strict=True)] if known else [[] for _ in further]
        return cls(vocabulary, vocabulary + further, longest)

    @property
    def symbols(self) -> int:
        """The size of a distribution: that of the input with the most words."""
        return max(self.vocabulary, int(self.limits.max()))

    def padded(self, log_probs: Float[Tensor, "rows _"]) -> Float[Tensor, "rows symbols"]:
        """A model's distribution, with minus infinity at the words that it cannot copy."""
        missing = self.symbols - log_probs.shape[-1]
        return pad(log_probs, (0, missing), value=-torch.inf) if missing else log_probs

    def cut(
        self, log_probs: Float[Tensor, "rows symbols"], inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "rows symbols"]:
        """Minus infinity at words that an input does not have; each input has the same number of rows, in a run."""
        if self.symbols == self.vocabulary:
            return log_probs
        limits = self.limits[inputs].repeat_interleave(len(log_probs) // len(inputs))
        return log_probs.masked_fill(torch.arange(self.symbols, device=limits.device) >= limits[:, None], -torch.inf)


def _one_vocabulary(models: Sequence[EncoderDecoder]) -> int:
    if not models:
        raise UserError("a search needs at least one model, got none")
    sizes = [model.head.symbols for model in models]
    if len(set(sizes)) > 1:
        raise UserError(f"the models of an ensemble need one output vocabulary, got sizes {sizes}")
    return sizes[0]
