"""The front door: train, load, and the model a user holds in the hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, overload

import torch

from seq2see.data.columns import OUTPUT, Values, group_references
from seq2see.data.records import Data, is_frame, is_path
from seq2see.errors import UserError
from seq2see.evaluation import Report, perplexity
from seq2see.evaluation.faithfulness import Faithfulness
from seq2see.evaluation.report import TrainingOverlap
from seq2see.locking import lock_folder
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle, folders_of
from seq2see.pipeline.evaluator import evaluate_model
from seq2see.pipeline.explain import Explanation, explain
from seq2see.pipeline.faithful import faithful
from seq2see.pipeline.fields import Row
from seq2see.pipeline.five_answers import Answers, answers_of
from seq2see.pipeline.frozen_features import kept_for
from seq2see.pipeline.input_warnings import Notices, conditional, tell, unknown_in, unknown_labels
from seq2see.pipeline.inputs import row_of, rows_of_text
from seq2see.pipeline.oracles import Oracle, read_oracle, unreached
from seq2see.pipeline.predictor import Progress as OnTask
from seq2see.pipeline.predictor import (
    answer_options,
    check_ensemble,
    chunks,
    missing_input,
    options_of,
    places_named,
    predict,
)
from seq2see.pipeline.scoring import Given, Score, follow, given_ids, score_rows, score_stream
from seq2see.pipeline.trained_rows import seen_by
from seq2see.pipeline.vectors import nearest_others
from seq2see.pipeline.video_rows import backwards, both_ways
from seq2see.recipe import Recipe, left_out, load_recipe
from seq2see.recipe.overrides import limits_of
from seq2see.training.comparing import compare
from seq2see.training.dataset import filled, held_table, open_table
from seq2see.training.fine_tuning import fine_tuning_recipe
from seq2see.training.progress import Progress, progress_unless
from seq2see.training.reports import Listener
from seq2see.training.resuming import check_rows, check_sources, resumable, resumed_recipe, sources_of
from seq2see.training.run import train as run_training

__all__ = ["Model", "compare", "default_folder", "load", "train"]

Input = str | Mapping[str, str] | Sequence[str]


class Model:
    """A trained model, or an ensemble of several."""

    def __init__(self, bundles: Bundle | Sequence[Bundle]):
        self.bundles = [bundles] if isinstance(bundles, Bundle) else list(bundles)
        check_ensemble(self.bundles)

    @property
    def bundle(self) -> Bundle:
        return self.bundles[0]

    @property
    def recipe(self) -> Recipe:
        return self.bundle.recipe

    @overload
    def predict(self, inputs: list[Any], **options: Any) -> list[Prediction]: ...
    @overload
    def predict(
        self, inputs: str | Mapping[str, str] | tuple[str, ...] | None = None, **options: Any
    ) -> Prediction: ...

    def predict(
        self,
        inputs: Any = None,
        *,
        beam: int | None = None,
        n_best: int | None = None,
        sample: bool | None = None,
        prefix: Given | None = None,
        oracle: Mapping[int, Any] | None = None,
        replace_unknown: bool | None = None,
        first_row: int = 0,
        notices: Notices | None = None,
        maps: bool = False,
        **options: Any,
    ) -> Prediction | list[Prediction]:
        """What the model says of an input; a list in gives a list out, and so does a DataFrame.

        An input is a text (a vector: its numbers as text, or an array); several inputs are a dict by name or a tuple in
        the recipe's order (in a list, dicts may also be rows by column). `prefix` is what outputs begin with, a text or
        a list of symbols. `oracle` hands in the attention of some steps (from 0), for every hypothesis. Without n_best
        all of the beam's hypotheses are given, the best as the prediction itself, the others as its alternatives.
        Further options are those of SearchOptions.
        An empty input in a list gets a blank prediction, whose `reason` says why.
        A table may be predicted in parts: `first_row` is the number of a part's first row, so that sampling draws as
        for the whole, and `notices` gathers what is to be said of all inputs (without, each call warns of its own).
        With `maps`, looks also tell heads and layers apart (`Looks.heads`, `Looks.maps`).
        """
        many = isinstance(inputs, list) or is_frame(inputs)
        rows = self._list(inputs) if many else [self._one(inputs)]
        forced = None if oracle is None else read_oracle(oracle, self.recipe.looked_at)
        if replace_unknown and not self.recipe.looked_at:
            tell(["replace_unknown: without attention no place is looked at, so that nothing is put in"])
        if isinstance(prefix, str) and not self.recipe.output.one_step:
            tell(unknown_in(self.bundle, prefix, rows, what="prefix"))
        made = answer_options(
            self.recipe,
            beam=beam,
            n_best=n_best,
            sample=sample,
            prefix=None if prefix is None else [given_ids(self.bundle, row, prefix) for row in rows],
            oracle=forced,
            **options,
        )
        tell(self._noticed(rows, into=notices))
        found = predict(self.bundles, rows, made, replace_unknown=replace_unknown, first_row=first_row, maps=maps)
        if forced is not None:
            tell(unreached(forced, [one for one in found if not one.reason]))
        return found if many else found[0]

    def evaluate(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        by_length: int = 0,
        positions: bool = False,
        metrics: Sequence[str] | None = None,
        reverse: bool = False,
        progress: OnTask | None = None,
    ) -> Report:
        """Metrics on a table (or on rows by the recipe's names), the trivial models beside them.

        reverse: also with all videos backwards.
        progress: called now and then with what is being done, how many of it are done, of how many.
        """
        options = options_of(self.recipe, beam=beam, n_best=n_best)
        rows = self.rows_of(data, columns)
        tell(self._noticed([question.inputs for question in group_references(rows)]))
        tell(unknown_labels(self.bundles[0], rows))
        seen = self.seen(rows)
        turned = backwards(self.bundles[0], rows) if reverse else []
        measured = partial(evaluate_model, self.bundles, options=options, metrics=metrics, progress=progress)
        with kept_for(self.bundles, rows + turned, progress):
            report = measured(rows, bins=by_length, positions=positions).report
            if reverse:
                report = replace(report, reversed=measured(turned).report.metrics)
        if "perplexity" in report.metrics:
            tell(conditional(self.bundles))
        return replace(report, seen=seen)

    def score(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        progress: OnTask | None = None,
    ) -> Score:
        """The probability of given outputs; progress: as for `evaluate`."""
        self._spoken("score")
        rows = self.rows_of(data, columns)
        seen = self.seen(rows)
        if self.recipe.data.stream:
            lines = [row[OUTPUT] for row in rows]
            counter = None if progress is None else partial(progress, "symbols scored")
            total, count = score_stream(self.bundles, lines, on_progress=counter)
            return Score(len(rows), count, total, perplexity(total, count), [], seen=seen)
        tell(self._noticed(rows, outputs=True))
        counter = None if progress is None else partial(progress, "outputs scored")
        each = score_rows(self.bundles, rows, on_progress=counter)
        total = sum(one.log_probability for one in each)
        count = sum(len(one.log_probs) for one in each)
        given = self.recipe.attention.conditions
        return Score(len(rows), count, total, perplexity(total, count), each, given, seen)

    @torch.inference_mode()
    def encode(self, inputs: list[Any], *, notices: Notices | None = None) -> list[list[float]]:
        """The summaries of inputs, one vector each (several inputs joined), without numbers where the input is empty;
        notices: as for `predict`."""
        bundle = self._single("encode")
        if not self.recipe.inputs:
            raise UserError("a language model has no input to encode")
        rows = self._list(inputs)
        tell(self._noticed(rows, into=notices))
        vectors: list[list[float]] = [[] for _ in rows]
        full = [number for number, row in enumerate(rows) if not missing_input(self.recipe, row)]
        for places, batch in chunks(bundle.fields, [rows[number] for number in full]):
            memory = bundle.network.encode(batch.to(bundle.device).inputs, len(places))
            joined = torch.cat([memory.summaries[name] for name in self.recipe.inputs], dim=-1)
            for place, vector in zip(places, joined.tolist(), strict=True):
                vectors[full[place]] = vector
        return vectors

    def neighbours(self, inputs: list[Any], k: int) -> list[list[tuple[int, float]]]:
        """For each input the k nearest of the others by the cosine of their vectors, as (number, cosine); an empty
        input has none, and is none."""
        vectors = self.encode(inputs)
        full = [number for number, vector in enumerate(vectors) if vector]
        found: list[list[tuple[int, float]]] = [[] for _ in vectors]
        for number, others in zip(full, nearest_others([vectors[number] for number in full], k), strict=True):
            found[number] = [(full[other], cosine) for other, cosine in others]
        return found

    def look(
        self, given: Any = None, *, target: str | None = None, beam: int | None = None, max_length: int | None = None
    ) -> Prediction:
        """Where the model looks for its own output, or for a given one (`target`): see the prediction's `looks`.
        beam, max_length: as for `predict`."""
        if target is not None:
            self._spoken("target")
            return self._follow(self._one(given), target)
        said = {"beam": beam, "max_length": max_length}
        return self.predict(
            self.row(given), maps=True, **{name: value for name, value in said.items() if value is not None}
        )

    def explain(
        self,
        given: Any = None,
        *,
        step: int = 0,
        target: str | None = None,
        beam: int | None = None,
        oracle: Mapping[int, Any] | None = None,
    ) -> Explanation:
        """One decoding step (from 0) with its numbers, of the model's own output or of a given one; oracle: as for
        `predict`."""
        bundle = self._single("explain")
        self._spoken("explain")
        row = self._one(given)
        forced = None if oracle is None else read_oracle(oracle, self.recipe.looked_at)
        if target is not None:
            said = self._follow(row, target, oracle=forced)
        else:
            said = self.predict(row, replace_unknown=False, beam=beam, oracle=oracle)
        return explain(bundle, row, said, step, oracle=forced)

    def faithful(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        rows: int = 200,
        places: int = 0,
        progress: OnTask | None = None,
    ) -> Faithfulness:
        """How far attention agrees with occlusion and with gradients, on at most so many distinct inputs, at so many
        places of each (0: all)."""
        self._spoken("faithful")
        bundle, given = self._single("faithful"), self.rows_of(data, columns)
        tell(self._noticed(given, outputs=True))
        return faithful(bundle, given, most=rows, places=places, progress=progress)

    def describe(self) -> Answers:
        """The five answers: data, encoder, decoder, parameters, loss."""
        return answers_of(self._single("describe"))

    @torch.inference_mode()
    def places(self, given: Input) -> list[str]:
        """The places of an input that can be looked at, in order."""
        row = self.row(given)
        name, _, part = next(iter(self.recipe.looked_at or self.recipe.inputs)).partition(".")
        fields = self.bundle.fields
        named = fields.inputs[name].places(row[name], part)
        if named is not None:
            return named
        memory = self.bundle.network.encode(fields.batch([row]).to(self.bundle.device).inputs, 1)
        places = memory.places[f"{name}.{part}" if part else name]
        return places.tokens[0] if places.tokens else places_named(places.layout.to_dict(int(places.mask.sum())))

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, unless a training runs in it."""
        bundle = self._single("save")
        with lock_folder(Path(folder)):
            bundle.save(Path(folder))

    def _single(self, what: str) -> Bundle:
        """The one model, for what several cannot do as one: they have as many summaries, states and parameters."""
        if len(self.bundles) > 1:
            raise UserError(f"{what} takes one model, and this is an ensemble of {len(self.bundles)}")
        return self.bundle

    def _spoken(self, what: str) -> None:
        """Refuse what only symbols and labels have."""
        if self.recipe.output.numeric:
            raise UserError(
                f"{what}: the model gives {self.recipe.output.said}, which is near or far and has no probability; "
                "evaluate measures how near"
            )

    # ------------------------------------------------------------ from what users give to rows

    def row(self, given: Any) -> Row:
        """An input as a row by the recipe's names."""
        return row_of(given, self.bundle.fields)

    def _one(self, given: Any) -> Row:
        """The same of an input asked about alone, which has to say something: a list, like a table, may have gaps."""
        row = self.row(given)
        problem = missing_input(self.recipe, row)
        if problem or (row and not any(value.strip() for value in row.values())):
            raise UserError(problem or "the input is empty")
        return row

    def _list(self, inputs: Any) -> list[Row]:
        """Several inputs as rows by the recipe's names: as `row` takes them one by one, or the rows of a table."""
        names = list(self.recipe.inputs)
        dicts = isinstance(inputs, list) and inputs and all(isinstance(one, Mapping) for one in inputs)
        if not is_frame(inputs) and not (dicts and not set(names) <= set(inputs[0])):
            return [self.row(one) for one in inputs]
        fields = self.bundle.fields
        table, resolution = held_table(self.recipe, inputs, None, optional=[OUTPUT], fields=fields)
        rows = [Row({name: row[name] for name in names}) for row in resolution.rows(table)]
        tell([*([resolution.note] if resolution.note else []), *table.notes])
        return rows

    def rows_of(self, data: Data, columns: Sequence[str] | None = None) -> list[Mapping[str, str]]:
        """Rows with outputs, from a table (both ways, where the direction is the output), a list of dicts by column or
        by the recipe's names, or a DataFrame."""
        if isinstance(data, list) and data and all(isinstance(row, Values) for row in data):
            return list(data)
        if self.recipe.made and isinstance(data, list) and data and all(OUTPUT in row for row in data):
            return rows_of_text(data, self.bundle.fields)  # whoever gives the direction has turned them already
        fields = self.bundle.fields
        if is_path(data):
            table, resolution = open_table(self.recipe, data, columns, fields=fields)
        else:
            table, resolution = held_table(self.recipe, data, columns, fields=fields)
        rows = list(both_ways(self.recipe, resolution.rows(table, filled=filled(self.recipe))))
        tell([*([resolution.note] if resolution.note else []), *table.notes])
        return rows if is_path(data) else rows_of_text(rows, fields)

    def seen(self, rows: Sequence[Mapping[str, str]]) -> TrainingOverlap | None:
        """Which of these rows the models were trained on; if any were, it is said."""
        seen = seen_by([(bundle.recipe, bundle.trained) for bundle in self.bundles], rows)
        if seen is not None:
            tell(seen.lines("line" if self.recipe.data.stream else "row"))
        return seen

    def _follow(self, row: dict[str, str], target: str, *, oracle: Oracle | None = None) -> Prediction:
        tell(self._noticed([row]))
        if not self.recipe.output.one_step:
            tell(unknown_in(self.bundle, target, [row], what="target"))
        return follow(self.bundles, row, target, oracle=oracle)

    def _noticed(
        self, rows: Sequence[Mapping[str, str]], *, outputs: bool = False, into: Notices | None = None
    ) -> list[str]:
        """What is to be said of these rows; nothing where it is gathered for later."""
        notices = Notices(self.bundles, outputs=outputs) if into is None else into
        notices.read(rows)
        return notices.lines() if into is None else []


def train(
    recipe: str | Path | Mapping[str, Any] | Recipe | None,
    data: Data | None = None,
    *,
    dev: Data | None = None,
    columns: Sequence[str] | None = None,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    epochs: int | None = None,
    updates: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    start: str | Path | Model | None = None,
    listeners: Sequence[Listener] | None = None,
) -> Model:
    """Train a recipe on a table and return the model; its folder is `out` (default runs/TASK).

    data, dev: the path of a table, a list of rows ({column: value}) or a DataFrame; rows that are held in memory are
    written into the folder.
    start: a model to go on from (fine-tuning): its parts and vocabularies are kept, the recipe (None: the model's own)
    says the rest. resume: take up the run in `out`, whose recipe and data are remembered there and may be said again,
    but not otherwise; its limits, learning rate and the like may be changed. overwrite: a run that lies in `out`
    already may go; without, it is left alone and an error says so.
    """
    limits = limits_of(epochs=epochs, updates=updates, minutes=minutes)
    extra = [*overrides, *limits]
    if seed is not None:
        extra.append(f"training.seed={seed}")
    if device is not None:
        extra.append(f"training.device={device}")
    with progress_unless(listeners, Progress) as followers:
        begun = start.bundle if isinstance(start, Model) else Bundle.load(start) if start is not None else None
        wanted = begun.recipe if recipe is None and begun is not None else recipe
        if wanted is None and (out is None or not resume):
            raise UserError("no recipe: give the name of a shipped one, a YAML file or a dict")
        if resume:
            folder = Path(out) if out is not None else default_folder(load_recipe(wanted or {}))
            stored, sources = resumable(folder)
            given, rows = sources_of(stored, sources.data if data is None else data, dev, columns, folder=folder)
            check_rows(sources, rows)
            check_sources(sources, data=None if data is None else given.data, dev=given.dev, columns=columns)
            _say(followers, left_out(stored, extra))
            return Model(
                run_training(resumed_recipe(stored, extra), sources, folder=folder, listeners=followers, resume=True)
            )
        if data is None:
            raise UserError("no data: give a table with --data (data=...)")
        made = load_recipe(wanted or {}, overrides=extra)
        _say(followers, left_out(wanted or {}, extra))
        if begun is not None:
            made, notes = fine_tuning_recipe(begun.recipe, made, extra)
            _say(followers, notes)
        folder = Path(out) if out is not None else default_folder(made)
        sources, tables = sources_of(made, data, dev, columns, folder=folder)
        return Model(
            run_training(
                made, sources, folder=folder, listeners=followers, overwrite=overwrite, start=begun, tables=tables
            )
        )


def _say(listeners: Sequence[Listener], messages: Sequence[str]) -> None:
    for message in messages:
        for listener in listeners:
            listener.on_message(message)


def load(folder: str | Path, *, device: str = "cpu") -> Model:
    """The model in a folder; several folders joined by + are an ensemble."""
    return Model([Bundle.load(part, device=device) for part in folders_of(folder)])


def default_folder(recipe: Recipe) -> Path:
    return Path("runs") / recipe.task
