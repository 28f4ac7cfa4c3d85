"""The front door: train, load, and the model a user holds in the hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import torch

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.evaluation import Report, perplexity
from seq2see.looks import Prediction
from seq2see.pipeline.answers import Answers, answers_of
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.chunks import chunks
from seq2see.pipeline.evaluator import judge
from seq2see.pipeline.explain import Explanation, explain
from seq2see.pipeline.neighbours import nearest_others
from seq2see.pipeline.predictor import check_ensemble, options_of, predict
from seq2see.pipeline.scoring import Scored, score_rows, score_stream
from seq2see.pipeline.targets import follow
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.corpus import filled, open_table
from seq2see.training.progress import Progress
from seq2see.training.reports import Listener
from seq2see.training.run import Sources, check_free, resumable
from seq2see.training.run import train as run_training
from seq2see.training.starting import fine_tuned

Input = str | Mapping[str, str] | Sequence[str]


@dataclass
class Score:
    """Log-probability and perplexity of given outputs: in all, and row by row."""

    rows: int
    tokens: int
    log_probability: float
    perplexity: float
    each: list[Scored]

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            "perplexity": self.perplexity,
        }


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
        prefix: str | None = None,
        oracle: Mapping[int, Any] | None = None,
        replace_unknown: bool | None = None,
        **options: Any,
    ) -> Prediction | list[Prediction]:
        """What the model says of an input; a list in gives a list out.

        An input is a text; several inputs are a dict by name or a tuple in the recipe's order. `oracle` hands in the
        attention of some steps (from 0), for every hypothesis. Without n_best all of the beam's hypotheses are given,
        the best as the prediction itself, the others as its alternatives. Further options are those of SearchOptions.
        """
        many = isinstance(inputs, list)
        if n_best is None and not sample and self.recipe.output.kind == "text" and self.recipe.inputs:
            n_best = beam if beam is not None else self.recipe.search.beam
        rows = [self.row(one) for one in (inputs if many else [inputs])]
        made = options_of(
            self.recipe,
            beam=beam,
            n_best=n_best,
            sample=sample,
            prefix=self._prefix(prefix),
            oracle=None if oracle is None else self._oracle(oracle),
            **options,
        )
        found = predict(self.bundles, rows, made, replace_unknown=replace_unknown)
        return found if many else found[0]

    def evaluate(
        self,
        data: str | Path | Sequence[Mapping[str, str]],
        *,
        columns: Sequence[str] | None = None,
        beam: int | None = None,
        n_best: int | None = None,
        by_length: int = 0,
        positions: bool = False,
        metrics: Sequence[str] | None = None,
    ) -> Report:
        """Metrics on a table (or on rows by the recipe's names), the trivial models beside them."""
        options = options_of(self.recipe, beam=beam, n_best=n_best)
        rows = self.rows_of(data, columns)
        return judge(self.bundles, rows, options=options, bins=by_length, positions=positions, metrics=metrics).report

    def score(self, data: str | Path | Sequence[Mapping[str, str]], *, columns: Sequence[str] | None = None) -> Score:
        """The probability of given outputs."""
        rows = self.rows_of(data, columns)
        if self.recipe.data.stream:
            total, count = score_stream(self.bundles, [row[OUTPUT] for row in rows])
            return Score(len(rows), count, total, perplexity(total, count), [])
        each = score_rows(self.bundles, rows)
        total = sum(one.log_probability for one in each)
        count = sum(len(one.log_probs) for one in each)
        return Score(len(rows), count, total, perplexity(total, count), each)

    @torch.inference_mode()
    def encode(self, inputs: list[Any]) -> list[list[float]]:
        """The summaries of inputs, one vector each (several inputs joined)."""
        bundle = self._single("encode")
        if not self.recipe.inputs:
            raise UserError("a language model has no input to encode")
        rows = [self.row(one) for one in inputs]
        vectors: list[list[float]] = [[] for _ in rows]
        for numbers, batch in chunks(bundle.fields, rows):
            memory = bundle.network.remember(batch.to(bundle.device).inputs, len(numbers))
            joined = torch.cat([memory.summaries[name] for name in self.recipe.inputs], dim=-1)
            for number, vector in zip(numbers, joined.tolist(), strict=True):
                vectors[number] = vector
        return vectors

    def neighbours(self, inputs: list[Any], k: int) -> list[list[tuple[int, float]]]:
        """For each input the k nearest of the others by the cosine of their vectors, as (number, cosine)."""
        return nearest_others(self.encode(inputs), k)

    def look(self, given: Any = None, *, target: str | None = None, beam: int | None = None) -> Prediction:
        """Where the model looks for its own output, or for a given one (`target`): see the prediction's `looks`."""
        if target is not None:
            return follow(self.bundles, self.row(given), target)
        return self.predict(self.row(given), **({} if beam is None else {"beam": beam}))

    def explain(
        self, given: Any = None, *, step: int = 0, target: str | None = None, beam: int | None = None
    ) -> Explanation:
        """One decoding step (from 0) with its numbers, of the model's own output or of a given one."""
        bundle = self._single("explain")
        options = {} if beam is None else {"beam": beam}
        row = self.row(given)
        said = (
            follow(self.bundles, row, target)
            if target is not None
            else self.predict(row, replace_unknown=False, **options)
        )
        return explain(bundle, row, said, step)

    def describe(self) -> Answers:
        """The five answers: data, encoder, decoder, parameters, loss."""
        return answers_of(self._single("describe"))

    def places(self, given: Input) -> list[str]:
        """The places of an input that can be looked at, in order."""
        row = self.row(given)
        name = next(iter(self.recipe.looked_at or self.recipe.inputs))
        return self.bundle.fields.text_inputs[name].symbols(row[name])

    def save(self, folder: str | Path) -> None:
        """Write the model's folder."""
        self._single("save").save(Path(folder))

    def _single(self, what: str) -> Bundle:
        """The one model, for what several cannot do as one: they have as many summaries, states and parameters."""
        if len(self.bundles) > 1:
            raise UserError(f"{what} takes one model, and this is an ensemble of {len(self.bundles)}")
        return self.bundle

    # ------------------------------------------------------------ from what users give to rows

    def row(self, given: Any) -> dict[str, str]:
        """An input as a row by the recipe's names."""
        names = list(self.recipe.inputs)
        if given is None or (given == "" and not names):
            given = {}
        if isinstance(given, str):
            given = {names[0]: given} if len(names) == 1 else (given,)
        elif isinstance(given, Sequence):
            given = tuple(given)
        if isinstance(given, tuple):
            if len(given) != len(names):
                raise UserError(f"the model reads {len(names)} inputs ({', '.join(names) or 'none'}), got {len(given)}")
            given = dict(zip(names, given, strict=True))
        if not isinstance(given, Mapping) or set(given) != set(names):
            raise UserError(f"the model reads the inputs {', '.join(names) or 'none'}, got {given!r}")
        for name, value in given.items():
            if not isinstance(value, str):
                raise UserError(f"input '{name}': expected text, got {type(value).__name__}")
        return {name: given[name] for name in names}

    def rows_of(
        self, data: str | Path | Sequence[Mapping[str, str]], columns: Sequence[str] | None = None
    ) -> list[Mapping[str, str]]:
        """Rows with outputs, from a table or as given."""
        if not isinstance(data, str | Path):
            return list(data)
        table, resolution = open_table(self.recipe, data, columns)
        return list(resolution.rows(table, filled=filled(self.recipe)))

    def _prefix(self, prefix: str | None) -> list[int] | None:
        if prefix is None:
            return None
        if self.recipe.output.kind != "text":
            raise UserError("prefix: a label has no beginning to be given")
        return self.bundle.fields.text_output.encode(prefix)

    def _oracle(self, oracle: Mapping[int, Any]) -> dict[int, dict[str, Any]]:
        looked = self.recipe.looked_at
        if not looked:
            raise UserError("oracle: this model has no attention to set")
        return {
            int(step): dict(weights) if isinstance(weights, Mapping) else {looked[0]: list(weights)}
            for step, weights in oracle.items()
        }


def train(
    recipe: str | Path | Mapping[str, Any] | Recipe | None,
    data: str | Path | None = None,
    *,
    dev: str | Path | None = None,
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

    start: a model to go on from (fine-tuning): its parts and vocabularies are kept, the recipe (None: the model's own)
    says the rest. resume: take up the run in `out`, whose recipe and data are remembered there. overwrite: a run that
    lies in `out` already may go; without, it is left alone and an error says so.
    """
    limits = limits_of(epochs=epochs, updates=updates, minutes=minutes)
    extra = [*overrides, *limits]
    if seed is not None:
        extra.append(f"training.seed={seed}")
    if device is not None:
        extra.append(f"training.device={device}")
    listeners = [Progress()] if listeners is None else listeners
    begun = start.bundle if isinstance(start, Model) else Bundle.load(start) if start is not None else None
    wanted = begun.recipe if recipe is None and begun is not None else recipe
    if wanted is None and (out is None or not resume):
        raise UserError("no recipe: give the name of a shipped one, a YAML file or a dict")
    if resume:
        folder = Path(out) if out is not None else default_folder(load_recipe(wanted or {}))
        stored, sources = resumable(folder)
        made = load_recipe(stored, overrides=extra) if extra else stored
        return Model(run_training(made, sources, folder=folder, listeners=listeners, resume=True))
    if data is None:
        raise UserError("no data: give a table with --data (data=...)")
    made = load_recipe(wanted or {}, overrides=extra)
    if begun is not None:
        made, notes = fine_tuned(begun.recipe, made, extra)
        for listener in listeners:
            for note in notes:
                listener.said(note)
    sources = Sources(
        str(Path(data).resolve()), str(Path(dev).resolve()) if dev else None, list(columns) if columns else None
    )
    folder = Path(out) if out is not None else default_folder(made)
    if not overwrite:
        check_free(folder)
    return Model(run_training(made, sources, folder=folder, listeners=listeners, start=begun))


def load(folder: str | Path, *, device: str = "cpu") -> Model:
    """The model in a folder; several folders joined by + are an ensemble."""
    return Model([Bundle.load(part, device=device) for part in str(folder).split("+")])


def default_folder(recipe: Recipe) -> Path:
    return Path("runs") / recipe.task


def limits_of(*, epochs: int | None, updates: int | None, minutes: float | None) -> list[str]:
    """Overrides for the limits a caller gives: those replace the recipe's, all of them."""
    given = {"epochs": epochs, "updates": updates, "minutes": minutes}
    if all(value is None for value in given.values()):
        return []
    return [f"training.{name}={value if value is not None else 0}" for name, value in given.items()]
