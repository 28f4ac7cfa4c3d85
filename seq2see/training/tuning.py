"""A search for the best settings of a recipe within a given time: trials drawn by TPE, stopped early where they fall
behind the median of others at the same share of their time (Optuna, extra `tune`)."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from seq2see.data.records import Data
from seq2see.errors import UserError, counted, imported
from seq2see.evaluation import lookup
from seq2see.evaluation.trials import State, Trial, Tuning, short_names
from seq2see.files import MEBIBYTE, finite, read_json, unwritable, write_bytes
from seq2see.locking import FolderInUse, lock_folder
from seq2see.pipeline.evaluator import report_metrics
from seq2see.recipe import Recipe, fit_recipe, left_out, load_recipe
from seq2see.recipe.fitting import is_open
from seq2see.recipe.load import to_yaml
from seq2see.recipe.messages import RecipeError
from seq2see.recipe.schema import TrainingSettings, flatten
from seq2see.training.checkpoints import CHECKPOINTS, Sources, sources_of, write_tables
from seq2see.training.comparing import Forward, QuietProgress, check_folder, fingerprint
from seq2see.training.dataset import open_table, read_corpus
from seq2see.training.distributed import check_command
from seq2see.training.folds import read_folds
from seq2see.training.optimizer import share_done
from seq2see.training.reports import Listener, Report, UpdateStatus, best_report, progress_unless
from seq2see.training.run import train
from seq2see.training.search_space import (
    Choices,
    Range,
    Source,
    Space,
    check_space,
    default_space,
    override,
    read_space,
)
from seq2see.training.trainer import selection_value

JOURNAL, SEARCH = "trials.log", "search.json"
"""Optuna's journal of the trials (JSON lines), and what a search was started with."""
BEST, MODEL, REPORT = "best.yaml", "model", "tuning"
"""The best recipe, its model, and the report (.txt, .json, .png, .svg)."""
RUNS = "trials"
"""The folder of runs; that of the best trial alone is kept."""
FULL_TRIALS = 10
"""Trials that the time is planned for where no number is given; as some are stopped early, there are more."""
STEPS = 10
"""Shares of a trial's time at which it is compared with others: every tenth."""
UNPRUNED_TRIALS, UNPRUNED_STEPS = 4, 2
"""The first trials are never stopped early, others not before so many tenths of their time."""
RANDOM_TRIALS = 5
"""Trials that are drawn at random before TPE has enough to go by."""
MOST_UNTRAINED, MOST_FAILED = 50, 5
"""Trials in a row that are invalid, were tried before or failed (the space is used up, or nearly all of it is invalid);
and of these the most that failed (the rows may be at fault)."""


def tune(
    recipe: Source,
    data: Data,
    *,
    minutes: float,
    space: str | Path | Mapping[str, Any] | None = None,
    dev: Data | None = None,
    columns: Sequence[str] | None = None,
    by: str | None = None,
    overrides: Sequence[str] = (),
    trials: int | None = None,
    seed: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    listeners: Sequence[Listener] | None = None,
) -> Tuning:
    """Search for the settings of a recipe that are best on dev, for so many minutes in all.

    space: the keys and values to search, as a YAML file or a mapping ({key: {low, high, log}} or {key: {choices:
    [...]}}); None: learning rate, dropout, sizes, batches and label smoothing around those of the recipe.
    trials: at most so many, which share the time; None: as many as the time allows, each a tenth of it at most (and at
    most as many minutes as the recipe has). by: a column; the rows of some of its values (speakers, writers) are left
    out of training and are the dev rows. seed: of the draws; models have that of the recipe.
    resume: go on with the search in `out` (default runs/tune-TASK); a trial that was killed is repeated, once.

    The folder then has the report (tuning.txt, tuning.json), the best recipe (best.yaml) and its model (model/).
    """
    check_command("tune")
    _check_options(minutes, trials)
    optuna = imported("optuna", extra="tune")
    base = load_recipe(recipe, overrides=overrides)
    if base.training.deterministic:
        raise UserError(
            "training.deterministic: true given; allowed: false, as a search ends its trials by the clock "
            "(training.minutes)"
        )
    wanted: Space = {}
    if space is not None:
        wanted, origin = read_space(space)
        check_space(recipe, wanted, overrides, origin=origin)
    folder = Path(out) if out is not None else Path("runs") / f"tune-{base.task}"
    check_folder(folder)
    sources, tables, notes = _sources(base, data, dev, columns, by=by, folder=folder)
    with progress_unless(listeners, QuietProgress) as followers, lock_folder(folder):
        begun = _check_begun(folder, resume)
        write_tables(tables)
        fitted = _fit(base, sources) if any(map(is_open, base.fitted.values())) else None
        wanted = wanted or default_space(recipe if fitted is None else fitted, overrides)
        base = base if fitted is None else fitted
        share = min([minutes / (trials or FULL_TRIALS), *([base.training.minutes] if base.training.minutes else [])])
        start: dict[str, Any] = {
            "run": fingerprint(base, sources),
            "space": _plain(wanted),
            "seed": seed,
            "share": share,
        }
        start = _check_same(folder, start) if begun else _write_start(folder, start)
        study = _open_study(optuna, folder, seed)
        search = _Search(
            optuna=optuna,
            study=study,
            recipe=recipe if fitted is None else fitted,
            overrides=tuple(overrides) if fitted is None else (),
            space=wanted,
            sources=sources,
            folder=folder,
            share=float(start["share"]),
            metric=report_metrics(base)[1],
            listeners=followers,
        )
        for note in [*left_out(recipe, overrides), *notes]:
            search.say(note)
        search.begin(base)
        search.run(minutes=minutes, trials=trials)
        return search.finish(base, minutes=minutes)


def _check_options(minutes: float, trials: int | None) -> None:
    if not 0 < minutes < math.inf:
        raise UserError(f"minutes: {minutes} given; allowed: above 0")
    if trials is not None and trials < 1:
        raise UserError(f"trials: {trials} given; allowed: 1 or more")


def _sources(
    recipe: Recipe, data: Data, dev: Data | None, columns: Sequence[str] | None, *, by: str | None, folder: Path
) -> tuple[Sources, dict[Path, bytes], list[str]]:
    """(the tables, those to write first, notes). by: the dev rows are those of values that are not trained on."""
    if by is None:
        sources, tables = sources_of(recipe, data, dev, columns, folder=folder)
        if not tables:
            open_table(recipe, sources.data, columns)
        return sources, tables, []
    if dev is not None:
        raise UserError(f"dev: the dev rows are those of the values of '{by}' that are left out of training; give one")
    folds = read_folds(recipe, data, columns, by=by, dev_from="rows", folder=folder)
    fold = folds.parts[0]
    train, aside = Path(fold.sources.data), Path(str(fold.sources.dev))
    tables = {train: folds.content(train, aside), fold.test: folds.content(fold.test)}
    note = f"dev: the {counted(len(fold.group_of), 'row')} of '{by}' {', '.join(fold.groups)}, which are not trained on"
    return replace(fold.sources, dev=str(fold.test)), tables, [*folds.notes[:-1], note]


def _fit(recipe: Recipe, sources: Sources) -> Recipe:
    """The recipe with what was `auto` fitted to the table, so that trials vary what a run would have had."""
    with tempfile.TemporaryDirectory() as own:
        corpus = read_corpus(recipe, sources.data, dev=sources.dev, columns=sources.columns, folder=Path(own))
        return fit_recipe(recipe, corpus.facts).model_copy(update={"fitted": {}})


# ---------------------------------------------------------------- a search on disk


def _check_begun(folder: Path, resume: bool) -> bool:
    """Whether a search goes on; refuse to mix up two."""
    begun = (folder / SEARCH).is_file()
    if begun and not resume:
        raise UserError(
            f"{folder} already holds a search, and nothing was changed; --resume continues it, --out names another "
            "folder"
        )
    if resume and not begun:
        raise UserError(f"{folder}: nothing to resume; the folder of a search holds {SEARCH} and {JOURNAL}")
    return begun


def _write_start(folder: Path, start: dict[str, Any]) -> dict[str, Any]:
    (folder / JOURNAL).unlink(missing_ok=True)  # of a search that was killed before it began
    write_bytes(folder / SEARCH, (json.dumps(start, ensure_ascii=False, indent=1) + "\n").encode())
    return start


def _check_same(folder: Path, start: dict[str, Any]) -> dict[str, Any]:
    """What a search was begun with; refuse another recipe, other rows, another space or seed."""
    before = read_json(folder / SEARCH, most=MEBIBYTE, what="what a search was started with")
    if not isinstance(before, dict) or before.keys() != start.keys() or not isinstance(before["share"], int | float):
        raise UserError(f"{folder / SEARCH}: damaged: it does not say what the search was started with")
    words = {"run": "the recipe or the rows", "space": "the space", "seed": "the seed"}
    for name, what in words.items():
        if before[name] != start[name]:
            raise UserError(
                f"{folder}: {what} changed since the search was started; --resume continues it as it was; give another "
                "--out to start a new one"
            )
    return before


def _plain(space: Space) -> dict[str, Any]:
    return {key: dimension.to_dict() for key, dimension in space.items()}


class _NoLock:
    """Of Optuna's journal: the folder is locked already, by the kernel."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _open_study(optuna: Any, folder: Path, seed: int) -> Any:
    """The study in the journal of a folder; a last line that was cut short by a kill is removed."""
    path = folder / JOURNAL
    try:
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_bytes(path, whole)
    except OSError as error:
        raise unwritable(folder, error) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        journal = optuna.storages.journal.JournalFileBackend(str(path), lock_obj=_NoLock())
        storage = optuna.storages.JournalStorage(journal)
        study = optuna.create_study(
            study_name="tune", storage=storage, direction="maximize", load_if_exists=True, pruner=_pruner(optuna)
        )
        begun = len(study.get_trials(deepcopy=False))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f"{path}: damaged, not the journal of a search: {type(error).__name__}: {error}") from None
    # a search that goes on must not draw again what it drew before
    study.sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed + begun)
    return study


def _pruner(optuna: Any) -> Any:
    return optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=UNPRUNED_STEPS)


# ---------------------------------------------------------------- trials


class _Pruned(Exception):
    """Ends the run of a trial that has fallen behind."""


class _Watch:
    """Follows the run of a trial: tells Optuna the best score by each tenth of its time (that of the first report in
    the tenth, or of the last one before it), and ends it where that is behind the median of other trials."""

    def __init__(self, trial: Any, settings: TrainingSettings):
        self.trial, self.settings = trial, settings
        self.began = time.monotonic()
        self.step, self.best = 0, -math.inf
        self.dev: dict[str, float] = {}
        self.updates = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def on_update(self, status: UpdateStatus) -> None:
        pass

    def on_report(self, report: Report, metric: str) -> None:
        self.trial.set_user_attr("seconds", self.seconds)  # what a killed trial has used of the budget
        share = share_done(self.settings, epochs=report.epoch, updates=report.update, seconds=report.seconds)
        reached, before = min(int(share * STEPS + 1e-9), STEPS), self.best
        self.updates = report.update
        value = selection_value(report.dev, metric)
        if value > self.best:
            self.best, self.dev = value, dict(report.dev)
        if reached <= self.step or not math.isfinite(self.best):
            return
        for step in range(self.step + 1, reached) if math.isfinite(before) else ():
            self.trial.report(before, step)
        self.trial.report(self.best, reached)
        self.step = reached
        if share < 1 and self.trial.should_prune():
            raise _Pruned

    def on_message(self, message: str) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class _Search:
    """A running search. share: minutes of a trial that is not stopped early."""

    optuna: Any
    study: Any
    recipe: Source
    overrides: tuple[str, ...]
    space: Space
    sources: Sources
    folder: Path
    share: float
    metric: str
    listeners: Sequence[Listener]
    messages: set[str] = field(default_factory=set)

    def say(self, message: str) -> None:
        for listener in self.listeners:
            listener.on_message(message)

    def begin(self, base: Recipe) -> None:
        """Repeat trials that were killed or crashed, once; a new search begins with the recipe as it is."""
        states = self.optuna.trial.TrialState
        for trial in self.study.get_trials(states=[states.RUNNING]):
            attributes = trial.user_attrs
            if attributes.get("again") and not attributes.get("stopped") and "settings" in attributes:
                reason = attributes.get("crash", "it was killed")
                again = self.optuna.trial.Trial(self.study, trial._trial_id)
                self._end(again, "failed", reasons=[f"twice stopped before its end: {reason}"])
                continue
            self.study.tell(trial.number, state=states.FAIL)
            if trial.params.keys() == self.space.keys():
                kept = {"own": True} if attributes.get("own") else {}
                if attributes.get("again") or not attributes.get("stopped"):
                    kept["again"] = True
                self.study.enqueue_trial(trial.params, user_attrs=kept)
                self.say(f"trial {trial.number} was stopped before its end, and is repeated")
        if self.study.get_trials(deepcopy=False):
            return
        settings = dict(flatten(base.to_dict()))
        outside = [key for key, dimension in self.space.items() if settings.get(key) not in dimension]
        if outside:
            self.say(f"the unchanged recipe is not among the trials: its {outside[0]} is outside the space")
        else:
            own = {key: settings[key] for key in self.space}
            self.study.enqueue_trial(own, user_attrs={"own": True})

    def run(self, *, minutes: float, trials: int | None) -> None:
        """Try settings until the time, the trials or the space are used up, or nothing can be trained."""
        in_a_row: Counter[str] = Counter()
        combinations = _combinations(self.space)
        while self._time_left(minutes) and not self._enough(trials):
            if len(self._tried) == combinations:
                self.say(f"all {combinations:,} combinations were tried: the search ends")
                return
            state = self._try()
            in_a_row = Counter() if state in ("complete", "pruned") else in_a_row + Counter([state])
            if in_a_row["failed"] == MOST_FAILED or in_a_row.total() == MOST_UNTRAINED:
                ended = ", ".join(f"{number} {state}" for state, number in in_a_row.items())
                self.say(f"{in_a_row.total()} trials in a row could not be trained ({ended}): the search ends")
                return

    def _time_left(self, minutes: float) -> bool:
        """Whether a whole trial still fits into the time, or there was none yet."""
        spent = sum(trial.user_attrs.get("seconds", 0.0) for trial in self.study.get_trials(deepcopy=False))
        complete = [trial.user_attrs.get("seconds", 0.0) for trial in self._trained("complete")]
        usual = median(complete) if complete else 60 * self.share
        return spent + usual <= 60 * minutes or (not complete and spent < 60 * minutes)

    def _enough(self, trials: int | None) -> bool:
        return trials is not None and len(self._trained("complete", "pruned", "failed")) >= trials

    def _trained(self, *states: str) -> list[Any]:
        """The trials that ended in one of these ways."""
        trials = self.study.get_trials(deepcopy=False)
        return [trial for trial in trials if self._has_ended(trial) and trial.user_attrs["state"] in states]

    def _has_ended(self, trial: Any) -> bool:
        """Whether a trial came to its end, and was not killed."""
        states = self.optuna.trial.TrialState
        return trial.state in (states.COMPLETE, states.PRUNED)

    @property
    def _tried(self) -> dict[str, Any]:
        """The first trial with each settings."""
        tried: dict[str, Any] = {}
        for trial in self._trained("complete", "pruned", "invalid", "failed"):
            tried.setdefault(_identity(trial.user_attrs["settings"]), trial)
        return tried

    def _try(self) -> State:
        """One trial, and how it ended."""
        trial = self.study.ask()
        settings = {key: _suggest(trial, key, dimension) for key, dimension in self.space.items()}
        trial.set_user_attr("settings", settings)
        if (before := self._tried.get(_identity(settings))) is not None:
            value = before.value if before.user_attrs["state"] == "complete" else None
            return self._end(trial, "repeated", value=value, dev=before.user_attrs["dev"])
        try:
            recipe = load_recipe(self.recipe, overrides=self.overrides_of(settings))
        except RecipeError as error:
            return self._end(trial, "invalid", reasons=sorted({problem.rule for problem in error.problems}))
        return self._train(trial, recipe)

    def overrides_of(self, settings: Mapping[str, Any]) -> list[str]:
        """The changes of a trial, on top of the recipe."""
        changes = [override(key, value) for key, value in settings.items()]
        return [*self.overrides, override("training.minutes", self.share), *changes]

    def _train(self, trial: Any, recipe: Recipe) -> State:
        folder, watch = self._run_folder(trial.number), _Watch(trial, recipe.training)
        shutil.rmtree(folder, ignore_errors=True)
        listeners: list[Listener] = [Forward(self.listeners, self.messages), watch]
        state: State = "complete"
        reasons: list[str] = []
        value: float | None = None
        try:
            train(recipe, self.sources, folder=folder, listeners=listeners)
            watch.dev = best_report(folder)["dev"]
            value = selection_value(watch.dev, self.metric)
            if not math.isfinite(value):
                state, value, reasons = "failed", None, [f"no finite {self.metric}"]
        except _Pruned:
            state = "pruned"
        except FolderInUse:
            raise
        except UserError as error:
            state, reasons = "failed", [str(error)[:500]]
        except (KeyboardInterrupt, SystemExit):
            trial.set_user_attr("stopped", True)  # by its user: the trial is not at fault
            self.say("the search was stopped; --resume continues from here")
            raise
        except Exception as error:
            trial.set_user_attr("crash", f"{type(error).__name__}: {error}"[:500])
            raise
        trial.set_user_attr("seconds", watch.seconds)
        self._end(trial, state, value=value, dev=watch.dev, updates=watch.updates, reasons=reasons)
        self._clean()
        return state

    def _end(
        self,
        trial: Any,
        state: State,
        *,
        value: float | None = None,
        dev: Mapping[str, float] | None = None,
        updates: int = 0,
        reasons: Sequence[str] = (),
    ) -> State:
        """Write down what came of a trial, and tell it."""
        for name, what in {"state": state, "dev": finite(dict(dev or {})), "updates": updates}.items():
            trial.set_user_attr(name, what)
        trial.set_user_attr("reasons", list(reasons))
        if value is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        else:
            self.study.tell(trial, value)
        if state == "repeated":
            return state
        names = short_names(self.space)
        changes = ", ".join(f"{names[key]} {value}" for key, value in trial.user_attrs["settings"].items())
        score = f"{self.metric} {lookup(self.metric).show(dev[self.metric])}" if dev else "; ".join(reasons)
        best = "  best so far" if state == "complete" and self._best().number == trial.number else ""
        ended = "" if state == "complete" else f"{state}, "
        self.say(f"trial {trial.number}: {ended}{score}{best}  ({changes})")
        return state

    def _best(self) -> Any:
        """The best complete trial so far, the first of equal ones."""
        return max(self._trained("complete"), key=lambda trial: (trial.value, -trial.number))

    def _run_folder(self, number: int) -> Path:
        return self.folder / RUNS / f"{number:04d}"

    def _clean(self) -> None:
        """Remove the runs of all trials but the best."""
        complete = self._trained("complete")
        kept = self._run_folder(self._best().number).name if complete else ""
        for path in (self.folder / RUNS).glob("*"):
            if path.name != kept:
                shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.folder / RUNS / kept / CHECKPOINTS, ignore_errors=True)

    # ------------------------------------------------------------ the end

    def finish(self, base: Recipe, *, minutes: float) -> Tuning:
        """Write the report, the best recipe and its model."""
        record = self._record(base, minutes)
        if not record.counts["complete"]:
            reasons = [f"trial {trial.number}: {'; '.join(trial.reasons)}" for trial in record.trials if trial.reasons]
            raise UserError("\n".join(["no trial could be trained to its end:", *dict.fromkeys(reasons)][:20]))
        best = record.best
        recipe = load_recipe(self.recipe, overrides=self.overrides_of(best.settings))
        score = f"{record.metric} {lookup(record.metric).show(best.dev[record.metric])}"
        head = (
            f"# {base.task}, settings found by seq2see tune: dev {score}, trial {best.number} of {len(record.trials)}\n"
        )
        limit = f"# trained for {self.share:.3g} minutes; more: --minutes\n"
        write_bytes(self.folder / BEST, (head + limit + to_yaml(recipe)).encode())
        self._copy_model(self._run_folder(best.number))
        lines = json.dumps(finite(record.to_dict()), ensure_ascii=False, indent=1)
        write_bytes(self.folder / f"{REPORT}.json", f"{lines}\n".encode("utf-8", "backslashreplace"))
        write_bytes(self.folder / f"{REPORT}.txt", record.text().encode("utf-8", "backslashreplace"))
        return record

    def _record(self, base: Recipe, minutes: float) -> Tuning:
        trials, ended, own = [], 0.0, None
        for trial in self.study.get_trials(deepcopy=False):
            attributes = trial.user_attrs
            seconds = float(attributes.get("seconds", 0.0))
            ended += seconds
            if not self._has_ended(trial):  # it was killed, and is repeated
                continue
            own = trial.number if attributes.get("own") else own
            trials.append(
                Trial(
                    number=trial.number,
                    settings=attributes["settings"],
                    state=attributes["state"],
                    value=trial.value if attributes["state"] in ("complete", "repeated") else None,
                    dev={name: math.inf if value is None else value for name, value in attributes["dev"].items()},
                    seconds=seconds,
                    ended=ended,
                    updates=attributes["updates"],
                    reasons=tuple(attributes["reasons"]),
                )
            )
        return Tuning(
            task=base.task,
            metric=self.metric,
            trials=tuple(trials),
            space=_plain(self.space),
            minutes=minutes,
            share=self.share,
            own=own,
            folder=str(self.folder),
        )

    def _copy_model(self, run: Path) -> None:
        """Put the best trial's model in its place, complete or not at all."""
        part, place = self.folder / f".{MODEL}", self.folder / MODEL
        if not run.is_dir():
            raise UserError(f"{run}: missing; it has the model of the best trial, whose settings are in {BEST}")
        try:
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(run, part, ignore=shutil.ignore_patterns(CHECKPOINTS, ".lock"))
            shutil.rmtree(place, ignore_errors=True)
            part.rename(place)
        except OSError as error:
            raise unwritable(place, error) from None


def _identity(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _combinations(space: Space) -> float:
    """How many settings there are; infinity where a key has a range."""
    return math.prod(len(one.values) if isinstance(one, Choices) else math.inf for one in space.values())


def _suggest(trial: Any, key: str, dimension: Range | Choices) -> Any:
    """A value for a key, drawn by Optuna."""
    if isinstance(dimension, Choices):
        return trial.suggest_categorical(key, dimension.values)
    if dimension.whole:
        return trial.suggest_int(key, dimension.low, dimension.high, log=dimension.log)
    return dimension.rounded(trial.suggest_float(key, dimension.low, dimension.high, log=dimension.log))


# ---------------------------------------------------------------- plot


def draw_tuning(tuning: Tuning, *, title: str) -> list[Path]:
    """Draw tuning.png and .svg in its folder: scores over time, and against the values of each key."""
    from seq2see.seeing.trials import Axis, Dot, trials_plot

    metric = lookup(tuning.metric)
    dots = [
        Dot(trial.ended / 60, trial.dev[tuning.metric], trial.settings, trial.state == "pruned")
        for trial in tuning.trials
        if trial.state in ("complete", "pruned") and tuning.metric in trial.dev
    ]
    axes = [
        Axis(key, tuple(values.get("choices", ())), bool(values.get("log"))) for key, values in tuning.space.items()
    ]
    paths = [Path(tuning.folder) / f"{REPORT}.{suffix}" for suffix in ("png", "svg")]
    trials_plot(
        dots,
        axes,
        metric=f"{tuning.metric} on dev",
        higher_is_better=metric.higher_is_better,
        title=f"{tuning.task}: {title}",
        paths=paths,
    )
    return paths
