"""The public Python API: `train`, `distill`, `load`, `pack`, `compare`, `crossval`, `tune` and `Model`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch

from seq2see.data.columns import OUTPUT, Values, group_references
from seq2see.data.records import Data, is_frame, is_series, values_of
from seq2see.errors import UserError, imported, speaks
from seq2see.evaluation import Report, perplexity
from seq2see.evaluation.faithfulness import Faithfulness
from seq2see.evaluation.report import TrainingOverlap
from seq2see.locking import lock_folder
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import WEIGHTS, Bundle, folders_of
from seq2see.pipeline.dataset import reverse_videos, with_directions
from seq2see.pipeline.evaluator import evaluate_model
from seq2see.pipeline.explain import Explanation, explain
from seq2see.pipeline.faithful import faithful
from seq2see.pipeline.fields import Row
from seq2see.pipeline.five_answers import Answers, answers_of
from seq2see.pipeline.frozen_features import use_features
from seq2see.pipeline.inputs import (
    Notices,
    Oracle,
    clean_rows,
    conditional_perplexity,
    input_row,
    is_numbers,
    nested_hint,
    read_oracle,
    unknown_labels,
    unknown_symbols,
    unreached_steps,
    warn,
)
from seq2see.pipeline.nearest_rows import NearestRow, build_index, index_of, nearest_rows, save_index
from seq2see.pipeline.packing import is_packed, model_folder, write_archive
from seq2see.pipeline.predictor import Progress as OnTask
from seq2see.pipeline.predictor import (
    answer_options,
    check_ensemble,
    chunks,
    missing_input,
    options_of,
    place_names,
    predict,
)
from seq2see.pipeline.scoring import Score, TextOrSymbols, avoided_ids, follow, prefix_ids, score_rows, score_stream
from seq2see.pipeline.trained_rows import training_overlap
from seq2see.pipeline.vectors import nearest_others
from seq2see.recipe import Recipe, left_out, load_recipe
from seq2see.recipe.load import limits_of
from seq2see.training.checkpoints import (
    check_free,
    check_rows,
    check_sources,
    resumable,
    resumed_recipe,
    sources_of,
    was_restarted,
)
from seq2see.training.comparing import compare, crossval
from seq2see.training.dataset import filled, held_table, open_table, wanted_columns
from seq2see.training.distillation import check_not_teacher, student_recipe
from seq2see.training.distributed import check_command
from seq2see.training.fine_tuning import fine_tuning_recipe, is_own_recipe
from seq2see.training.notebook_progress import progress_display
from seq2see.training.reports import EXAMPLES, METRICS, Listener, progress_unless
from seq2see.training.run import train as run_training
from seq2see.training.self_training import plan_stages, read_plan, train_in_stages, unfinished_stages
from seq2see.training.tuning import tune
from seq2see.training.unlabelled import check_pseudo_labels, pseudo_labelled_rows, read_labelled

if TYPE_CHECKING:
    from seq2see.attention_editor import AttentionEditor

__all__ = ["Model", "compare", "crossval", "default_folder", "distill", "load", "pack", "train", "tune"]

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

    def __repr__(self) -> str:
        """Model(transliteration: english -> hindi; 2,233,923 parameters)"""
        columns = [column for _, column in wanted_columns(self.recipe)]
        inputs, output = columns[: len(self.recipe.inputs)], columns[len(self.recipe.inputs) :]
        flow = " -> ".join(part for part in (" + ".join(inputs), *output) if part)
        count = sum(weight.numel() for bundle in self.bundles for weight in bundle.network.parameters())
        many = f"{len(self.bundles)} models, " if len(self.bundles) > 1 else ""
        return f"Model({self.recipe.task}: {flow}; {many}{count:,} parameters)"

    def _repr_html_(self) -> str:
        """In a notebook: what it is, and the five answers to open."""
        answers = "".join(
            f"<details><summary>The five answers</summary><pre>{escape(answers_of(bundle).text())}</pre></details>"
            for bundle in self.bundles
        )
        return f"<p><b>{escape(repr(self))}</b><br>{escape(self.recipe.description or '')}</p>{answers}"

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
        prefix: TextOrSymbols | None = None,
        avoid_prefixes: Sequence[TextOrSymbols] | None = None,
        oracle: Mapping[int, Any] | None = None,
        replace_unknown: bool | None = None,
        first_row: int = 0,
        drawn_as: Sequence[int] | None = None,
        notices: Notices | None = None,
        maps: bool = False,
        **options: Any,
    ) -> Prediction | list[Prediction]:
        """Predict the output of an input; a list, a column or a DataFrame gives a list of predictions.

        inputs: a text (numbers also as a list of them, an array or a tensor, each of which is one input); for a model
        with several inputs a dict by name, or a tuple in the recipe's order (in a list, dicts may also be rows by
        column, and tuples may have the output too). An empty input in a list gets a blank prediction, whose `reason`
        says why.
        prefix: how outputs begin, as a text or a list of symbols. avoid_prefixes: how no output begins, a list of such
        prefixes. oracle: attention weights for some steps (from 0), used for every hypothesis. n_best: without it, all
        hypotheses of the beam are returned, the best one as the prediction and the others as its alternatives. maps:
        keep heads and layers apart (`Looks.heads`, `Looks.maps`).
        first_row, drawn_as, notices: to predict a table in parts. `first_row` is the index of the part's first row, so
        that samples are those of the whole table, or `drawn_as` the index of each row; `notices` collects the warnings
        about all parts (without it, each call warns).
        options: further fields of `SearchOptions`, such as language_model (a path, or "none") and
        language_model_weight.
        """
        inputs = values_of(inputs) if is_series(inputs) else inputs
        many = (isinstance(inputs, list) and not is_numbers(inputs, self.bundle.fields)) or is_frame(inputs)
        rows = self._input_rows(inputs) if many else [self._nonempty_row(inputs)]
        forced = None if oracle is None else read_oracle(oracle, self.recipe.looked_at)
        if replace_unknown and not self.recipe.looked_at:
            warn(["replace_unknown: needs attention, which finds the word of the input to put in"])
        if not self.recipe.output.one_step:
            for what, texts in (("prefix", [prefix]), ("avoid_prefixes", avoid_prefixes or ())):
                for text in texts:
                    warn(unknown_symbols(self.bundle, text, rows, what=what) if isinstance(text, str) else [])
        search_options = answer_options(
            self.recipe,
            beam=beam,
            n_best=n_best,
            sample=sample,
            prefix=None if prefix is None else [prefix_ids(self.bundle, row, prefix) for row in rows],
            avoid_prefixes=None if avoid_prefixes is None else avoided_ids(self.bundle, rows, avoid_prefixes),
            oracle=forced,
            **options,
        )
        warn(self._warnings(rows, into=notices))
        predictions = predict(
            self.bundles,
            rows,
            search_options,
            replace_unknown=replace_unknown,
            first_row=first_row,
            drawn_as=drawn_as,
            maps=maps,
        )
        if forced is not None:
            warn(unreached_steps(forced, [prediction for prediction in predictions if not prediction.reason]))
        return predictions if many else predictions[0]

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
        **options: Any,
    ) -> Report:
        """Metrics on a table (or on rows by the recipe's names), with those of baselines.

        by_length: the number of bins of input lengths; positions: also recall by position; reverse: also with all
        videos backwards; progress: called now and then with the task, how many are done, and of how many; options:
        further fields of `SearchOptions`, as for `predict`.
        """
        searched = options_of(self.recipe, beam=beam, n_best=n_best, **options)
        rows = self.rows_of(data, columns)
        warn(self._warnings([question.inputs for question in group_references(rows)]))
        warn(unknown_labels(self.bundles[0], rows))
        seen = self.seen(rows)
        reversed_rows = reverse_videos(self.recipe, rows) if reverse else []
        measure = partial(evaluate_model, self.bundles, options=searched, metrics=metrics, progress=progress)
        with use_features(self.bundles, rows + reversed_rows, progress):
            report = measure(rows, bins=by_length, positions=positions).report
            if reverse:
                report = replace(report, reversed=measure(reversed_rows).report.metrics)
        if "perplexity" in report.metrics:
            warn(conditional_perplexity(self.bundles))
        return replace(report, seen=seen)

    def score(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        progress: OnTask | None = None,
    ) -> Score:
        """The probability of given outputs; progress: as for `evaluate`."""
        self._check_probabilities("score")
        rows = self.rows_of(data, columns)
        seen = self.seen(rows)
        if self.recipe.data.stream:
            lines = [row[OUTPUT] for row in rows]
            counter = None if progress is None else partial(progress, "symbols scored")
            total, count = score_stream(self.bundles, lines, on_progress=counter)
            return Score(len(rows), count, total, perplexity(total, count), [], seen=seen)
        warn(self._warnings(rows, outputs=True))
        counter = None if progress is None else partial(progress, "outputs scored")
        each = score_rows(self.bundles, rows, on_progress=counter)
        total = sum(row.log_probability for row in each)
        count = sum(len(row.log_probs) for row in each)
        conditions = self.recipe.attention.conditions
        return Score(len(rows), count, total, perplexity(total, count), each, conditions, seen)

    @torch.inference_mode()
    def encode(self, inputs: list[Any], *, notices: Notices | None = None) -> list[list[float]]:
        """The summary vector of each input (several inputs are concatenated), an empty list for an empty input.
        notices: as for `predict`."""
        bundle = self._single("encode")
        if not self.recipe.inputs:
            raise UserError("a language model has no input to encode")
        rows = self._input_rows(inputs)
        warn(self._warnings(rows, into=notices))
        vectors: list[list[float]] = [[] for _ in rows]
        full = [number for number, row in enumerate(rows) if not missing_input(self.recipe, row)]
        for places, batch in chunks(bundle.fields, [rows[number] for number in full]):
            memory = bundle.network.encode(batch.to(bundle.device).inputs, len(places))
            joined = torch.cat([memory.summaries[name] for name in self.recipe.inputs], dim=-1)
            for place, vector in zip(places, joined.tolist(), strict=True):
                vectors[full[place]] = vector
        return vectors

    def neighbours(self, inputs: list[Any], k: int) -> list[list[tuple[int, float]]]:
        """For each input its k nearest neighbours by the cosine of their vectors, as (index, cosine); empty inputs have
        none and are none."""
        vectors = self.encode(inputs)
        full = [number for number, vector in enumerate(vectors) if vector]
        neighbours: list[list[tuple[int, float]]] = [[] for _ in vectors]
        for number, others in zip(full, nearest_others([vectors[number] for number in full], k), strict=True):
            neighbours[number] = [(full[other], cosine) for other, cosine in others]
        return neighbours

    def index_rows(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        rows: int | None = None,
        progress: OnTask | None = None,
    ) -> Path | None:
        """Make the index that `nearest_rows` searches, of the training table, and keep it in the folder that the model
        was loaded from: its path, None without a folder. Rows that the model was not trained on are left out; rows: of
        more, a sample at even distances is indexed (default: 50,000); progress: as for `evaluate`."""
        bundle = self._single("index_rows")
        counter = None if progress is None else partial(progress, "rows indexed")
        return save_index(bundle, build_index(bundle, self.rows_of(data, columns), most=rows, on_progress=counter))

    def nearest_rows(
        self,
        inputs: Any = None,
        *,
        step: int | None = None,
        target: TextOrSymbols | None = None,
        k: int = 5,
        beam: int | None = None,
    ) -> list[NearestRow]:
        """The k training rows nearest to an input by the cosine of their vectors (`encode`), or with `step` (from 0) to
        that step of the output, by the state of the decoder: where it learned this. target: follow this output instead
        of the model's own; beam: as for `predict`. Needs an index (`index_rows`)."""
        bundle, row = self._single("nearest_rows"), self._nonempty_row(inputs)
        if step is None and target is not None:
            raise UserError("target: needs a step, whose state is compared")
        if step is not None and target is None and not self.recipe.output.one_step:
            index_of(bundle)  # before a search, which would be in vain
            prediction = self.predict(row, replace_unknown=False, beam=beam)
            target = [token.text for token in prediction.tokens]
        return nearest_rows(bundle, row, step=step, target=target, k=k)

    def look(
        self, inputs: Any = None, *, target: str | None = None, beam: int | None = None, max_length: int | None = None
    ) -> Prediction:
        """A prediction with the attention of all heads and layers in its `looks`; target: follow this output instead of
        the model's own; beam, max_length: as for `predict`."""
        if target is not None:
            self._check_probabilities("target")
            return self._follow(self._nonempty_row(inputs), target)
        options = {"beam": beam, "max_length": max_length}
        return self.predict(
            self.row(inputs), maps=True, **{name: value for name, value in options.items() if value is not None}
        )

    def explain(
        self,
        inputs: Any = None,
        *,
        step: int = 0,
        target: str | None = None,
        beam: int | None = None,
        oracle: Mapping[int, Any] | None = None,
    ) -> Explanation:
        """One decoding step (from 0) with all its numbers. target: follow this output instead of the model's own;
        oracle: as for `predict`."""
        bundle = self._single("explain")
        self._check_probabilities("explain")
        row = self._nonempty_row(inputs)
        forced = None if oracle is None else read_oracle(oracle, self.recipe.looked_at)
        if target is not None:
            prediction = self._follow(row, target, oracle=forced)
        else:
            prediction = self.predict(row, replace_unknown=False, beam=beam, oracle=oracle)
        return explain(bundle, row, prediction, step, oracle=forced)

    def faithful(
        self,
        data: Data,
        *,
        columns: Sequence[str] | None = None,
        rows: int = 200,
        places: int = 0,
        progress: OnTask | None = None,
    ) -> Faithfulness:
        """The agreement of attention with occlusion and with gradients. rows: the largest number of distinct inputs;
        places: of places of each (0: all)."""
        self._check_probabilities("faithful")
        bundle, measured = self._single("faithful"), self.rows_of(data, columns)
        warn(self._warnings(measured, outputs=True))
        return faithful(bundle, measured, most=rows, places=places, progress=progress)

    def edit_attention(self, inputs: Any = None, *, beam: int | None = None) -> AttentionEditor:
        """A notebook widget that shows the output and its attention; weights are dragged or clicked, and the output is
        predicted again with them, beside the original (extra `notebook`). beam: as for `predict`."""
        imported("anywidget", extra="notebook")
        from seq2see.attention_editor import AttentionEditor  # late: it needs the extra

        self._check_probabilities("edit_attention")
        row = self._nonempty_row(inputs)
        return AttentionEditor(lambda oracle: self.predict(row, beam=beam, oracle=oracle))

    def describe(self) -> Answers:
        """The five answers: data, encoder, decoder, parameters, loss."""
        return answers_of(self._single("describe"))

    @torch.inference_mode()
    def places(self, inputs: Input) -> list[str]:
        """The places of an input that can be looked at, in order."""
        row = self.row(inputs)
        name, _, part = next(iter(self.recipe.looked_at or self.recipe.inputs)).partition(".")
        fields = self.bundle.fields
        named = fields.inputs[name].places(row[name], part)
        if named is not None:
            return named
        memory = self.bundle.network.encode(fields.batch([row]).to(self.bundle.device).inputs, 1)
        return place_names(memory.places[f"{name}.{part}" if part else name])

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model's folder; refused while a training runs in it, and where it holds another model unless
        `overwrite`."""
        bundle, folder = self._single("save"), Path(folder)
        own = bundle.folder is not None and folder.exists() and folder.samefile(bundle.folder)
        if (folder / WEIGHTS).exists() and not (own or overwrite):
            raise UserError(f"{folder}: already holds a model; give another folder, or overwrite=True to replace it")
        with lock_folder(folder):
            bundle.save(folder)

    def _single(self, what: str) -> Bundle:
        """The only model; an ensemble is refused, as each of its models has its own states and parameters."""
        if len(self.bundles) > 1:
            raise UserError(f"{what} takes one model, and this is an ensemble of {len(self.bundles)}")
        return self.bundle

    def _check_probabilities(self, what: str) -> None:
        """Refuse a model whose output has no probability."""
        if self.recipe.output.numeric:
            raise UserError(
                f"{what}: the model gives {self.recipe.output.noun}, which has no probability; evaluate measures "
                "its error"
            )

    # ------------------------------------------------------------ inputs and tables as rows

    def row(self, inputs: Any) -> Row:
        """An input as a row by the recipe's names."""
        return input_row(inputs, self.bundle.fields)

    def _nonempty_row(self, inputs: Any) -> Row:
        """The same for a single input, which must not be empty; a list, like a table, may have gaps."""
        row = self.row(inputs)
        problem = missing_input(self.recipe, row)
        if problem or (row and not any(value.strip() for value in row.values())):
            raise UserError(problem or "the input is empty")
        return row

    def _input_rows(self, inputs: Any) -> list[Row]:
        """Several inputs as rows by the recipe's names; each is an input as `row` takes it, or the row of a table, with
        or without its output."""
        names = list(self.recipe.inputs)
        inputs = values_of(inputs) if is_series(inputs) else inputs
        dicts = isinstance(inputs, list) and inputs and all(isinstance(item, Mapping) for item in inputs)
        if not is_frame(inputs) and not (dicts and not set(names) <= set(inputs[0])):
            try:
                return [self.row(item) for item in inputs]
            except UserError as error:
                hint = nested_hint(inputs, self.bundle.fields)
                if hint or not all(isinstance(item, list | tuple) and len(item) == len(names) + 1 for item in inputs):
                    raise UserError(f"{error}{hint}") from None
        fields = self.bundle.fields
        table, resolution = held_table(self.recipe, inputs, None, optional=[OUTPUT], fields=fields)
        rows = [Row({name: row[name] for name in names}) for row in resolution.rows(table)]
        warn([*([resolution.note] if resolution.note else []), *table.notes])
        return rows

    def rows_of(self, data: Data, columns: Sequence[str] | None = None) -> list[Mapping[str, str]]:
        """Rows with outputs, from a table, a list of dicts by column or by the recipe's names, or a DataFrame. Where
        the output is the direction of a video, each row of a table comes in both directions."""
        if isinstance(data, list) and data and all(isinstance(row, Values) for row in data):
            return list(data)
        if self.recipe.generated_labels and isinstance(data, list) and data and all(OUTPUT in row for row in data):
            return clean_rows(data, self.bundle.fields)  # they have their directions already
        fields = self.bundle.fields
        if isinstance(data, str | Path):
            table, resolution = open_table(self.recipe, data, columns, fields=fields)
        else:
            table, resolution = held_table(self.recipe, data, columns, fields=fields)
        rows = list(with_directions(self.recipe, resolution.rows(table, filled=filled(self.recipe))))
        warn([*([resolution.note] if resolution.note else []), *table.notes])
        return rows if isinstance(data, str | Path) else clean_rows(rows, fields)

    def seen(self, rows: Sequence[Mapping[str, str]]) -> TrainingOverlap | None:
        """Which of these rows the models were trained on; warns if there are any."""
        seen = training_overlap([(bundle.recipe, bundle.trained) for bundle in self.bundles], rows)
        if seen is not None:
            warn(seen.lines("line" if self.recipe.data.stream else "row"))
        return seen

    def _follow(self, row: dict[str, str], target: str, *, oracle: Oracle | None = None) -> Prediction:
        warn(self._warnings([row]))
        if not self.recipe.output.one_step:
            warn(unknown_symbols(self.bundle, target, [row], what="target"))
        return follow(self.bundles, row, target, oracle=oracle)

    def _warnings(
        self, rows: Sequence[Mapping[str, str]], *, outputs: bool = False, into: Notices | None = None
    ) -> list[str]:
        """Warnings about these rows; none if they are collected in `into` for later."""
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
    unlabelled: Data | None = None,
    confidence: float | None = None,
    pretrain: float = 0.0,
    listeners: Sequence[Listener] | None = None,
) -> Model:
    """Train a recipe on a table and return the model; its folder is `out` (default runs/TASK).

    data, dev: the path of a table, a list of rows ({column: value}, or values in the recipe's order), a DataFrame or a
    Hugging Face dataset; rows in memory are written into the folder.
    start: a model to fine-tune. Its parts and vocabularies are kept; the other settings are those of the recipe (None:
    the model's own, without its distillation).
    resume: continue the run in `out`. Its recipe and tables are stored there; other tables are refused, while limits,
    learning rate and the like may change.
    overwrite: replace a run that is in `out`; without it, such a folder is refused.
    unlabelled: a table of inputs for self-training: a first model, in the folder `teacher` of the run's, predicts
    pseudo-labels for them, and those with at least `confidence` (default 0.9; of a text the geometric mean of its
    symbols' probabilities) are learned beside the labelled rows. pretrain: a share of the run for denoising
    pre-training on the texts of both tables. The limits (`minutes` and the like) are those of each stage.

    Processes that torchrun has started with the same arguments train one model together, and go on from the last
    checkpoint where torchrun restarts them.
    """
    extra = _changes(overrides, epochs=epochs, updates=updates, minutes=minutes, seed=seed, device=device)
    with progress_unless(listeners if speaks() else [], progress_display) as followers:
        initial = start.bundle if isinstance(start, Model) else Bundle.load(start) if start is not None else None
        source = initial.recipe if recipe is None and initial is not None else recipe
        if source is None and (out is None or not resume):
            raise UserError("no recipe: give the name of a shipped one, a YAML file or a dict")
        staged = unlabelled is not None or confidence is not None or bool(pretrain)
        if resume:
            if staged:
                raise UserError(
                    "unlabelled, confidence, pretrain: a resumed run continues as it was started; omit them"
                )
            folder = Path(out) if out is not None else default_folder(load_recipe(source or {}))
            return _resume(folder, data, dev, columns, changes=extra, listeners=followers)
        if data is None:
            raise UserError("no data: give a table with --data (data=...)")
        resolved = load_recipe(source or {}, overrides=extra)
        _say(followers, left_out(source or {}, extra))
        if initial is not None:
            resolved, notes = fine_tuning_recipe(initial.recipe, resolved, extra, own=is_own_recipe(recipe, start))
            _say(followers, notes)
        folder = Path(out) if out is not None else default_folder(resolved)
        if was_restarted(folder):
            return _resume(folder, data, dev, columns, changes=extra, listeners=followers)
        if staged:
            plan = plan_stages(
                resolved,
                data,
                dev,
                columns,
                folder=folder,
                unlabelled=unlabelled,
                confidence=confidence,
                pretrain=pretrain,
                start=start,
                overwrite=overwrite,
            )
            return Model(train_in_stages(plan, folder=folder, listeners=followers))
        sources, tables = sources_of(resolved, data, dev, columns, folder=folder)
        return Model(
            run_training(
                resolved,
                sources,
                folder=folder,
                listeners=followers,
                overwrite=overwrite,
                start=initial,
                tables=tables,
            )
        )


def distill(
    teachers: str | Path | Sequence[str | Path],
    data: Data,
    *,
    out: str | Path,
    recipe: str | Path | Mapping[str, Any] | Recipe | None = None,
    unlabelled: Data | None = None,
    real_share: float = 1.0,
    beam: int | None = None,
    dev: Data | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    epochs: int | None = None,
    updates: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    device: str | None = None,
    overwrite: bool = False,
    listeners: Sequence[Listener] | None = None,
) -> Model:
    """Train one model, the student, on what an ensemble predicts, and return it; its folder is `out`.

    teachers: folders of models, joined by + or in a list. At every symbol the student learns their mean probability
    beside the true one (`loss.distillation.weight`, `.temperature`). recipe: of the student (default: that of the first
    teacher); values are read and written as by the teachers.
    unlabelled: a table of inputs that get pseudo-labels of the teachers, for training only; real_share: of the labelled
    rows that keep their outputs, the others get pseudo-labels; beam: of the search for pseudo-labels (default:
    the recipe's, but at least 5).
    The run is resumed like any other: `train(None, out=out, resume=True)`.
    """
    check_command("distill")
    named = teachers if isinstance(teachers, Sequence) and not isinstance(teachers, str) else [teachers]
    folders = [str(Path(folder).resolve()) for each in named for folder in folders_of(each)]
    if not 0 <= real_share <= 1:
        raise UserError(f"--real-share {real_share:g}: a share of the rows; allowed: 0 to 1")
    extra = _changes(overrides, epochs=epochs, updates=updates, minutes=minutes, seed=seed, device=device)
    extra.insert(0, f"loss.distillation.teachers={json.dumps(folders)}")
    with progress_unless(listeners if speaks() else [], progress_display) as followers:
        bundles = [Bundle.load(folder) for folder in folders]
        check_ensemble(bundles)
        source = bundles[0].recipe if recipe is None else recipe
        student, notes = student_recipe(bundles[0].recipe, load_recipe(source, overrides=extra), folders)
        _say(followers, [*left_out(source, extra), *notes])
        folder, given = Path(out), columns
        check_not_teacher(student, folder)
        if not overwrite:
            check_free(folder)
        if unlabelled is not None or real_share < 1:
            check_pseudo_labels(student, "--unlabelled" if unlabelled is not None else "--real-share")
            labelled = read_labelled(student, data, dev, columns)
            rows, notes = pseudo_labelled_rows(labelled, unlabelled, bundles, real_share=real_share, beam=beam)
            _say(followers, [*labelled.notes, *notes])
            student, given = labelled.recipe, None
            data, dev = labelled.records(rows), labelled.records(labelled.dev)
        elif beam is not None:
            raise UserError(f"--beam {beam}: there are no pseudo-labels without --unlabelled or --real-share")
        del bundles  # the run loads its own
        sources, tables = sources_of(student, data, dev, given, folder=folder)
        return Model(
            run_training(student, sources, folder=folder, listeners=followers, overwrite=overwrite, tables=tables)
        )


def _changes(
    overrides: Sequence[str],
    *,
    epochs: int | None,
    updates: int | None,
    minutes: float | None,
    seed: int | None,
    device: str | None,
) -> list[str]:
    """Overrides of a recipe, with those that a call gives as arguments."""
    changes = [*overrides, *limits_of(epochs=epochs, updates=updates, minutes=minutes)]
    if seed is not None:
        changes.append(f"training.seed={seed}")
    if device is not None:
        changes.append(f"training.device={device}")
    return changes


def _resume(
    folder: Path,
    data: Data | None,
    dev: Data | None,
    columns: Sequence[str] | None,
    *,
    changes: Sequence[str],
    listeners: Sequence[Listener],
) -> Model:
    """Go on with the run in a folder, or with its stages."""
    if unfinished_stages(folder):
        if data is not None or dev is not None or columns is not None:
            raise UserError("data, dev, columns: a run in stages continues with its own tables; omit them")
        return Model(train_in_stages(read_plan(folder), folder=folder, listeners=listeners, changes=changes))
    stored, sources = resumable(folder)
    new, tables = sources_of(stored, sources.data if data is None else data, dev, columns, folder=folder)
    check_rows(sources, tables)
    check_sources(sources, data=None if data is None else new.data, dev=new.dev, columns=columns)
    _say(listeners, left_out(stored, changes))
    recipe = resumed_recipe(stored, changes)
    return Model(run_training(recipe, sources, folder=folder, listeners=listeners, resume=True))


def _say(listeners: Sequence[Listener], messages: Sequence[str]) -> None:
    for message in messages:
        for listener in listeners:
            listener.on_message(message)


def load(folder: str | Path, *, device: str = "cpu", on_error: str | None = None) -> Model:
    """Load the model in a folder, or a packed model; several joined by + are an ensemble. on_error: what to do with bad
    rows of tables, "stop" or "skip" (default: as the recipe says)."""
    if on_error not in (None, "stop", "skip"):
        raise UserError(f"on_error: expected 'stop' or 'skip', got {on_error!r}")
    bundles = [Bundle.load(part, device=device) for part in folders_of(folder)]
    for bundle in bundles if on_error is not None else ():
        data = bundle.recipe.data.model_copy(update={"on_error": on_error})
        bundle.recipe = bundle.recipe.model_copy(update={"data": data})
    return Model(bundles)


def pack(model: str | Path, out: str | Path) -> Path:
    """Write a model as one file without checkpoints, which `load` and all commands take in place of its folder; returns
    the path of the file.

    Metrics of the training come along, and examples of texts; not the paths of tables, pictures and sounds.
    """
    out = Path(out)
    if out.is_dir():
        raise UserError(f"{out}: a folder; give the name of a file")
    if out.exists() and not is_packed(out):
        raise UserError(f"{out}: already exists, and is not a packed model; give the name of a new file")
    write_archive(out, portable_files(model))
    return out


def portable_files(model: str | Path) -> list[Path]:
    """The files of a model that go with it to another machine, once it was loaded and all its checks have passed."""
    if len(folders_of(model)) > 1:
        raise UserError(f"{model}: an ensemble; give one model at a time")
    folder, bundle = model_folder(model), Bundle.load(model)
    further = [METRICS]
    if not any(settings.file for settings in bundle.recipe.inputs.values()):
        further.append(EXAMPLES)  # of files they would have the paths on this machine
    return [*bundle.files(folder), *(folder / name for name in further if (folder / name).is_file())]


def default_folder(recipe: Recipe) -> Path:
    """The folder of a run that names none."""
    return Path("runs") / recipe.task
