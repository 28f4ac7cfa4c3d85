"""The fields of a recipe: its inputs and its output, with the ids for copying and the alignment between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seq2see.data.batches import Batch, Labels, Nested, Numbers, Sequences, Target, pad_lists
from seq2see.data.columns import ALIGNMENT, OUTPUT, place_of
from seq2see.data.vocabulary import copy_ids, target_ids
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.modalities.base import Column, Example, Field, Modality, NumericOutput, Output, field_of
from seq2see.modalities.label import LabelField
from seq2see.modalities.text import TextField
from seq2see.pipeline.alignments import AlignmentReader, alignment_reader
from seq2see.recipe.schema import Recipe

Values = Mapping[str, str]


class Row(dict[str, str]):
    """The values of one row by name, and the examples that fields have read from them, so that each model reads a
    value once."""

    __slots__ = ("examples",)

    def __init__(self, values: Values):
        super().__init__(values)
        self.examples: dict[Field, Example] = {}


class Fields:
    """The fields of the inputs, by name, and of the output.

    copying: gives ids to words that can be copied from an input; alignment: reads where the output's symbols come
    from. Both are None where the recipe has no such thing.
    """

    def __init__(
        self,
        inputs: dict[str, Modality],
        output: Output,
        *,
        copying: Copying | None = None,
        alignment: AlignmentReader | None = None,
    ):
        self.inputs = inputs
        self.output = output
        self.copying = copying
        self.alignment = alignment

    @property
    def all(self) -> dict[str, Field]:
        """Every field by name, inputs first; the output is called `output`."""
        return {**self.inputs, OUTPUT: self.output}

    def display(self, row: Mapping[str, str]) -> str | dict[str, str] | None:
        """The inputs of a row as a prediction names them: a single one itself, several by name, None for a language
        model."""
        values = {
            name: self.inputs[name].display(value) if name in self.inputs else value for name, value in row.items()
        }
        return next(iter(values.values())) if len(values) == 1 else values or None

    @property
    def text_output(self) -> TextField:
        """The output of a recipe that writes text."""
        return _as_text_field(self.output)

    @property
    def label_output(self) -> LabelField:
        """The output of a recipe that gives a label."""
        if not isinstance(self.output, LabelField):
            raise TypeError(f"the output is no label but a {type(self.output).__name__}")
        return self.output

    @property
    def numeric_output(self) -> NumericOutput:
        """The output of a recipe that gives numbers."""
        if not isinstance(self.output, NumericOutput):
            raise TypeError(f"the output holds no numbers, it is a {type(self.output).__name__}")
        return self.output

    @classmethod
    def build(
        cls,
        recipe: Recipe,
        read_rows: Callable[[], Iterator[Values]],
        *,
        parts: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Fields:
        """Build every field from the training rows: one pass that counts, after one for each tokeniser that is
        learned (BPE).

        read_rows: each call returns an iterator over all rows, {name of an input or "output": value}; parts: by name,
        the parts of all values with their counts (`Field.unit`), which need no pass.
        """
        owners = _vocabulary_owners(recipe)
        fields = unbuilt_fields(recipe)
        groups = {name: [other for other in fields if owners[other] == name] for name in fields if owners[name] == name}
        for owner, members in groups.items():
            if fields[owner].learning:
                fields[owner].learn(fields[name].normalise(row[name]) for row in read_rows() for name in members)
                for name in members:
                    _as_text_field(fields[name]).splitter = _as_text_field(fields[owner]).splitter
        if parts is None:
            _observe(fields, read_rows(), stream=recipe.data.stream)
        else:
            for name, counts in parts.items():
                for part, times in counts.items():
                    fields[name].observe_part(part, times)
        for owner, members in groups.items():
            if len(members) > 1:
                others = [_as_text_field(fields[name]) for name in members if name != owner]
                _as_text_field(fields[owner]).settle(others)
            else:
                fields[owner].settle()
        return cls.assemble(recipe, fields)

    @classmethod
    def load(cls, folder: Path, recipe: Recipe) -> Fields:
        """Read the files that `save` wrote; fields that shared a vocabulary share it again."""
        fields = {
            name: field_of(settings, output=name == OUTPUT).load(folder, name, settings, output=name == OUTPUT)
            for name, settings in _column_settings(recipe)
        }
        for name, owner in _vocabulary_owners(recipe).items():
            if owner != name:
                if fields[name].vocabulary != fields[owner].vocabulary:
                    raise UserError(f"{folder}: '{name}' and '{owner}' share a vocabulary, but their files differ")
                _as_text_field(fields[name]).use(_as_text_field(fields[owner]))
        return cls.assemble(recipe, fields)

    @classmethod
    def assemble(cls, recipe: Recipe, fields: dict[str, Field]) -> Fields:
        """Fields of a recipe that were built one by one."""
        inputs = {name: field for name, field in fields.items() if isinstance(field, Modality) and name != OUTPUT}
        output = fields[OUTPUT]
        assert isinstance(output, Output)
        result = cls(inputs, output)
        for field in inputs.values():
            field.after_output(output)
        source, column = recipe.copied_from, recipe.loss.alignment.column
        if source is not None:
            result.copying = Copying(source, _as_text_field(fields[source]), result.text_output)
        if column is not None:
            result.alignment = alignment_reader(recipe, inputs, result.text_output)
        return result

    def save(self, folder: Path) -> list[Path]:
        """Write every field's files into a model's folder; returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, field in self.all.items() for path in field.save(folder, name)]

    @property
    def stored(self) -> list[str]:
        """The names under which parts of a row are stored."""
        further = {COPYABLE: self.copying, ALIGNMENT: self.alignment}
        return [*self.all, *(name for name, part in further.items() if part is not None)]

    def read(self, row: Values, *, output: bool = False) -> dict[str, Example]:
        """The examples of a row's inputs, and of its output if asked for; a `Row` keeps them for the next call."""
        fields = self.all if output else self.inputs
        if not isinstance(row, Row):
            return {name: field.read(row[name]) for name, field in fields.items()}
        for name, field in fields.items():
            if field not in row.examples:
                row.examples[field] = field.read(row[name])
        return {name: row.examples[field] for name, field in fields.items()}

    def ids(self, row: Values, examples: Mapping[str, Example]) -> dict[str, list[int]]:
        """A row as it is stored: the ids of every column, for copying and of alignment links."""
        ids = {name: example.ids for name, example in examples.items()}
        if self.copying is not None:
            ids |= self.copying.ids(examples)
        if self.alignment is not None:
            ids[ALIGNMENT] = self.alignment.ids(row, examples)
        return ids

    def copied_words(self, row: Values) -> list[str]:
        """The words of a row that are not in the output's vocabulary but can be copied."""
        return [] if self.copying is None else self.copying.new_words(self.read(row))

    def target_ids(self, row: Values, value: str) -> list[int]:
        """The ids of an output, without `<eos>`; words of the row's input may be copied."""
        if self.copying is None:
            return self.output.ids(value)
        return self.copying.target_ids(self.text_output.symbols(value), self.copied_words(row))

    def batch(self, rows: Sequence[Values], *, target: bool = False) -> Batch:
        """Rows as a batch for prediction and evaluation, with the inputs' own symbols; with the target if asked for."""
        examples = [self.read(row, output=target) for row in rows]
        inputs = {name: field.collate([row[name] for row in examples]) for name, field in self.inputs.items()}
        outputs = as_target(self.output.collate([row[OUTPUT] for row in examples])) if target else None
        if self.copying is not None:
            column = inputs[self.copying.name] = self.copying.with_copy_ids(as_words(inputs[self.copying.name]))
            if outputs is not None:
                outputs = self.copying.with_target_ids(as_sequences(outputs), column)
        return Batch(inputs=inputs, target=outputs, rows=list(range(len(rows))))


def unbuilt_fields(recipe: Recipe) -> dict[str, Field]:
    """The fields of a recipe by name, before they have seen any row."""
    return {
        name: field_of(settings, output=name == OUTPUT)(settings, output=name == OUTPUT)
        for name, settings in _column_settings(recipe)
    }


def _observe(fields: dict[str, Field], rows: Iterator[Values], *, stream: bool) -> None:
    """Let all fields count in one pass; an error names the row's place in its file."""
    observers: list[tuple[str, Callable[[str], None]]] = [(name, field.observe) for name, field in fields.items()]
    if stream:
        observers = [(OUTPUT, _as_text_field(fields[OUTPUT]).observe_stream)]
    number = 0
    for number, row in enumerate(rows, start=1):
        try:
            for name, observe in observers:
                observe(row[name])
        except UserError as error:
            raise UserError(f"{place_of(row, number)}: {error}") from None
    if not number:
        raise UserError("there are no rows to learn from")


def _column_settings(recipe: Recipe) -> list[tuple[str, Any]]:
    if OUTPUT in recipe.inputs:
        raise UserError(f"inputs.{OUTPUT}: the name '{OUTPUT}' is taken by the output; give the input another")
    return [*recipe.inputs.items(), (OUTPUT, recipe.output)]


def _vocabulary_owners(recipe: Recipe) -> dict[str, str]:
    """The field whose vocabulary each field uses: itself unless it shares one."""
    return {name: recipe.vocabulary_owner(name) for name, _ in _column_settings(recipe)}


def _as_text_field(field: Field) -> TextField:
    """Only text fields learn, share and stream: no other kind has these settings."""
    if not isinstance(field, TextField):
        raise TypeError(f"the field is no text but a {type(field).__name__}")
    return field


def as_words(column: Column) -> Sequences | Nested:
    """A column of words, in one sequence or in sentences, from which words can be copied."""
    assert isinstance(column, Sequences | Nested)
    return column


def as_sequences(column: Column) -> Sequences:
    """A column of plain text."""
    assert isinstance(column, Sequences)
    return column


def as_target(column: Column) -> Target:
    """A column that a model can be trained to give."""
    assert isinstance(column, Sequences | Labels | Numbers)
    return column


# ---------------------------------------------------------------- copying

COPYABLE = "output.copyable"
"""The name under which copy ids are stored; no input can have it."""


class Copying:
    """Gives every word of one input an id of the output: that of the vocabulary, or one beyond it (`copy_ids`).

    name: of the input; source, output: the two fields.

    >>> from seq2see.settings.columns import TextSettings
    >>> source, output = TextField(TextSettings()), TextField(TextSettings(), output=True)
    >>> output.build(["hello Tom"])
    >>> Copying("name", source, output).copy_ids(["I", "am", "Tom", "am"])
    ([6, 7, 4, 7], ['I', 'am'])
    """

    def __init__(self, name: str, source: TextField, output: TextField):
        self.name = name
        self.source = source
        self.output = output

    def copy_ids(self, symbols: Sequence[str]) -> tuple[list[int], list[str]]:
        """(the id of each symbol of an input, the words whose ids are beyond the vocabulary)."""
        return copy_ids(map(self.output.normalise, symbols), self.output.vocabulary)

    def target_ids(self, symbols: Sequence[str], new_words: Sequence[str]) -> list[int]:
        """Ids of an output's symbols, without `<eos>`; new_words: those of its input that are beyond the vocabulary."""
        return target_ids(symbols, self.output.vocabulary, new_words)

    def new_words(self, examples: Mapping[str, Example]) -> list[str]:
        """The words of a row's input that are beyond the vocabulary."""
        return self.copy_ids(self.source.row_of(examples[self.name]))[1]

    def ids(self, examples: Mapping[str, Example]) -> dict[str, list[int]]:
        """The ids that are stored for a row: of its input for copying, and of the output beside that input."""
        ids, new_words = self.copy_ids(self.source.row_of(examples[self.name]))
        return {COPYABLE: ids, OUTPUT: self.target_ids(examples[OUTPUT].symbols, new_words)}

    def with_copy_ids(self, column: Sequences | Nested) -> Sequences | Nested:
        """A column of an input's symbols, with the ids of the words that can be copied from it."""
        rows = [self.copy_ids(symbols) for symbols in _flat_symbols(column)]
        ids = pad_lists([ids for ids, _ in rows], eos=False).ids
        return replace(column, copyable=Copyable(ids, [words for _, words in rows]))

    def with_target_ids(self, target: Sequences, column: Sequences | Nested) -> Sequences:
        """The targets of a batch, with the ids of words that are copied from `column` (see `with_copy_ids`)."""
        outputs = target.symbols or []
        words = (column.copyable and column.copyable.words) or [[] for _ in outputs]
        rows = [self.target_ids(symbols, new_words) for symbols, new_words in zip(outputs, words, strict=True)]
        return replace(target, ids=pad_lists(rows, eos=True).ids)


def _flat_symbols(column: Sequences | Nested) -> list[list[str]]:
    """The symbols of each input; those of a document are joined over its sentences."""
    if isinstance(column, Sequences):
        return column.symbols or []
    return [[symbol for sentence in document for symbol in sentence] for document in column.symbols or []]
