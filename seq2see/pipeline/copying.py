"""Copying: the words of an input as the output would write them, those that its vocabulary lacks included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seq2see.data.batches import UNK, Nested, Sequences, pad_lists
from seq2see.data.columns import OUTPUT
from seq2see.memory import Copyable
from seq2see.modalities.base import Example
from seq2see.modalities.text import TextField

COPYABLE = "output.copyable"
"""Under this name the ids are stored; it can be no input's."""


class Copying:
    """Gives every word of one input an id of the output: the vocabulary's own, or one beyond it.

    Words the vocabulary lacks are numbered from its end on, input by input, in the order in which they first appear. So
    such an id means something only beside its input.

    name: of the input; source, output: the two fields.

    >>> from seq2see.settings.columns import TextSettings
    >>> source, output = TextField(TextSettings()), TextField(TextSettings(), output=True)
    >>> output.build(["hello Tom"])
    >>> Copying("name", source, output).written(["I", "am", "Tom", "am"])
    ([6, 7, 4, 7], ['I', 'am'])
    """

    def __init__(self, name: str, source: TextField, output: TextField):
        self.name = name
        self.source = source
        self.output = output

    def written(self, symbols: Sequence[str]) -> tuple[list[int], list[str]]:
        """(the id of each symbol of an input, the words whose ids lie beyond the vocabulary)."""
        known, further = self.output.vocabulary, dict[str, int]()
        ids = []
        for symbol in map(self.output.normalise, symbols):
            number = known.ids.get(symbol)
            ids.append(further.setdefault(symbol, len(known) + len(further)) if number is None else number)
        return ids, list(further)

    def target(self, symbols: Sequence[str], words: Sequence[str]) -> list[int]:
        """Ids of an output's symbols, without `<eos>`, beside an input with these words beyond the vocabulary."""
        known = self.output.vocabulary
        further = {word: len(known) + number for number, word in enumerate(words)}
        return [known.ids.get(symbol, further.get(symbol, UNK)) for symbol in symbols]

    def words(self, examples: Mapping[str, Example]) -> list[str]:
        """The words of a row's input that lie beyond the vocabulary."""
        return self.written(self.source.row_of(examples[self.name]))[1]

    def ids(self, examples: Mapping[str, Example]) -> dict[str, list[int]]:
        """What is stored of a row: its input as the output would write it, and the output beside that input."""
        ids, words = self.written(self.source.row_of(examples[self.name]))
        return {COPYABLE: ids, OUTPUT: self.target(examples[OUTPUT].symbols, words)}

    def read(self, column: Sequences | Nested) -> Sequences | Nested:
        """An input that was just split, with what can be copied from it."""
        rows = [self.written(symbols) for symbols in _in_a_row(column)]
        ids = pad_lists([ids for ids, _ in rows], eos=False).ids
        return replace(column, copyable=Copyable(ids, [words for _, words in rows]))

    def targets(self, target: Sequences, column: Sequences | Nested) -> Sequences:
        """The outputs of a batch beside their inputs (as `read` gave them)."""
        outputs = target.symbols or []
        words = (column.copyable and column.copyable.words) or [[] for _ in outputs]
        rows = [self.target(symbols, further) for symbols, further in zip(outputs, words, strict=True)]
        return replace(target, ids=pad_lists(rows, eos=True).ids)


def _in_a_row(column: Sequences | Nested) -> list[list[str]]:
    """The symbols of each input; of a document those of all its sentences, one after the other."""
    if isinstance(column, Sequences):
        return column.symbols or []
    return [[symbol for sentence in document for symbol in sentence] for document in column.symbols or []]
