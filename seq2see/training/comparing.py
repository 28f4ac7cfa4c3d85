"""Comparison of recipe variants, each trained from the same seeds for the same updates on the same rows; and
cross-validation, which is that of a single one over the parts of a table that it leaves out."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from seq2see.attention import scores
from seq2see.data.folds import DevFrom
from seq2see.data.records import Data
from seq2see.decoders import decoders
from seq2see.encoders import encoders
from seq2see.errors import UserError, counted
from seq2see.evaluation import lookup
from seq2see.evaluation.cross_validation import CrossValidation
from seq2see.evaluation.metrics import Measured
from seq2see.evaluation.ranking import Contender, GroupOutcome, Outcome, Ranking
from seq2see.files import finite, unwritable, write_bytes
from seq2see.locking import FolderInUse, lock_folder
from seq2see.pipeline.bundle import RECIPE, WEIGHTS
from seq2see.pipeline.evaluator import report_metrics
from seq2see.progress import remaining
from seq2see.recipe import Recipe, left_out, load_recipe
from seq2see.recipe.load import limits_of
from seq2see.seeing import Column, Row, interval_plot
from seq2see.training.checkpoints import CHECKPOINTS, SOURCES, Sources, latest_checkpoint, sources_of, write_tables
from seq2see.training.dataset import open_table
from seq2see.training.distributed import check_command
from seq2see.training.folds import (
    LEFT_OUT,
    Folds,
    FoldTables,
    check_untaught,
    measure_fold,
    measure_together,
    read_folds,
    read_left_out,
)
from seq2see.training.reports import Listener, Progress, Report, UpdateStatus, best_report, progress_unless
from seq2see.training.run import train
from seq2see.training.variants import LIMITS, PATIENCE, SEED, Variant, check_comparable, names_key, variants

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
    by: str | None = None,
    folds: int | None = None,
    dev_from: DevFrom | None = None,
    out: str | Path | None = None,
    skip: bool = False,
    listeners: Sequence[Listener] | None = None,
) -> Ranking:
    """Train every variant from every seed and rank them.

    vary: `KEY=A,B` for each key that varies; several keys are combined in all ways. No run stops early, unless
    `training.patience` is set in `overrides`. Finished runs are written into `out` (default runs/compare-TASK) at once,
    so that the same call continues a killed comparison; variants and seeds may be added later.
    skip: leave out variants that are impossible, instead of refusing them all.
    by, folds, dev_from: measure every variant by cross-validation, as `crossval` does, instead of on dev rows.
    """
    check_command("compare")
    _check_seeds(seeds)
    limits = limits_of(epochs=epochs, updates=updates, minutes=minutes)
    _check_free_keys(vary, overrides, limits=limits)
    patience = [] if names_key(PATIENCE, [*vary, *overrides]) else [f"{PATIENCE}=0"]
    recipes, impossible = _recipes(recipe, variants(vary), [*overrides, *limits, *patience], skip=skip)
    check_comparable(recipes)
    first = next(iter(recipes.values()))
    metric = _common_metric(recipes)
    folder = Path(out) if out is not None else default_folder(first)
    check_folder(folder)
    dealt = None
    if by is None and folds is None:
        _check_no_dev_from(dev_from)
        sources, tables = sources_of(first, data, dev, columns, folder=folder)
        write: Callable[[], None] = partial(write_tables, tables)
        if not tables:
            open_table(first, sources.data, columns)
    else:
        if dev is not None:
            raise UserError("dev: left-out groups are measured instead of dev rows, which come from --data; give one")
        check_untaught(*recipes.values())
        dealt = read_folds(first, data, columns, by=by, folds=folds, dev_from=dev_from, folder=folder)
        sources, write = dealt.parts[0].sources, dealt.write
    with progress_unless(listeners, QuietProgress) as followers:
        comparison = _Comparison(folder, sources, metric, followers, dealt)
        if minutes is None and not names_key(LIMITS[-1], [*vary, *overrides]):
            for note in _time_notes(recipes.values()):
                comparison.say(note)
        for variant in recipes:
            for note in left_out(recipe, [*overrides, *limits, *patience, *variant.overrides]):
                comparison.say(f"{variant}: {note}")
        for note in [*(f"left out: {reason}" for reason in impossible), *(dealt.notes if dealt else ())]:
            comparison.say(note)
        with lock_folder(folder):
            write()
            return comparison.run(recipes, seeds=seeds, left_out=impossible)


def crossval(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    data: Data,
    *,
    by: str | None = None,
    folds: int | None = None,
    dev_from: DevFrom | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    epochs: int | None = None,
    updates: int | None = None,
    minutes: float | None = None,
    seeds: int = 1,
    out: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
) -> CrossValidation:
    """Train a recipe once for each value of a column, without the rows that have it, and measure it on these.

    by: the column (a speaker, a book, a writer); where it has more values than there are folds (default: 10), several
    are left out at a time. None: K folds over rows (default: 5); rows with equal inputs stay together.
    dev_from: "group" takes the rows that select the best weights from a further value that is not trained on, "rows"
    sets rows of the other values aside, as `train` does; None: "group" from eight folds on. What is tested is used
    for neither.
    Every fold is a run of its own in `out` (default runs/crossval-TASK); finished ones are not repeated by the same
    call. Its recipe is trained as `train` would.
    """
    check_command("crossval")
    _check_seeds(seeds)
    resolved = load_recipe(recipe, overrides=[*overrides, *limits_of(epochs=epochs, updates=updates, minutes=minutes)])
    metric = report_metrics(resolved)[1]
    folder = Path(out) if out is not None else Path("runs") / f"crossval-{resolved.task}"
    check_folder(folder)
    dealt = read_folds(resolved, data, columns, by=by, folds=folds, dev_from=dev_from, folder=folder)
    with progress_unless(listeners, QuietProgress) as followers:
        comparison = _Comparison(folder, dealt.parts[0].sources, metric, followers, dealt)
        for note in [*left_out(recipe, overrides), *dealt.notes]:
            comparison.say(note)
        with lock_folder(folder):
            dealt.write()
            ranking = comparison.run({Variant(()): resolved}, seeds=seeds, left_out=())
            runs = ranking.best
            result = CrossValidation(
                resolved.task, dealt.by, metric, runs, _pooled(runs), str(folder), tuple(dealt.notes)
            )
            record = json.dumps(finite(result.to_dict()), ensure_ascii=False, indent=1)
            write_bytes(folder / CROSSVAL, f"{record}\n".encode("utf-8", "backslashreplace"))
    return result


CROSSVAL = "crossval.json"
"""The record of a cross-validation in its folder."""


def _pooled(runs: Contender) -> dict[str, float]:
    """The metrics over the left-out rows of all folds at once; of several seeds the mean."""
    by_seed: dict[int, list[list[Measured]]] = {}
    for outcome in runs.outcomes:
        by_seed.setdefault(outcome.seed, []).extend(read_left_out(Path(outcome.model) / LEFT_OUT).values())
    pooled = [measure_together(parts) for parts in by_seed.values()]
    return {name: fmean(each[name] for each in pooled) for name in pooled[0]}


def _check_seeds(seeds: int) -> None:
    if seeds < 1:
        raise UserError(f"seeds: {seeds} given; allowed: 1 or more")


def _check_no_dev_from(dev_from: DevFrom | None) -> None:
    if dev_from is not None:
        raise UserError(f"dev from {dev_from}: has no effect without a column of groups (--by)")


def check_folder(folder: Path) -> None:
    """Refuse a file, and the folder of a model."""
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a comparison needs a folder")
    if any((folder / name).exists() for name in (WEIGHTS, RECIPE, SOURCES)):
        raise UserError(f"{folder} already holds a run, and nothing was changed; --out takes another folder")


def default_folder(recipe: Recipe) -> Path:
    """The folder of a comparison that names none."""
    return Path("runs") / f"compare-{recipe.task}"


def _check_free_keys(vary: Sequence[str], overrides: Sequence[str], *, limits: Sequence[str]) -> None:
    """Refuse keys that are set twice in one call."""
    for override in overrides:
        key = override.partition("=")[0].strip()
        if names_key(key, vary):
            raise UserError(f"--set {override}: {key} varies, so it has no single value; omit one of the two")
    if names_key(SEED, vary):
        raise UserError(f"--vary {SEED}: a seed is not a variant; --seeds 3 trains every variant from three seeds")
    for key in LIMITS:
        if limits and (names_key(key, vary) or names_key(key, overrides)):
            raise UserError(
                f"{key}: given twice, as --{key.partition('.')[2]} and the like replace the recipe's limits"
            )


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
    """A running comparison: its folder, its tables, its leading metric, its listeners, and in cross-validation the
    folds."""

    folder: Path
    sources: Sources
    metric: str
    listeners: Sequence[Listener]
    folds: Folds | None = None
    messages: set[str] = field(default_factory=set)

    def say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)

    def run(self, recipes: Mapping[Variant, Recipe], *, seeds: int, left_out: Sequence[str]) -> Ranking:
        """Train all variants from the first seed, fold by fold, then from the next, so that a killed comparison has
        some of each."""
        results, failed = Results(self.folder), dict[Variant, str]()
        outcomes: dict[Variant, list[Outcome]] = {variant: [] for variant in recipes}
        runs = list(_runs(recipes, seeds, self.sources, self.folds))
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
        return Ranking(self.metric, contenders, str(self.folder), reasons, "" if self.folds is None else self.folds.by)

    def _outcome(self, run: _Run, results: Results, clock: _Clock) -> Outcome:
        known = run.fingerprint in results
        if known:
            outcome = results[run.fingerprint]  # its path may be relative to another working directory
            outcome = replace(outcome, model=str(self.folder / RUNS / Path(outcome.model).name))
        else:
            outcome = self._train(run)
            results.add(run.fingerprint, run.variant, outcome)
            shutil.rmtree(Path(outcome.model) / CHECKPOINTS, ignore_errors=True)
        line = f"{run}: {self._show(outcome)}"
        self.say(f"{line}  (trained before)" if known else f"{line}{clock.rest()}")
        return outcome

    def _train(self, run: _Run) -> Outcome:
        """Start or resume one run. A run that is stopped by a signal ends the comparison too."""
        folder = self.folder / RUNS / run.name
        listeners = [Forward(self.listeners, self.messages)]
        try:
            bundle = train(run.recipe, run.sources, folder=folder, listeners=listeners, resume=_can_resume(folder))
        except (KeyboardInterrupt, SystemExit):
            self.say("the comparison was stopped; the same command continues from here")
            raise
        last = latest_checkpoint(folder / CHECKPOINTS)
        assert last is not None, "a run that has ended has a checkpoint"
        state, dev = last.state, best_report(folder)["dev"]
        metrics, groups = (dev, {}) if run.fold is None else measure_fold(bundle, run.fold, folder=folder)
        return Outcome(
            seed=run.recipe.training.seed,
            metrics=metrics,
            updates=state.updates,
            seconds=round(state.seconds, 3),
            seconds_per_update=state.update_seconds / max(state.updates, 1),
            parameters=sum(parameter.numel() for parameter in bundle.network.parameters()),
            model=str(folder),
            fold="" if run.fold is None else run.fold.name,
            groups=groups,
            dev={} if run.fold is None else dev,
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
    """One variant from one seed, in cross-validation without one fold."""

    variant: Variant
    recipe: Recipe
    sources: Sources
    fingerprint: str
    fold: FoldTables | None = None

    def __str__(self) -> str:
        parts = [str(self.variant)] if self.variant.changes else []
        parts += [f"without {self.fold.name}"] if self.fold is not None else []
        return ", ".join([*parts, f"seed {self.recipe.training.seed}"])

    @property
    def name(self) -> str:
        """A readable and unique name for the run's folder."""
        said = str(self).rpartition(", seed ")[0]
        words = "-".join("".join(c if c.isalnum() else " " for c in said).split())
        return f"{words[:60]}-seed{self.recipe.training.seed}-{self.fingerprint[:8]}"


def _runs(
    recipes: Mapping[Variant, Recipe], seeds: int, sources: Sources, folds: Folds | None = None
) -> Iterator[_Run]:
    for more, fold in product(range(seeds), [None] if folds is None else folds.parts):
        tables = sources if fold is None else fold.sources
        for variant, recipe in recipes.items():
            training = recipe.training.model_copy(update={"seed": recipe.training.seed + more})
            seeded = recipe.model_copy(update={"training": training})
            test = None if fold is None else fold.test
            yield _Run(variant, seeded, tables, fingerprint(seeded, tables, test=test), fold)


def _can_resume(folder: Path) -> bool:
    """Whether the folder holds a run that can be resumed: the first checkpoint is written after everything else."""
    started = (folder / SOURCES).is_file() and (folder / RECIPE).is_file()
    return started and any((folder / CHECKPOINTS).glob("update-*.safetensors"))


# ---------------------------------------------------------------- results on disk

RESULTS, RUNS = "results.jsonl", "runs"
"""The outcomes of finished runs, and the folder of all runs."""


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
            groups = {name: GroupOutcome(**group) for name, group in record.pop("groups", {}).items()}
            return run, Outcome(**record, groups=groups)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UserError(
                f"{self.path}: damaged, a line is not the result of a run: {line[:60]!r} ({error})"
            ) from None


def fingerprint(recipe: Recipe, sources: Sources, *, test: Path | None = None) -> str:
    """A hash of all that determines the outcome of a run: the recipe, the rows, and the code of plug-ins. test: a table
    that it is measured on."""
    settings = recipe.to_dict()
    del settings["training"]["film"]  # it does not change the run
    del settings["training"]["checkpoint_seconds"]  # nor does this
    rows = {"data": sources.data, "dev": sources.dev, "columns": sources.columns}
    digest = hashlib.sha256(json.dumps([settings, rows], sort_keys=True).encode())
    for path in (sources.data, sources.dev, test):
        if path is not None and Path(path).is_file():
            digest.update(_digest(Path(path)))
    for code in sorted({source_digest(base) for base in _plugin_classes(recipe)}):
        digest.update(code)
    return digest.hexdigest()[:16]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _plugin_classes(recipe: Recipe) -> list[type]:
    """The parts that come from plug-ins, and their base classes."""
    parts: list[type] = [decoders[recipe.decoder.kind]]
    parts += [encoders[recipe.encoder_of(name).kind] for name in recipe.inputs]
    if recipe.looked_at:
        parts.append(scores[recipe.attention.score])
    classes = {base for part in parts for base in part.__mro__}
    return [base for base in classes if base.__module__.partition(".")[0] not in ("seq2see", "torch", "builtins")]


def source_digest(base: type) -> bytes:
    """A hash of the source file of a class, or of its methods where it has none: it was written in a notebook."""
    try:
        file = inspect.getsourcefile(base)
    except (OSError, TypeError):
        file = None
    if file is not None and Path(file).is_file():
        return _digest(Path(file))
    methods = [value for value in vars(base).values() if inspect.isfunction(value)]
    try:
        code = "".join(map(inspect.getsource, methods)).encode()
    except OSError:  # of a shell that keeps no source
        code = b"".join(method.__code__.co_code + repr(method.__code__.co_consts).encode() for method in methods)
    return hashlib.sha256(base.__qualname__.encode() + code).digest()


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
            f"{ranking.metric} on {_measured_on(ranking)}, {ranking.direction} ({_legend(ranking)})",
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
    one = "seed" if not ranking.best.groups else ranking.by or "fold"
    over = f"{one}s" if one in ("seed", "fold") else f"values of '{one}'"
    return f"mean and 95 % interval over {over}{f', x: one {one}' if apart else ', which are all alike'}"


def _measured_on(ranking: Ranking) -> str:
    if not ranking.best.groups:
        return "dev"
    return f"left-out values of '{ranking.by}'" if ranking.by else "left-out rows"


def draw_crossval(result: CrossValidation, *, title: str) -> list[Path]:
    """Draw crossval.png and .svg in its folder: the metric of each group, and the mean with its interval."""
    metric = lookup(result.metric)
    interval, values = result.interval(), result.values(result.metric)
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    rows = [Row(f"{group} ({result.rows(group):,} rows)", value) for group, value in values.items()]
    rows.append(Row("mean", result.mean(), low, high, strong=True))
    rows.append(Row("all rows", result.pooled[result.metric]))
    direction = "higher is better" if metric.higher_is_better else "lower is better"
    label = f"{result.metric} on held-out rows, {direction} (mean with 95 % interval)"
    column = Column(label, rows, result.mean(), width=1.4, bounds=metric.bounds)
    paths = [Path(result.folder) / f"crossval.{suffix}" for suffix in ("png", "svg")]
    interval_plot([column], title=f"{result.task}, by {result.by or 'fold'}: {title}", paths=paths)
    return paths
