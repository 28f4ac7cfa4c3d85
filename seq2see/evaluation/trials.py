"""The result of a search for settings: its trials, the best of them, and how far its score can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from seq2see.errors import counted
from seq2see.evaluation.metrics import lookup
from seq2see.evaluation.tables import Tabular

if TYPE_CHECKING:
    from rich.table import Table

State = Literal["complete", "pruned", "invalid", "failed", "repeated"]
SHOWN = 10
"""Trials in the table of a report."""


@dataclass(frozen=True)
class Trial:
    """One trial of a search.

    settings: the values that it tried; state: trained to its end, stopped early as it fell behind the median of others
    (pruned), refused by the rules of recipes (invalid), ended by an error (failed), or not tried, as an earlier one had
    the same settings (repeated); value: what trials are ranked by, higher is better; dev: metrics of its
    best model, or of the last report before it was pruned; seconds: of the trial; ended: seconds of the whole search at
    its end; reasons: rules that it broke, or the error.
    """

    number: int
    settings: dict[str, Any]
    state: State
    value: float | None
    dev: dict[str, float]
    seconds: float
    ended: float
    updates: int = 0
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "trial": self.number,
            "state": self.state,
            "settings": self.settings,
            "dev": self.dev,
            "seconds": round(self.seconds, 2),
            "updates": self.updates,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True)
class Tuning(Tabular):
    """All trials of a search in their order.

    metric: the one that decides; space: the values of each key that were searched, as in the
    file of a space; minutes: of the whole budget; share: minutes of a trial that is not pruned; own: the number of the
    trial with the recipe's own settings, where they lie in the space; folder: where report, recipe and model are.
    """

    task: str
    metric: str
    trials: tuple[Trial, ...]
    space: Mapping[str, Mapping[str, Any]]
    minutes: float
    share: float
    own: int | None = None
    folder: str = ""

    @cached_property
    def best(self) -> Trial:
        """The trial with the best score; of equal ones the first."""
        complete = [trial for trial in self.trials if trial.state == "complete" and trial.value is not None]
        return max(complete, key=lambda trial: (trial.value, -trial.number))

    @property
    def counts(self) -> Counter[str]:
        """How many trials ended in which way."""
        return Counter(trial.state for trial in self.trials)

    @property
    def invalid(self) -> Counter[str]:
        """How often which rule of recipes refused the settings of a trial."""
        return Counter(rule for trial in self.trials if trial.state == "invalid" for rule in trial.reasons)

    @property
    def spent(self) -> float:
        """Minutes that the trials took."""
        return sum(trial.seconds for trial in self.trials) / 60

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "metric": self.metric,
            "best": self.best.to_dict(),
            "own": None if self._own is None else self._own.to_dict(),
            "trials": [trial.to_dict() for trial in self.trials],
            "counts": dict(self.counts),
            "invalid": dict(self.invalid),
            "space": {key: dict(values) for key, values in self.space.items()},
            "minutes": self.minutes,
            "minutes_spent": round(self.spent, 3),
            "minutes_per_trial": self.share,
            "warning": self.warning,
            "folder": self.folder,
        }

    @property
    def warning(self) -> str:
        """Why the best score is too good to be true."""
        tried = sum(trial.state in ("complete", "pruned") for trial in self.trials)
        return (
            f"the best of {counted(tried, 'trial')} was chosen on the same dev rows, so its dev score is optimistic; "
            "rows that no trial was measured on tell what it is worth (seq2see evaluate)"
        )

    @property
    def _own(self) -> Trial | None:
        """The trial of the recipe as it was, if it was measured."""
        return next((trial for trial in self.trials if trial.number == self.own and trial.dev), None)

    def tables(self) -> list[Table]:
        """The best trials."""
        from rich.table import Table

        direction = "higher is better" if lookup(self.metric).higher_is_better else "lower is better"
        keys = list(self.space)
        others = [name for name in self.best.dev if name != self.metric]
        table = Table("trial", self.metric, *others, title=f"{self.task}: {self.metric} on dev, {direction}")
        for name in [*short_names(keys).values(), "seconds"]:
            table.add_column(name, justify="right")
        for trial in self._ranked[:SHOWN]:
            scores = [_shown(name, trial.dev) for name in (self.metric, *others)]
            values = [_brief(trial.settings.get(key, "")) for key in keys]
            mark = "best" if trial is self.best else "as given" if trial is self._own else ""
            table.add_row(f"{trial.number} {mark}".strip(), *scores, *values, f"{trial.seconds:,.0f}")
        return [table]

    @property
    def _ranked(self) -> list[Trial]:
        """The trials that were trained to their end, the best first."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        return sorted(complete, key=lambda trial: (-(trial.value or 0.0), trial.number))

    def remarks(self) -> list[str]:
        """What came of all of them."""
        words = {
            "complete": "trained to the end",
            "pruned": "stopped early",
            "invalid": "invalid",
            "failed": "failed",
        }
        counts = ", ".join(f"{self.counts[state]:,} {word}" for state, word in words.items() if self.counts[state])
        different = counted(len(self.trials) - self.counts["repeated"], "trial")
        lines = [f"{different} in {self.spent:.1f} of {self.minutes:g} minutes: {counts}"]
        if self.invalid:
            rules = ", ".join(f"{rule} {number:,}" for rule, number in self.invalid.most_common())
            lines.append(f"rules that refused settings: {rules}")
        failed = [trial for trial in self.trials if trial.state == "failed"]
        lines += [f"trial {trial.number} failed: {'; '.join(trial.reasons)}" for trial in failed[:3]]
        changes = ", ".join(f"{key} {_brief(value)}" for key, value in self.best.settings.items())
        lines.append(f"best: trial {self.best.number}, {self.metric} {_shown(self.metric, self.best.dev)}: {changes}")
        if self._own is not None and self._own is not self.best:
            lines.append(f"the recipe as given: {self.metric} {_shown(self.metric, self._own.dev)} ({self._own.state})")
        return [*lines, self.warning]


def short_names(keys: Iterable[str]) -> dict[str, str]:
    """Each key with its last part, where no other key has the same.

    >>> short_names(["training.learning_rate", "encoder.size", "decoder.size"])
    {'training.learning_rate': 'learning_rate', 'encoder.size': 'encoder.size', 'decoder.size': 'decoder.size'}
    """
    last = {key: key.rpartition(".")[2] for key in keys}
    counts = Counter(last.values())
    return {key: name if counts[name] == 1 else key for key, name in last.items()}


def _brief(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _shown(name: str, values: Mapping[str, float]) -> str:
    return lookup(name).show(values[name]) if name in values else "-"
