"""A beginning that outputs are given: text, or the very symbols that an earlier output was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seq2see.data.batches import EOS, UNK
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle

Given = str | Sequence[str]
"""A text, which is split like any other, or symbols: those of characters or pieces cannot be had back from a text."""


def given_ids(bundle: Bundle, row: Mapping[str, str], given: Given, *, what: str = "prefix") -> list[int]:
    """The ids of a beginning of the output beside the inputs of a row; symbols may end in `<eos>`, a text cannot.

    A symbol that the model cannot write is `<unk>`: that is what it wrote where it was shown as an input's word.
    """
    recipe = bundle.recipe
    if recipe.output.kind != "text":
        raise UserError(f"{what}: {recipe.output.said} has no beginning to be given")
    if isinstance(given, str):
        return bundle.fields.target_ids(row, given)
    eos = SPECIALS[EOS]
    for number, symbol in enumerate(given):
        ends = symbol == eos and number == len(given) - 1
        if symbol in SPECIALS and symbol != SPECIALS[UNK] and not ends:
            raise UserError(f"{what}: symbol {number} is {symbol}; only {eos} may be given, as the last")
    known = bundle.fields.output.vocabulary.ids
    copying = bundle.fields.copying
    words = [] if copying is None else copying.words(row)
    further = {word: len(bundle.fields.output.vocabulary) + number for number, word in enumerate(words)}
    return [EOS if symbol == eos else known.get(symbol, further.get(symbol, UNK)) for symbol in given]
