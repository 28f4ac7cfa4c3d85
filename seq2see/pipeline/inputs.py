"""What callers give to a model: inputs, attention weights (an oracle), and the warnings about what it cannot read."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from seq2see.data.columns import OUTPUT
from seq2see.errors import Notice, UserError, counted
from seq2see.looks import Prediction
from seq2see.modalities.base import Field, Watcher
from seq2see.modalities.text import SHOWN, TextField, name_unknown
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields, Row


def input_row(value: Any, fields: Fields) -> Row:
    """An input from Python as a row by the recipe's names.

    value: a text, an array, a tensor or a list of numbers for a model with one input; a dict by name or by the
    column of the training table, or a sequence in the recipe's order, for several; None for a language model.
    """
    values = _by_name(value, fields)
    row = {name: as_text(name, values[name], field) for name, field in fields.inputs.items()}
    row = {name: _clean(name, row[name], field) for name, field in fields.inputs.items()}
    for name, field in fields.inputs.items():
        problem = field.problem(row[name]) if not field.settings.file and row[name].strip() else None
        if problem is not None:
            raise UserError(f"input '{name}': {problem}")
    return Row(row)


def _by_name(value: Any, fields: Fields) -> Mapping[str, Any]:
    """The values of an input by the recipe's names."""
    names = list(fields.inputs)
    if isinstance(value, Tensor):
        value = np.asarray(value.tolist())
    if len(names) == 1 and (isinstance(value, np.ndarray) or _is_list_for(value, fields.inputs[names[0]])):
        value = {names[0]: value}
    elif value is None or (value == "" and not names):
        value = {}
    if isinstance(value, str):
        value = {names[0]: value} if len(names) == 1 else (value,)
    elif isinstance(value, Sequence):
        value = tuple(value)
    if isinstance(value, tuple):
        if len(value) != len(names):
            raise UserError(
                f"the model reads {counted(len(names), 'input')} ({', '.join(names) or 'none'}), got {len(value)}"
            )
        value = dict(zip(names, value, strict=True))
    value = _without_output(_by_column(value, fields), fields)
    if not isinstance(value, Mapping) or set(value) != set(names):
        got = ", ".join(map(str, value)) if isinstance(value, Mapping) else repr(value)
        form = "" if isinstance(value, Mapping) else f"; {_form_of(fields)}"
        raise UserError(f"the model reads the inputs {', '.join(names) or 'none'}, got {got or 'none'}{form}")
    return value


def _by_column(value: Any, fields: Fields) -> Any:
    """The values by the recipe's names where a dict has them by the columns of the training table."""
    columns = {name: field.settings.column or name for name, field in fields.inputs.items()}
    if not isinstance(value, Mapping) or set(columns) & set(value) or not set(columns.values()) <= set(value):
        return value
    return {name: value[column] for name, column in columns.items()}


def _without_output(value: Any, fields: Fields) -> Any:
    """The row of a table without its output, under the recipe's name or that of its column."""
    if not isinstance(value, Mapping) or not set(fields.inputs) < set(value):
        return value
    outputs = {OUTPUT, fields.output.settings.column} - set(fields.inputs)
    return {name: each for name, each in value.items() if name not in outputs}


def is_numbers(value: Any, fields: Fields) -> bool:
    """Whether a value is a list of numbers, which is one input of a model that reads just that."""
    names = list(fields.inputs)
    numbers = isinstance(value, list) and bool(value) and all(map(_is_number, value))
    return numbers and len(names) == 1 and _is_list_for(value, fields.inputs[names[0]])


def _is_list_for(value: Any, field: Field) -> bool:
    """Whether a list is one value of a field that reads numbers: a list of them, or of lists where the kind has such.
    A tuple may hold the inputs in the recipe's order instead, so that only one of numbers is."""
    if field.elements is None or float not in field.elements.types or not isinstance(value, list | tuple) or not value:
        return False
    nested = list in field.elements.types and isinstance(value, list)
    return all(map(_is_number, value)) or (nested and all(isinstance(item, list | tuple) for item in value))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool))


def _form_of(fields: Fields) -> str:
    """How an input is given."""
    names = list(fields.inputs)
    if len(names) != 1:
        return "give a dict by name" if names else "give no input"
    elements = fields.inputs[names[0]].elements
    return f"give {'a text' if elements is None else f'a text or a list of {elements.name}'}"


def nested_hint(inputs: Any, fields: Fields) -> str:
    """Advice for lists of lists of numbers, which are several inputs though one of some kinds may look the same."""
    names = list(fields.inputs)
    if len(names) != 1 or not isinstance(inputs, list) or not all(isinstance(item, list | tuple) for item in inputs):
        return ""
    elements = fields.inputs[names[0]].elements
    if elements is None or list not in elements.types:
        return ""
    return f"; a list of lists is several inputs: give one input of lists as an array, or as {{'{names[0]}': [...]}}"


def clean_rows(rows: Sequence[Mapping[str, str]], fields: Fields) -> list[Mapping[str, str]]:
    """Rows with outputs from Python, each text without halves of surrogate pairs."""
    known = fields.all
    return [
        {
            name: _clean(name, text, known[name]) if name in known and isinstance(text, str) else text
            for name, text in row.items()
        }
        for row in rows
    ]


def _clean(name: str, value: str, field: Field) -> str:
    try:
        return field.clean(value)
    except UserError as error:
        raise UserError(f"input '{name}': {error}") from None


def as_text(name: str, value: Any, field: Field) -> str:
    """A value as the text of a table; a list is joined for fields that take sentences, utterances or numbers."""
    if isinstance(value, str):
        return value
    if field.elements is None:
        raise UserError(f"input '{name}': expected text, got {type(value).__name__}")
    if isinstance(value, np.ndarray | Tensor):
        value = value.tolist()
    if isinstance(value, list | tuple):
        value = [item.item() if isinstance(item, np.number) else item for item in value]
    if not isinstance(value, Sequence):
        raise UserError(f"input '{name}': expected text, or a list of texts or numbers, got {value!r}")
    try:
        return field.from_items(value)
    except UserError as error:
        raise UserError(f"input '{name}': {error}") from None


# ---------------------------------------------------------------- attention weights from the caller

Oracle = dict[int, dict[str, list[float]]]
"""{step: {input: a weight for each place}}"""


def read_oracle(oracle: Any, looked_at: Sequence[str]) -> Oracle:
    """Attention weights as the search takes them, from {step: weights} or {step: {input: weights}}; the search checks
    the weights themselves.

    >>> read_oracle({3: [0, 1]}, ["source"])
    {3: {'source': [0.0, 1.0]}}
    """
    if not looked_at:
        raise UserError("oracle: this model has no attention to set")
    if not isinstance(oracle, Mapping):
        raise UserError(f"oracle: expected {{step: weights}}, got {oracle!r}")
    steps: Oracle = {}
    for key, weights in oracle.items():
        step = _step_number(key)
        maps = weights if isinstance(weights, Mapping) else {looked_at[0]: weights}
        steps[step] = {name: _weights(values, step=step) for name, values in maps.items()}
    return steps


def unreached_steps(oracle: Iterable[int], predictions: Sequence[Prediction]) -> list[str]:
    """A message for each step whose weights were not used, as all hypotheses of an input ended before it."""
    lengths = [
        max(len(prediction.tokens), *(len(other.tokens) for other in prediction.alternatives), 0)
        for prediction in predictions
    ]
    messages = []
    for step in sorted(oracle):
        short = [length for length in lengths if length <= step]
        if not short:
            continue
        where = f"the output has {counted(lengths[0], 'step')}, counted from 0"
        if len(lengths) > 1:
            where = (
                f"{len(short):,} of {counted(len(lengths), 'output')} {'ends' if len(short) == 1 else 'end'} before it"
            )
        messages.append(f"oracle: step {step} is not reached: {where}")
    return messages


def _step_number(key: Any) -> int:
    try:
        number = int(key)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if number < 0 or number != float(key):
        raise UserError(f"oracle: step {key!r}; steps are whole numbers, counted from 0")
    return number


def _weights(values: Any, *, step: int) -> list[float]:
    try:
        return [float(weight) for weight in values]
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            f"oracle: step {step}: expected a list of numbers, one for each place, got {values!r}"
        ) from None


# ---------------------------------------------------------------- warnings

OWN_PACKAGES = ("seq2see", "torch")
"""Packages whose frames lie between a warning and the user's code: torch wraps functions in inference mode."""


class Notices:
    """Collects what a model cannot read of its rows (unknown symbols, inputs that are cut or empty), so that a table of
    any size gets one line for each problem.

    outputs: check the rows' outputs too. The models of an ensemble may have different vocabularies; whatever one of
    them does not know is reported.
    """

    def __init__(self, bundles: Sequence[Bundle], *, outputs: bool = False):
        self._recipe = bundles[0].recipe
        self._rows = self._empty = 0
        self._watchers = [(bundle.fields, _watchers(bundle.fields, outputs=outputs)) for bundle in bundles]

    def read(self, rows: Iterable[Mapping[str, str]]) -> None:
        for row in rows:
            self._rows += 1
            self._empty += any(not row[name].strip() for name in self._recipe.needed)
            for fields, watchers in self._watchers:
                examples = fields.read(row, output=OUTPUT in watchers) if watchers else {}
                for name, watcher in watchers.items():
                    watcher.read(examples[name], row)

    def lines(self) -> list[str]:
        empty = []
        if self._empty:
            have = "has an" if self._empty == 1 else "have an"
            empty = [f"{self._empty:,} of {counted(self._rows, 'row')} {have} empty input: left blank"]
        return empty + list(
            dict.fromkeys(
                line for _, watchers in self._watchers for watcher in watchers.values() for line in watcher.lines()
            )
        )


def _watchers(fields: Fields, *, outputs: bool) -> dict[str, Watcher]:
    """The watchers of the columns in which something may be unreadable, by name."""
    columns = fields.all if outputs else fields.inputs
    several = sum(isinstance(field, TextField) for field in columns.values()) > 1
    watchers = {}
    for name, field in columns.items():
        copied = fields.copied_words if name == OUTPUT and fields.copying is not None else None
        watcher = field.watcher(name, named=several, copied=copied)
        if watcher is not None:
            watchers[name] = watcher
    return watchers


def warn(messages: Iterable[str]) -> None:
    """Issue warnings at the line of the user's own code that led here, whatever the depth of the stack."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in OWN_PACKAGES:
        depth, frame = depth + 1, frame.f_back
    for message in messages:
        warnings.warn(message, Notice, stacklevel=depth)


def conditional_perplexity(bundles: Sequence[Bundle]) -> list[str]:
    """A message if the models' probabilities are conditioned on more than the input (the choices of hard attention)."""
    conditions = dict.fromkeys(bundle.recipe.attention.conditions for bundle in bundles)
    return [
        f"perplexity is given {condition} (attention.choice hard), not summed over all others"
        for condition in conditions
        if condition
    ]


def unknown_labels(bundle: Bundle, rows: Iterable[Mapping[str, str]]) -> list[str]:
    """A message if rows have labels that the model does not know, and so can never give."""
    field = bundle.fields.output
    missing = Counter(row[OUTPUT] for row in rows if not field.knows(row[OUTPUT]))
    if not missing:
        return []
    named = ", ".join(f"'{label}'" for label, _ in missing.most_common(SHOWN))
    more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
    rows_of = counted(sum(missing.values()), "row")
    return [f"{rows_of} with a label that the model does not know, which count as wrong: {named}{more}"]


def unknown_symbols(bundle: Bundle, text: str, rows: Iterable[Mapping[str, str]], *, what: str) -> list[str]:
    """A message if an output that the caller gives for rows has symbols that the model cannot write there. what: prefix
    or target."""
    field = bundle.fields.text_output
    missing = [symbol for symbol in dict.fromkeys(field.symbols(text)) if symbol not in field.vocabulary]
    if missing and bundle.fields.copying is not None:
        copied = [set(bundle.fields.copied_words(row)) for row in rows]
        missing = [symbol for symbol in missing if not all(symbol in words for words in copied)]
    return [f"{what}: {name_unknown(missing)}"] if missing else []
