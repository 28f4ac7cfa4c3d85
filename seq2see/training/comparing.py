"""Comparison of recipe variants, each trained from the same seeds for the same updates on the same rows."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from seq2see.attention import scores
from seq2see.data.tables import Data
from seq2see.decoders import decoders
from seq2see.encoders import encoders
from seq2see.errors import UserError, counted
from seq2see.evaluation import lookup
from seq2see.evaluation.ranking import Contender, Outcome, Ranking
from seq2see.files import unwritable, write_bytes
from seq2see.locking import FolderInUse, lock_folder
from seq2see.pipeline.bundle import RECIPE, WEIGHTS
from seq2see.pipeline.evaluator import report_metrics
from seq2see.progress import remaining
from seq2see.recipe import Recipe, left_out, load_recipe
from seq2see.recipe.load import limits_of
from seq2see.recipe.schema import flatten
from seq2see.seeing import Column, Row, interval_plot
from seq2see.training.checkpoints import CHECKPOINTS, SOURCES, Sources, latest_checkpoint, sources_of, write_tables
from seq2see.training.dataset import open_table
from seq2see.training.distributed import check_command
from seq2see.training.reports import Listener, Progress, Report, UpdateStatus, best_report, progress_unless
from seq2see.training.run import train

# ---------------------------------------------------------------- variants

OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"


@dataclass(frozen=True)
class Variant:
    """One variant of a recipe: (key, value as text) for each key that varies, in the order of --vary."""

    changes: tuple[tuple[str, str], ...]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.changes]

    @property
    def overrides(self) -> list[str]:
        return [f"{key}={value}" for key, value in self.changes]

    def __str__(self) -> str:
        """As short as it is clear.

        >>> str(Variant((("attention.score", "dot"),)))
        'dot'
        >>> str(Variant((("attention.score", "dot"), ("encoder.size", "8"))))
        'score dot, size 8'
        """
        if len(self.changes) == 1:
            return self.changes[0][1]
        last = [key.rpartition(".")[2] for key, _ in self.changes]
        names = last if len(set(last)) == len(last) else [key for key, _ in self.changes]
        return ", ".join(f"{name} {value}" for name, (_, value) in zip(names, self.changes, strict=True))


def variants(vary: Sequence[str]) -> list[Variant]:
    """The variants of --vary KEY=A,B: every value of every key with every value of the others, the last key fastest.

    >>> [str(variant) for variant in variants(["attention.score=dot,none", "decoder.size=8,9"])]
    ['score dot, size 8', 'score dot, size 9', 'score none, size 8', 'score none, size 9']
    """
    axes: dict[str, list[str]] = {}
    for option in vary:
        key, values = _axis(option)
        clash = next(
            (other for other in axes if f"{key}.".startswith(f"{other}.") or other.startswith(f"{key}.")), None
        )
        if clash is not None:
            raise UserError(f"--vary {option}: {clash} varies already, and one would undo the other")
        axes[key] = values
    if not axes:
        raise UserError("nothing varies: give --vary KEY=A,B, for example --vary attention.score=dot,additive,none")
    return [Variant(tuple(zip(axes, values, strict=True))) for values in product(*axes.values())]


def _axis(option: str) -> tuple[str, list[str]]:
    key, equals, text = option.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--vary {option}: not KEY=A,B, for example attention.score=dot,additive,none")
    values = separated(text)
    if not all(values):
        raise UserError(f"--vary {option}: a value is missing beside a comma")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise UserError(f"--vary {option}: '{twice}' is given twice")
    return key.strip(), values


def separated(text: str) -> list[str]:
    """Values between commas; a comma inside brackets or quotes belongs to its value.

    >>> separated("8, [a, b],{x: 1, y: 2}")
    ['8', '[a, b]', '{x: 1, y: 2}']
    """
    values, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += letter
    return [value.strip() for value in values]


# ---------------------------------------------------------------- checks

MEASURED = re.compile(
    r"(data|evaluation)\..*|training\.dev_rows|loss\.alignment\.column"
    r"|inputs\.[^.]+\.column|output\.(kind|column|made|case|punctuation|unicode)"
)
"""Keys that determine which rows are measured, against which outputs and by which metrics."""

NO_EFFECT = (
    "task",
    "description",
    "training.samples",
    "training.tensorboard",
    "training.checkpoint_every",
    "training.checkpoint_seconds",
    "training.wait_minutes",
)
"""Keys that have no effect on the trained model."""


def check_comparable(recipes: Mapping[Variant, Recipe]) -> None:
    """Refuse variants whose metrics cannot be compared, and variants that are equal."""
    settings = {variant: dict(flatten(recipe.to_dict())) for variant, recipe in recipes.items()}
    for key in next(iter(recipes)).keys:
        changed = [path for path in _differing(list(settings.values())) if f"{path}.".startswith(f"{key}.")]
        measured = [path for path in changed if MEASURED.fullmatch(path)]
        if measured:
            raise UserError(
                f"--vary {key}: variants would be measured on other rows, or by other measures, and could not be "
                f"compared; give {measured[0]} one value, with --set"
            )
        if changed and all(path in NO_EFFECT for path in changed):
            raise UserError(f"--vary {key}: has no effect on what is learned, so that all variants would be the same")
    _check_duplicates(settings)


def check_folder(folder: Path) -> None:
    """Refuse a file, and the folder of a model."""
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a comparison needs a folder")
    if any((folder / name).exists() for name in (WEIGHTS, RECIPE, SOURCES)):
        raise UserError(f"{folder} holds a run already, and nothing was changed; --out takes another folder")


def _check_duplicates(settings: Mapping[Variant, Mapping[str, Any]]) -> None:
    seen: dict[str, Variant] = {}
    for variant, values in settings.items():
        learned = {path: value for path, value in values.items() if path not in NO_EFFECT}
        first = seen.setdefault(json.dumps(learned, sort_keys=True), variant)
        if first is not variant:
            raise UserError(f"--vary: '{first}' and '{variant}' are the same recipe; leave one of them out")


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    paths = dict.fromkeys(path for values in settings for path in values)
    return [path for path in paths if any(values.get(path) != settings[0].get(path) for values in settings)]


# ---------------------------------------------------------------- listeners


class QuietProgress(Progress):
    """A status line on a terminal, and messages; no line for each report."""

    def on_update(self, status: UpdateStatus) -> None:
        if self.status.live:
            super().on_update(status)

    def on_report(self, report: Report, metric: str) -> None:
        pass


class Forward:
    """Passes a run on to listeners, each message once over all runs. messages: those of earlier runs."""

    def __init__(self, listeners: Sequence[Listener], messages: set[str]):
        self.listeners, self.messages = listeners, messages

    def on_update(self, status: UpdateStatus) -> None:
        for listener in self.listeners:
            listener.on_update(status)

    def on_report(self, report: Report, metric: str) -> None:
        for listener in self.listeners:
            listener.on_report(report, metric)

    def on_message(self, message: str) -> None:
        if message not in self.messages:
            self.messages.add(message)
            for listener in self.listeners:
                listener.on_message(message)

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


LIMITS = ("training.epochs", "training.updates", "training.minutes")
SEED, PATIENCE = "training.seed", "training.patience"


def compare(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    data: Data,
    *,
    vary: Sequence[str],
    dev: Data | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    epochs: int | None = None,
    updates: int | None = None,
    minutes: float | None = None,
    seeds: int = 1,
    out: str | Path | None = None,
    skip: bool = False,
    listeners: Sequence[Listener] | None = None,
) -> Ranking:
    """Train every variant from every seed and rank them.

    vary: `KEY=A,B` for each key that varies; several keys are combined in all ways. No run stops early, unless
    `training.patience` is set in `overrides`. Finished runs are written into `out` (default runs/compare-TASK) at once,
    so that the same call continues a killed comparison; variants and seeds may be added later.
    skip: leave out variants that are impossible, instead of refusing them all.
    """
    check_command("compare")
    if seeds < 1:
        raise UserError(f"seeds: {seeds} given; allowed: 1 or more")
    limits = limits_of(epochs=epochs, updates=updates, minutes=minutes)
    _check_free_keys(vary, overrides, limits=limits)
    patience = [] if _names(PATIENCE, [*vary, *overrides]) else [f"{PATIENCE}=0"]
    recipes, impossible = _recipes(recipe, variants(vary), [*overrides, *limits, *patience], skip=skip)
    check_comparable(recipes)
    first = next(iter(recipes.values()))
    metric = _common_metric(recipes)
    folder = Path(out) if out is not None else default_folder(first)
    sources, tables = sources_of(first, data, dev, columns, folder=folder)
    if not tables:
        open_table(first, sources.data, columns)
    check_folder(folder)
    with progress_unless(listeners, QuietProgress) as followers:
        comparison = _Comparison(folder, sources, metric, followers)
        if minutes is None and not _names(LIMITS[-1], [*vary, *overrides]):
            for note in _time_notes(recipes.values()):
                comparison.say(note)
        for variant in recipes:
            for note in left_out(recipe, [*overrides, *limits, *patience, *variant.overrides]):
                comparison.say(f"{variant}: {note}")
        for reason in impossible:
            comparison.say(f"left out: {reason}")
        with lock_folder(folder):
            write_tables(tables)
            return comparison.run(recipes, seeds=seeds, left_out=impossible)


def default_folder(recipe: Recipe) -> Path:
    """The folder of a comparison that names none."""
    return Path("runs") / f"compare-{recipe.task}"


def _check_free_keys(vary: Sequence[str], overrides: Sequence[str], *, limits: Sequence[str]) -> None:
    """Refuse keys that are set twice in one call."""
    for override in overrides:
        key = override.partition("=")[0].strip()
        if _names(key, vary):
            raise UserError(f"--set {override}: {key} varies, so that it has no one value; leave one of them out")
    if _names(SEED, vary):
        raise UserError(f"--vary {SEED}: a seed is no variant; --seeds 3 trains every variant from three seeds")
    for key in LIMITS:
        if limits and (_names(key, vary) or _names(key, overrides)):
            raise UserError(
                f"{key}: given twice, as --{key.partition('.')[2]} and the like replace the recipe's limits"
            )


def _names(key: str, overrides: Sequence[str]) -> bool:
    """Whether one of these `KEY=...` sets the key, or a group that contains it."""
    keys = [override.partition("=")[0].strip() for override in overrides]
    return any(key == other or key.startswith(f"{other}.") for other in keys)


def _recipes(
    recipe: str | Path | Mapping[str, Any] | Recipe, wanted: Sequence[Variant], common: Sequence[str], *, skip: bool
) -> tuple[dict[Variant, Recipe], list[str]]:
    """(the recipe of each possible variant, the problem of each of the others)."""
    recipes: dict[Variant, Recipe] = {}
    refused: dict[Variant, str] = {}
    for variant in wanted:
        try:
            recipes[variant] = load_recipe(recipe, overrides=[*common, *variant.overrides])
        except UserError as error:
            refused[variant] = str(error)
    if not recipes and len(set(refused.values())) == 1:  # a problem that they share is reported once
        raise UserError(next(iter(refused.values())))
    reasons = [f"{variant}: {reason}" for variant, reason in refused.items()]
    if refused and (not skip or not recipes):
        hint = "; --skip leaves them out" if recipes else ""
        head = f"{counted(len(refused), 'variant')} of {len(wanted)} cannot be trained{hint}:"
        raise UserError("\n".join([head, *(f"  {reason}" for reason in reasons)]))
    return recipes, reasons


def _time_notes(recipes: Iterable[Recipe]) -> list[str]:
    """A note where the recipe's own time limit ends the runs."""
    most = max(recipe.training.minutes for recipe in recipes)
    if not most:
        return []
    limit = f"every run has the recipe's training.minutes {most:g}"
    return [f"{limit}: slower variants may get fewer updates; --updates N gives all the same"]


def _common_metric(recipes: Mapping[Variant, Recipe]) -> str:
    """The metric that selects the best model, which has to be the same for all variants."""
    leading = {report_metrics(recipe)[1] for recipe in recipes.values()}
    if len(leading) > 1:
        raise UserError(
            f"variants are selected by different metrics ({', '.join(sorted(leading))}); set training.metric"
        )
    return leading.pop()


# ---------------------------------------------------------------- the runs


@dataclass
class _Comparison:
    """A running comparison: its folder, its tables, its leading metric and its listeners."""

    folder: Path
    sources: Sources
    metric: str
    listeners: Sequence[Listener]
    messages: set[str] = field(default_factory=set)

    def say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)

    def run(self, recipes: Mapping[Variant, Recipe], *, seeds: int, left_out: Sequence[str]) -> Ranking:
        """Train all variants from the first seed, then from the next, so that a killed comparison has some of each."""
        results, failed = Results(self.folder), dict[Variant, str]()
        outcomes: dict[Variant, list[Outcome]] = {variant: [] for variant in recipes}
        runs = list(_runs(recipes, seeds, self.sources))
        clock = _Clock(sum(run.fingerprint not in results for run in runs))
        for run in runs:
            if run.variant in failed:
                continue
            try:
                outcomes[run.variant].append(self._outcome(run, results, clock))
            except FolderInUse:
                raise
            except UserError as error:
                failed[run.variant] = str(error)
                self.say(f"{run}: left out: {error}")
        if len(failed) == len(recipes):
            raise UserError(next(iter(failed.values())))
        contenders = tuple(
            Contender(str(variant), dict(variant.changes), tuple(results))
            for variant, results in outcomes.items()
            if variant not in failed
        )
        reasons = (*left_out, *(f"{variant}: {reason}" for variant, reason in failed.items()))
        return Ranking(self.metric, contenders, str(self.folder), reasons)

    def _outcome(self, run: _Run, results: Results, clock: _Clock) -> Outcome:
        known = run.fingerprint in results
        if known:
            outcome = results[run.fingerprint]
        else:
            outcome = self._train(run)
            results.add(run.fingerprint, run.variant, outcome)
            shutil.rmtree(Path(outcome.model) / CHECKPOINTS, ignore_errors=True)
        line = f"{run}: {self._show(outcome)}"
        self.say(f"{line}  (trained before)" if known else f"{line}{clock.rest()}")
        return outcome

    def _train(self, run: _Run) -> Outcome:
        """Start or resume one run. A run that is stopped by a signal ends the comparison too."""
        folder = self.folder / "runs" / run.name
        listeners = [Forward(self.listeners, self.messages)]
        try:
            bundle = train(run.recipe, self.sources, folder=folder, listeners=listeners, resume=_can_resume(folder))
        except (KeyboardInterrupt, SystemExit):
            self.say("the comparison is stopped; the same command goes on from here")
            raise
        last = latest_checkpoint(folder / CHECKPOINTS)
        assert last is not None, "a run that has ended has a checkpoint"
        state = last.state
        return Outcome(
            seed=run.recipe.training.seed,
            metrics=best_report(folder)["dev"],
            updates=state.updates,
            seconds=round(state.seconds, 3),
            seconds_per_update=state.update_seconds / max(state.updates, 1),
            parameters=sum(parameter.numel() for parameter in bundle.network.parameters()),
            model=str(folder),
        )

    def _show(self, outcome: Outcome) -> str:
        value = lookup(self.metric).show(outcome.metrics[self.metric])
        return f"{self.metric} {value}  {1000 * outcome.seconds_per_update:,.1f} ms/update  {outcome.seconds:,.0f} s"


class _Clock:
    """Estimates the remaining time by the runs that were trained so far."""

    def __init__(self, runs: int):
        self.runs, self.trained, self.begun = runs, 0, time.monotonic()

    def rest(self) -> str:
        """The progress after one more run."""
        self.trained += 1
        done = f"  {self.trained} of {counted(self.runs, 'run')}"
        left = remaining(self.trained / self.runs, time.monotonic() - self.begun) if self.trained < self.runs else ""
        return f"{done}{left}"


@dataclass(frozen=True)
class _Run:
    """One variant from one seed."""

    variant: Variant
    recipe: Recipe
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.variant}, seed {self.recipe.training.seed}"

    @property
    def name(self) -> str:
        """A readable and unique name for the run's folder."""
        words = "-".join("".join(c if c.isalnum() else " " for c in str(self.variant)).split())
        return f"{words[:60]}-seed{self.recipe.training.seed}-{self.fingerprint[:8]}"


def _runs(recipes: Mapping[Variant, Recipe], seeds: int, sources: Sources) -> Iterator[_Run]:
    for more in range(seeds):
        for variant, recipe in recipes.items():
            training = recipe.training.model_copy(update={"seed": recipe.training.seed + more})
            seeded = recipe.model_copy(update={"training": training})
            yield _Run(variant, seeded, fingerprint(seeded, sources))


def _can_resume(folder: Path) -> bool:
    """Whether the folder holds a run that can be resumed: the first checkpoint is written after everything else."""
    started = (folder / SOURCES).is_file() and (folder / RECIPE).is_file()
    return started and any((folder / CHECKPOINTS).glob("update-*.safetensors"))


# ---------------------------------------------------------------- results on disk

RESULTS = "results.jsonl"


class Results:
    """results.jsonl: the outcome of each finished run by its fingerprint. A last line that was cut short is removed."""

    def __init__(self, folder: Path):
        self.path = folder / RESULTS
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise unwritable(folder, error) from None
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_bytes(self.path, whole)
        self._outcomes = dict(self._read(line) for line in whole.splitlines())

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._outcomes

    def __getitem__(self, fingerprint: str) -> Outcome:
        return self._outcomes[fingerprint]

    def add(self, fingerprint: str, variant: Variant, outcome: Outcome) -> None:
        """Append an outcome, so that a killed comparison keeps its finished runs."""
        self._outcomes[fingerprint] = outcome
        record = {"run": fingerprint, "variant": dict(variant.changes), **asdict(outcome)}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise unwritable(self.path, error) from None

    def _read(self, line: bytes) -> tuple[str, Outcome]:
        try:
            record: dict[str, Any] = json.loads(line)
            run = str(record.pop("run"))
            record.pop("variant")
            return run, Outcome(**record)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{self.path}: damaged, a line is no result of a run: {line[:60]!r} ({error})") from None


def fingerprint(recipe: Recipe, sources: Sources) -> str:
    """A hash of all that determines the outcome of a run: the recipe, the rows, and the code of plug-ins."""
    settings = recipe.to_dict()
    del settings["training"]["film"]  # it does not change the run
    del settings["training"]["checkpoint_seconds"]  # nor does this
    rows = {"data": sources.data, "dev": sources.dev, "columns": sources.columns}
    digest = hashlib.sha256(json.dumps([settings, rows], sort_keys=True).encode())
    for path in (sources.data, sources.dev):
        if path is not None and Path(path).is_file():
            digest.update(_digest(Path(path)))
    for file in sorted(_plugin_files(recipe)):
        digest.update(_digest(file))
    return digest.hexdigest()[:16]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _plugin_files(recipe: Recipe) -> set[Path]:
    """The source files of parts that come from plug-ins, and of their base classes."""
    parts: list[type] = [decoders[recipe.decoder.kind]]
    parts += [encoders[recipe.encoder_of(name).kind] for name in recipe.inputs]
    if recipe.looked_at:
        parts.append(scores[recipe.attention.score])
    classes = {base for part in parts for base in part.__mro__}
    plugins = [base for base in classes if base.__module__.partition(".")[0] not in ("seq2see", "torch", "builtins")]
    files = [inspect.getsourcefile(base) for base in plugins]
    return {Path(file) for file in files if file is not None and Path(file).is_file()}


# ---------------------------------------------------------------- plot


def draw(ranking: Ranking, *, title: str) -> list[Path]:
    """Draw comparison.png and .svg in its folder: the metric of each variant with its interval, and the time of an
    update."""
    quality, time = [], []
    for contender in ranking.contenders:
        interval, best = contender.interval(ranking.metric), contender is ranking.best or contender in ranking.tied
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        values = contender.values(ranking.metric)
        points = tuple(values) if len(values) > 1 else ()
        quality.append(Row(contender.name, contender.mean(ranking.metric), low, high, points, strong=best))
        time.append(Row(contender.name, 1000 * contender.seconds_per_update, strong=best))
    columns = [
        Column(
            f"{ranking.metric} on dev, {ranking.direction} ({_legend(ranking)})",
            quality,
            ranking.best.mean(ranking.metric),
            bounds=lookup(ranking.metric).bounds,
        ),
        Column("milliseconds per update", time, width=0.5, from_zero=True),
    ]
    paths = [Path(ranking.folder) / f"comparison.{suffix}" for suffix in ("png", "svg")]
    interval_plot(columns, title=f"{ranking.varied}: {title}", paths=paths)
    return paths


def _legend(ranking: Ranking) -> str:
    """What the marks mean; where all seeds are equal there are no crosses."""
    if len(ranking.best.outcomes) == 1:
        return "one seed"
    apart = any(len(set(contender.values(ranking.metric))) > 1 for contender in ranking.contenders)
    return f"mean and 95 % interval over seeds{', x: one seed' if apart else ', which are all alike'}"
