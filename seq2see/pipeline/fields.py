"""The fields of a recipe, built together in as few passes over the rows as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.batches import Batch, Labels, Nested, Numbers, Sequences, Target
from seq2see.data.columns import ALIGNMENT, OUTPUT, place_of
from seq2see.errors import UserError
from seq2see.modalities.base import Column, Example, Field, Modality, NumericOutput, Output, field_of
from seq2see.modalities.label import LabelField
from seq2see.modalities.text import TextField
from seq2see.pipeline.alignments import Aligning
from seq2see.pipeline.copying import COPYABLE, Copying
from seq2see.recipe.schema import Recipe

Values = Mapping[str, str]


class Row(dict[str, str]):
    """The values of one row by name, and what fields have read of them: each value is read once by each model."""

    __slots__ = ("examples",)

    def __init__(self, values: Values):
        super().__init__(values)
        self.examples: dict[Field, Example] = {}


class Fields:
    """Inputs by name, and the output.

    copying: where words of an input may be copied into the output; aligning: where it is known which comes from which.
    """

    def __init__(
        self,
        inputs: dict[str, Modality],
        output: Output,
        *,
        copying: Copying | None = None,
        aligning: Aligning | None = None,
    ):
        self.inputs = inputs
        self.output = output
        self.copying = copying
        self.aligning = aligning

    @property
    def all(self) -> dict[str, Field]:
        """Every field by name, inputs first; the output is called `output`."""
        return {**self.inputs, OUTPUT: self.output}

    @property
    def text_inputs(self) -> dict[str, TextField]:
        """The inputs that are text, whole or in sentences, which have symbols to show."""
        return {name: field for name, field in self.inputs.items() if isinstance(field, TextField)}

    @property
    def text_output(self) -> TextField:
        """The output, where the recipe writes text."""
        return _text(self.output)

    @property
    def label_output(self) -> LabelField:
        """The output, where the recipe writes a label."""
        if not isinstance(self.output, LabelField):
            raise TypeError(f"the output is no label but a {type(self.output).__name__}")
        return self.output

    @property
    def numeric_output(self) -> NumericOutput:
        """The output, where the recipe gives numbers."""
        if not isinstance(self.output, NumericOutput):
            raise TypeError(f"the output holds no numbers, it is a {type(self.output).__name__}")
        return self.output

    @classmethod
    def build(cls, recipe: Recipe, rows_factory: Callable[[], Iterator[Values]]) -> Fields:
        """Build every field: one streaming pass that counts, and before it one for each vocabulary that is learned.

        rows_factory: gives an iterator over all rows anew at each call, a row being {input's name or "output": value}.
        """
        owners = _owners(recipe)
        every = unbuilt_fields(recipe)
        groups = {name: [other for other in every if owners[other] == name] for name in every if owners[name] == name}
        for owner, members in groups.items():
            if every[owner].learning:
                every[owner].learn(every[name].normalise(row[name]) for row in rows_factory() for name in members)
                for name in members:
                    _text(every[name]).splitter = _text(every[owner]).splitter
        _observe(every, rows_factory(), stream=recipe.data.stream)
        for owner, members in groups.items():
            field = every[owner]
            if len(members) > 1:
                _text(field).settle([_text(every[name]) for name in members if name != owner])
            else:
                field.settle()
        return cls._of(recipe, every)

    @classmethod
    def load(cls, folder: Path, recipe: Recipe) -> Fields:
        """Read what `save` wrote; fields that shared a vocabulary share it again."""
        every = {
            name: field_of(settings, output=name == OUTPUT).load(folder, name, settings, output=name == OUTPUT)
            for name, settings in _settings(recipe)
        }
        for name, owner in _owners(recipe).items():
            if owner != name:
                if every[name].vocabulary != every[owner].vocabulary:
                    raise UserError(f"{folder}: '{name}' and '{owner}' share a vocabulary, but their files differ")
                _text(every[name]).use(_text(every[owner]))
        return cls._of(recipe, every)

    @classmethod
    def _of(cls, recipe: Recipe, every: dict[str, Field]) -> Fields:
        inputs = {name: field for name, field in every.items() if isinstance(field, Modality) and name != OUTPUT}
        output = every[OUTPUT]
        assert isinstance(output, Output)
        made = cls(inputs, output)
        for field in made.inputs.values():
            field.beside(made.output)
        copied, column = recipe.copied_from, recipe.loss.alignment.column
        if copied is not None:
            made.copying = Copying(copied, _text(every[copied]), made.text_output)
        if column is not None:
            aligned = recipe.looked_at[0]
            made.aligning = Aligning(column, aligned, _text(every[aligned]), made.text_output)
        return made

    def save(self, folder: Path) -> list[Path]:
        """Every field's files into a model's folder; their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, field in self.all.items() for path in field.save(folder, name)]

    @property
    def stored(self) -> list[str]:
        """Names of all that is stored of a row."""
        further = {COPYABLE: self.copying, ALIGNMENT: self.aligning}
        return [*self.all, *(name for name, part in further.items() if part is not None)]

    def read(self, row: Values, *, output: bool = False) -> dict[str, Example]:
        """The inputs of a row, and its output where asked for; of a `Row` each is read once only."""
        fields = self.all if output else self.inputs
        if not isinstance(row, Row):
            return {name: field.read(row[name]) for name, field in fields.items()}
        for name, field in fields.items():
            if field not in row.examples:
                row.examples[field] = field.read(row[name])
        return {name: row.examples[field] for name, field in fields.items()}

    def ids(self, row: Values, examples: Mapping[str, Example]) -> dict[str, list[int]]:
        """A row as it is stored: the ids of every column, and what only several columns together can tell."""
        found = {name: example.ids for name, example in examples.items()}
        if self.copying is not None:
            found |= self.copying.ids(examples)
        if self.aligning is not None:
            found[ALIGNMENT] = self.aligning.ids(row, examples)
        return found

    def copied_words(self, row: Values) -> list[str]:
        """The words of a row that can be written though the output's vocabulary lacks them."""
        return [] if self.copying is None else self.copying.words(self.read(row))

    def target_ids(self, row: Values, value: str) -> list[int]:
        """The ids of an output, without `<eos>`, beside the inputs of a row (whose words may be copied)."""
        if self.copying is None:
            return self.output.ids(value)
        return self.copying.target(self.text_output.symbols(value), self.copied_words(row))

    def batch(self, rows: Sequence[Values], *, target: bool = False) -> Batch:
        """Values as they come, with the inputs' own symbols (prediction, evaluation); the target where asked for."""
        read = [self.read(row, output=target) for row in rows]
        inputs = {name: readable(field.collate([one[name] for one in read])) for name, field in self.inputs.items()}
        outputs = writable(self.output.collate([one[OUTPUT] for one in read])) if target else None
        if self.copying is not None:
            column = inputs[self.copying.name] = self.copying.read(worded(inputs[self.copying.name]))
            if outputs is not None:
                outputs = self.copying.targets(sequences(outputs), column)
        return Batch(inputs=inputs, target=outputs, rows=list(range(len(rows))))


def unbuilt_fields(recipe: Recipe) -> dict[str, Field]:
    """The fields of a recipe by name, before they have learned from any row."""
    return {
        name: field_of(settings, output=name == OUTPUT)(settings, output=name == OUTPUT)
        for name, settings in _settings(recipe)
    }


def worded(column: Column) -> Sequences | Nested:
    """A column of words, in a row or in sentences: what can be copied from."""
    assert isinstance(column, Sequences | Nested)
    return column


def sequences(column: Column) -> Sequences:
    """A column of plain text: what is written, and what links lead from and to."""
    assert isinstance(column, Sequences)
    return column


def readable(column: Column) -> Column:
    """What can be an input: labels are written by models, not read."""
    assert not isinstance(column, Labels)
    return column


def writable(column: Column) -> Target:
    """What can be an output: documents are read by models, not written."""
    assert isinstance(column, Sequences | Labels | Numbers)
    return column


def _observe(every: dict[str, Field], rows: Iterator[Values], *, stream: bool) -> None:
    """One pass in which all fields count; what a field minds is told with the row's place in its file."""
    observers: list[tuple[str, Callable[[str], None]]] = [(name, field.observe) for name, field in every.items()]
    if stream:
        observers = [(OUTPUT, _text(every[OUTPUT]).observe_stream)]
    number = 0
    for number, row in enumerate(rows, start=1):
        try:
            for name, observe in observers:
                observe(row[name])
        except UserError as error:
            raise UserError(f"{place_of(row, number)}: {error}") from None
    if not number:
        raise UserError("there are no rows to learn from")


def _settings(recipe: Recipe) -> list[tuple[str, Any]]:
    if OUTPUT in recipe.inputs:
        raise UserError(f"inputs.{OUTPUT}: the name '{OUTPUT}' is taken by the output; give the input another")
    return [*recipe.inputs.items(), (OUTPUT, recipe.output)]


def _owners(recipe: Recipe) -> dict[str, str]:
    """For each field the one whose vocabulary it uses: itself where it shares none."""
    return {name: recipe.vocabulary_owner(name) for name, _ in _settings(recipe)}


def _text(field: Field) -> TextField:
    """Only text fields learn, share and stream: the recipe's schema gives the keys to no other kind."""
    if not isinstance(field, TextField):
        raise TypeError(f"the field is no text but a {type(field).__name__}")
    return field
