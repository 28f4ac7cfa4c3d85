"""Pseudo-labels: outputs that models predict for rows that have none, for self-training and distillation.

Dev rows are always real ones: they are set aside from the labelled rows before anything is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from seq2see.data.columns import ALIGNMENT, OUTPUT, Resolution
from seq2see.data.records import Data
from seq2see.data.split import row_hash
from seq2see.data.tables import Table
from seq2see.data.vocabulary import EOS, SPECIALS
from seq2see.errors import UserError, counted
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import options_of, predict
from seq2see.recipe import Recipe
from seq2see.training.dataset import filled, held_table, open_table, split_rows, with_columns

BEAM = 5
"""Beam of the search for pseudo-labels, where the recipe's own is smaller."""
AT_ONCE = 1000
"""Rows whose predictions are in memory at the same time."""

Row = Mapping[str, str]


@dataclass
class LabelledRows:
    """The rows of a labelled table by the recipe's names.

    recipe: with the columns of the table; train, dev: rows with outputs; notes: messages for the user.
    """

    recipe: Recipe
    train: list[Row]
    dev: list[Row]
    notes: list[str] = field(default_factory=list)

    def records(self, rows: Iterable[Row]) -> list[dict[str, str]]:
        """Rows as those of a table with the recipe's columns."""
        columns = {name: settings.column or name for name, settings in self.recipe.inputs.items()}
        columns[OUTPUT] = self.recipe.output.column or OUTPUT
        links = self.recipe.loss.alignment.column
        if links is not None:
            columns[ALIGNMENT] = links
        return [{column: row.get(name, "") for name, column in columns.items()} for row in rows]

    def unseen(self, rows: Iterable[Row]) -> list[Row]:
        """Those of the rows, each once, whose inputs are not among the labelled ones."""
        names = list(self.recipe.inputs)
        seen = {tuple(row[name] for name in names) for row in (*self.train, *self.dev)}
        kept: list[Row] = []
        for row in rows:
            inputs = tuple(row[name] for name in names)
            if inputs not in seen:
                seen.add(inputs)
                kept.append(row)
        return kept


def check_pseudo_labels(recipe: Recipe, option: str) -> None:
    """Refuse recipes whose rows a model cannot label for another; option: the one that asks for it."""
    written = recipe.output.column or OUTPUT
    shared = [name for name, column in recipe.inputs.items() if (column.column or name) == written]
    if not recipe.inputs:
        reason = "a language model has no inputs to be labelled"
    elif recipe.output.numeric:
        reason = f"{recipe.output.noun} has no probability by which it could be trusted"
    elif recipe.generated_labels:
        reason = f"labels are made of the inputs themselves (output.made {recipe.generated_labels}): none is missing"
    elif shared:
        reason = f"the output is the column of input '{shared[0]}': none is missing"
    else:
        return
    raise UserError(f"{option}: {reason}")


def read_labelled(recipe: Recipe, data: Data, dev: Data | None, columns: Sequence[str] | None) -> LabelledRows:
    """The rows of --data and --dev; without --dev, rows are set aside by the rule of every run."""
    table, resolution = _open(recipe, data, columns)
    recipe = with_columns(recipe, table, resolution)
    rows: list[Row] = list(resolution.rows(table, filled=filled(recipe)))
    notes = [*([resolution.note] if resolution.note else []), *table.notes]
    if dev is not None:
        others, named = _open(recipe, dev, columns)
        return LabelledRows(recipe, rows, list(named.rows(others, filled=filled(recipe))), [*notes, *others.notes])
    split = split_rows(recipe, rows)
    return LabelledRows(recipe, list(split.train(rows)), list(split.held), [*notes, split.note])


def read_unlabelled(recipe: Recipe, data: Data) -> tuple[list[Row], list[str]]:
    """(the inputs of a table's rows, notes); outputs that it may have are not read."""
    table, resolution = _open(recipe, data, None, optional=[OUTPUT])
    names = list(recipe.inputs)
    rows = [{name: row[name] for name in names} for row in resolution.rows(table, filled=recipe.needed)]
    return list(rows), [*([resolution.note] if resolution.note else []), *table.notes]


def _open(
    recipe: Recipe, data: Data, columns: Sequence[str] | None, optional: Sequence[str] = ()
) -> tuple[Table, Resolution]:
    if isinstance(data, str | Path):
        return open_table(recipe, data, columns, optional=optional)
    return held_table(recipe, data, columns, optional=optional)


# ---------------------------------------------------------------- pseudo-labels


class PseudoLabel(NamedTuple):
    """What a model, or an ensemble, predicts for a row.

    text: the output or the label, empty where the search found no end; confidence: its probability, of a text the
    geometric mean over its symbols, `<eos>` included.
    """

    text: str
    confidence: float


def pseudo_labels(bundles: Sequence[Bundle], rows: Sequence[Row], *, beam: int | None = None) -> Iterator[PseudoLabel]:
    """The pseudo-labels of rows in their order, without `<unk>`. beam: default the recipe's, but at least BEAM."""
    recipe = bundles[0].recipe
    if recipe.output.one_step:
        options = options_of(recipe)
    else:
        width = max(recipe.search.beam, BEAM) if beam is None else beam
        options = options_of(recipe, beam=width, n_best=1, avoid_unknown=True)
    for start in range(0, len(rows), AT_ONCE):
        for found in predict(bundles, rows[start : start + AT_ONCE], options):
            ended = recipe.output.one_step or (found.tokens and found.tokens[-1].text == SPECIALS[EOS])
            confidence = math.exp(found.log_probability / max(len(found.tokens), 1))
            yield PseudoLabel(str(found.answer) if ended else "", confidence)


def unseen_rows(labelled: LabelledRows, unlabelled: Data) -> tuple[list[Row], list[Row], list[str]]:
    """(unlabelled rows, those whose inputs are not among the labelled ones, notes); a UserError if there are none."""
    everything, notes = read_unlabelled(labelled.recipe, unlabelled)
    unseen = labelled.unseen(everything)
    if not unseen:
        raise UserError(f"--unlabelled: all {counted(len(everything), 'row')} have inputs of labelled rows")
    return everything, unseen, notes


def pseudo_labelled_rows(
    labelled: LabelledRows,
    unlabelled: Data | None,
    bundles: Sequence[Bundle],
    *,
    confidence: float = 0.0,
    real_share: float = 1.0,
    beam: int | None = None,
) -> tuple[list[Row], list[str]]:
    """(training rows with real outputs and with pseudo-labels, notes for the user).

    confidence: pseudo-labels below it are left out; real_share: of the labelled rows that keep their outputs, while the
    others get pseudo-labels, whatever their confidence.
    """
    names = [*labelled.recipe.inputs, OUTPUT]
    real = [row for row in labelled.train if _drawn(row, names) < real_share]
    replaced = [row for row in labelled.train if _drawn(row, names) >= real_share]
    notes = []
    rows: list[Row] = list(real)
    if replaced:
        found = zip(replaced, pseudo_labels(bundles, replaced, beam=beam), strict=True)
        rows += [{**row, OUTPUT: label.text} for row, label in found if label.text.strip()]
        total = counted(len(labelled.train), "labelled row")
        notes.append(f"{len(real):,} of {total} keep their outputs, the others get pseudo-labels")
    if unlabelled is None:
        return rows, notes
    everything, asked, read = unseen_rows(labelled, unlabelled)
    highest, kept = 0.0, 0
    for row, label in zip(asked, pseudo_labels(bundles, asked, beam=beam), strict=True):
        if label.text.strip():
            highest = max(highest, label.confidence)
            if label.confidence >= confidence:
                kept += 1
                rows.append({**row, OUTPUT: label.text})
    if not kept:
        asked_for = counted(len(asked), "unlabelled row")
        if not highest:
            raise UserError(f"--unlabelled: no pseudo-label of {asked_for} ends within search.max_length")
        raise UserError(
            f"--confidence {confidence:g}: no pseudo-label of {asked_for} reaches it, the highest has {highest:.3f}; "
            "the teacher is kept"
        )
    known = f" ({len(everything) - len(asked):,} more are labelled, or repeated)" if asked != everything else ""
    least = f" with a confidence of at least {confidence:g}" if confidence else ""
    return rows, [
        *notes,
        *read,
        f"unlabelled: {kept:,} of {counted(len(asked), 'row')} get a pseudo-label{least}{known}",
    ]


def _drawn(row: Row, names: Sequence[str]) -> float:
    """A number from 0 to 1 that depends on the row alone."""
    return row_hash(row, names) / (1 << 64)
