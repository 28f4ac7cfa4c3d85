"""Variants of a recipe, each trained under the same updates and the same seeds, on the same rows."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2see.data.records import Data
from seq2see.errors import UserError, counted
from seq2see.evaluation import lookup
from seq2see.evaluation.ranking import Contender, Outcome, Ranking
from seq2see.locking import FolderInUse, lock_folder
from seq2see.pipeline.bundle import RECIPE, WEIGHTS
from seq2see.pipeline.measures import followed
from seq2see.progress import remaining
from seq2see.recipe import Recipe, left_out, load_recipe
from seq2see.recipe.overrides import limits_of
from seq2see.recipe.variants import Variant, variants
from seq2see.seeing import Column, Row, interval_plot
from seq2see.training.checkpoints import latest_checkpoint
from seq2see.training.comparison_results import Results, fingerprint
from seq2see.training.dataset import open_table
from seq2see.training.progress import Progress, progress_unless
from seq2see.training.reports import Listener, Report, UpdateStatus, best_report
from seq2see.training.run import SOURCES, Sources, sources_of, train, write_tables
from seq2see.training.trainer import CHECKPOINTS

# ---------------- Whether variants can be compared at all

MEASURED = re.compile(
    r"(data|evaluation)\..*|training\.dev_rows|loss\.alignment\.column"
    r"|inputs\.[^.]+\.column|output\.(kind|column|made|case|punctuation|unicode)"
)
"""Keys that decide which rows are measured, against which outputs and by what."""

IDLE = (
    "task",
    "description",
    "training.samples",
    "training.tensorboard",
    "training.checkpoint_every",
    "training.checkpoint_seconds",
)
"""Keys that change nothing about the model that comes of a run."""


def check_comparable(made: Mapping[Variant, Recipe]) -> None:
    """Refuse variants whose numbers could not stand beside each other, and those that are one and the same."""
    settings = {variant: dict(_flat(recipe.to_dict())) for variant, recipe in made.items()}
    for key in next(iter(made)).keys:
        changed = [path for path in _differing(list(settings.values())) if f"{path}.".startswith(f"{key}.")]
        measured = [path for path in changed if MEASURED.fullmatch(path)]
        if measured:
            raise UserError(
                f"--vary {key}: variants would be measured on other rows, or by other measures, and could not be "
                f"compared; give {measured[0]} one value, with --set"
            )
        if changed and all(path in IDLE for path in changed):
            raise UserError(f"--vary {key}: has no effect on what is learned, so that all variants would be the same")
    _check_doubles(settings)


def check_folder(folder: Path) -> None:
    """A comparison's files are not strewn over a model's."""
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a comparison needs a folder")
    if any((folder / name).exists() for name in (WEIGHTS, RECIPE, SOURCES)):
        raise UserError(f"{folder} holds a run already, and nothing was changed; --out takes another folder")


def _check_doubles(settings: Mapping[Variant, Mapping[str, Any]]) -> None:
    seen: dict[str, Variant] = {}
    for variant, its in settings.items():
        learned = {path: value for path, value in its.items() if path not in IDLE}
        first = seen.setdefault(json.dumps(learned, sort_keys=True), variant)
        if first is not variant:
            raise UserError(f"--vary: '{first}' and '{variant}' are the same recipe; leave one of them out")


def _differing(settings: list[dict[str, Any]]) -> list[str]:
    paths = dict.fromkeys(path for its in settings for path in its)
    return [path for path in paths if any(its.get(path) != settings[0].get(path) for its in settings)]


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every key, through all groups of keys."""
    for key, value in settings.items():
        inside = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from _flat(value, inside)
        else:
            yield inside, value


# ---------------- A run that is one of many, told of in few words


class Lines(Progress):
    """A status that moves where there is a terminal, and no line but what is said."""

    def on_update(self, status: UpdateStatus) -> None:
        if self.status.live:
            super().on_update(status)

    def on_report(self, report: Report, metric: str) -> None:
        pass


class Watch:
    """Hands on what a run does and says, each saying once over all runs. heard: what was said in earlier ones."""

    def __init__(self, listeners: Sequence[Listener], heard: set[str]):
        self.listeners, self.heard = listeners, heard

    def on_update(self, status: UpdateStatus) -> None:
        for listener in self.listeners:
            listener.on_update(status)

    def on_report(self, report: Report, metric: str) -> None:
        for listener in self.listeners:
            listener.on_report(report, metric)

    def on_message(self, message: str) -> None:
        if message not in self.heard:
            self.heard.add(message)
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

    vary: `KEY=A,B` for each key that varies; all values of one meet all values of the others. No run stops early, but
    where `training.patience` is set in `overrides`. What is finished is written into `out` (default runs/compare-TASK)
    at once, so that the same call goes on where a killed one stopped; variants and seeds may be added later.
    skip: leave out variants that cannot be, instead of refusing them all.
    """
    if seeds < 1:
        raise UserError(f"seeds: {seeds} given; allowed: 1 or more")
    limits = limits_of(epochs=epochs, updates=updates, minutes=minutes)
    _check_free_keys(vary, overrides, limits=limits)
    patience = [] if _names(PATIENCE, [*vary, *overrides]) else [f"{PATIENCE}=0"]
    made, impossible = _recipes(recipe, variants(vary), [*overrides, *limits, *patience], skip=skip)
    check_comparable(made)
    first = next(iter(made.values()))
    metric = _one_metric(made)
    folder = Path(out) if out is not None else default_folder(first)
    sources, tables = sources_of(first, data, dev, columns, folder=folder)
    if not tables:
        open_table(first, sources.data, columns)
    check_folder(folder)
    with progress_unless(listeners, Lines) as followers:
        contest = _Contest(folder, sources, metric, followers)
        if minutes is None and not _names(LIMITS[-1], [*vary, *overrides]):
            for note in _by_the_clock(made.values()):
                contest.say(note)
        for variant in made:
            for note in left_out(recipe, [*overrides, *limits, *patience, *variant.overrides]):
                contest.say(f"{variant}: {note}")
        for reason in impossible:
            contest.say(f"left out: {reason}")
        with lock_folder(folder):
            write_tables(tables)
            return contest.held(made, seeds=seeds, left_out=impossible)


def default_folder(recipe: Recipe) -> Path:
    return Path("runs") / f"compare-{recipe.task}"


# ---------------------------------------------------------------- before anything is trained


def _check_free_keys(vary: Sequence[str], overrides: Sequence[str], *, limits: Sequence[str]) -> None:
    """Refuse what another word of the same call would undo."""
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


def _names(key: str, given: Sequence[str]) -> bool:
    """Whether one of these `KEY=...` sets the key, or the whole group it stands in."""
    keys = [one.partition("=")[0].strip() for one in given]
    return any(key == other or key.startswith(f"{other}.") for other in keys)


def _recipes(
    recipe: str | Path | Mapping[str, Any] | Recipe, wanted: Sequence[Variant], common: Sequence[str], *, skip: bool
) -> tuple[dict[Variant, Recipe], list[str]]:
    """(the recipe of each variant that can be, why each of the others cannot)."""
    made: dict[Variant, Recipe] = {}
    refused: dict[Variant, str] = {}
    for variant in wanted:
        try:
            made[variant] = load_recipe(recipe, overrides=[*common, *variant.overrides])
        except UserError as error:
            refused[variant] = str(error)
    if not made and len(set(refused.values())) == 1:  # what is wrong with all of them is said once
        raise UserError(next(iter(refused.values())))
    reasons = [f"{variant}: {reason}" for variant, reason in refused.items()]
    if refused and (not skip or not made):
        hint = "; --skip leaves them out" if made else ""
        head = f"{counted(len(refused), 'variant')} of {len(wanted)} cannot be trained{hint}:"
        raise UserError("\n".join([head, *(f"  {reason}" for reason in reasons)]))
    return made, reasons


def _by_the_clock(recipes: Iterable[Recipe]) -> list[str]:
    """A line where the recipe's own minutes end the runs, which nobody asked for here."""
    most = max(recipe.training.minutes for recipe in recipes)
    if not most:
        return []
    held = f"every run has the recipe's training.minutes {most:g}"
    return [f"{held}: slower variants may get fewer updates; --updates N gives all the same"]


def _one_metric(made: Mapping[Variant, Recipe]) -> str:
    leading = {followed(recipe)[1] for recipe in made.values()}
    if len(leading) > 1:
        raise UserError(f"variants are picked by different metrics ({', '.join(sorted(leading))}); set training.metric")
    return leading.pop()


# ---------------------------------------------------------------- the runs


@dataclass
class _Contest:
    """A comparison on its way: where it is written, what it reads, and whom it tells."""

    folder: Path
    sources: Sources
    metric: str
    listeners: Sequence[Listener]
    heard: set[str] = field(default_factory=set)

    def say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)

    def held(self, made: Mapping[Variant, Recipe], *, seeds: int, left_out: Sequence[str]) -> Ranking:
        """Every variant from the first seed, then from the next: a comparison cut short has something of each."""
        results, failed = Results(self.folder), dict[Variant, str]()
        outcomes: dict[Variant, list[Outcome]] = {variant: [] for variant in made}
        runs = list(_runs(made, seeds, self.sources))
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
        if len(failed) == len(made):
            raise UserError(next(iter(failed.values())))
        contenders = tuple(
            Contender(str(variant), dict(variant.changes), tuple(found))
            for variant, found in outcomes.items()
            if variant not in failed
        )
        why_not = (*left_out, *(f"{one}: {why}" for one, why in failed.items()))
        return Ranking(self.metric, contenders, str(self.folder), why_not)

    def _outcome(self, run: _Run, results: Results, clock: _Clock) -> Outcome:
        known = run.fingerprint in results
        if known:
            outcome = results[run.fingerprint]
        else:
            outcome = self._train(run)
            results.add(run.fingerprint, run.variant, outcome)
            shutil.rmtree(Path(outcome.model) / CHECKPOINTS, ignore_errors=True)
        said = f"{run}: {self._shown(outcome)}"
        self.say(f"{said}  (trained before)" if known else f"{said}{clock.rest()}")
        return outcome

    def _train(self, run: _Run) -> Outcome:
        """One run, begun or gone on with. One that was stopped by hand ends the comparison too."""
        folder = self.folder / "runs" / run.name
        told = [Watch(self.listeners, self.heard)]
        try:
            bundle = train(run.recipe, self.sources, folder=folder, listeners=told, resume=_begun(folder))
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

    def _shown(self, outcome: Outcome) -> str:
        value = lookup(self.metric).show(outcome.metrics[self.metric])
        return f"{self.metric} {value}  {1000 * outcome.seconds_per_update:,.1f} ms/update  {outcome.seconds:,.0f} s"


class _Clock:
    """How long the rest will take, by the runs that had to be trained so far."""

    def __init__(self, runs: int):
        self.runs, self.trained, self.begun = runs, 0, time.monotonic()

    def rest(self) -> str:
        """After one more."""
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
        """A folder's name that can be read and is no other run's."""
        words = "-".join("".join(c if c.isalnum() else " " for c in str(self.variant)).split())
        return f"{words[:60]}-seed{self.recipe.training.seed}-{self.fingerprint[:8]}"


def _runs(made: Mapping[Variant, Recipe], seeds: int, sources: Sources) -> Iterator[_Run]:
    for more in range(seeds):
        for variant, recipe in made.items():
            training = recipe.training.model_copy(update={"seed": recipe.training.seed + more})
            seeded = recipe.model_copy(update={"training": training})
            yield _Run(variant, seeded, fingerprint(seeded, sources))


def _begun(folder: Path) -> bool:
    """Whether a run lies there that can be gone on with: its first checkpoint comes after all else it needs."""
    begun = (folder / SOURCES).is_file() and (folder / RECIPE).is_file()
    return begun and any((folder / CHECKPOINTS).glob("update-*.safetensors"))


# ---------------- The plot of a comparison


def draw(ranking: Ranking, *, title: str) -> list[Path]:
    """comparison.png and .svg in its folder: by variant the quality with its interval, and the time of an update."""
    quality, time = [], []
    for one in ranking.contenders:
        interval, best = one.interval(ranking.metric), one is ranking.best or one in ranking.tied
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        values = one.values(ranking.metric)
        points = tuple(values) if len(values) > 1 else ()
        quality.append(Row(one.name, one.mean(ranking.metric), low, high, points, strong=best))
        time.append(Row(one.name, 1000 * one.seconds_per_update, strong=best))
    columns = [
        Column(
            f"{ranking.metric} on dev, {ranking.direction} ({_what_is_drawn(ranking)})",
            quality,
            ranking.best.mean(ranking.metric),
            bounds=lookup(ranking.metric).bounds,
        ),
        Column("milliseconds per update", time, width=0.5, from_zero=True),
    ]
    paths = [Path(ranking.folder) / f"comparison.{suffix}" for suffix in ("png", "svg")]
    interval_plot(columns, title=f"{ranking.varied}: {title}", paths=paths)
    return paths


def _what_is_drawn(ranking: Ranking) -> str:
    """Seeds that are all equal lie under their mean, and there is no cross to explain."""
    if len(ranking.best.outcomes) == 1:
        return "one seed"
    apart = any(len(set(one.values(ranking.metric))) > 1 for one in ranking.contenders)
    return f"mean and 95 % interval over seeds{', x: one seed' if apart else ', which are all alike'}"
