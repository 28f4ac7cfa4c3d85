"""Settings that fit the table: what `auto` becomes, and why.

A setting whose type is marked `Fitted` may be `auto`. Until a table is read it has the value for a table of 10,000 rows
(`REFERENCE`); a run fits it once the rows are counted, and the recipe of its model says so under `fitted`. The rules
were measured on tables of 100 to 3,600 rows, and follow a recipe for 100,000; between these they are drawn by hand
(docs/results.md, *Settings that fit the table*; `benchmarks/studies/fitting.py` measures them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log10
from typing import Any, TypeVar

from seq2see.settings.base import Scalar


@dataclass(frozen=True)
class TableFacts:
    """What is known of the rows that are trained on. symbols: of all outputs, their ends included (labels and numbers
    count as one each); tokens: of inputs and outputs, as batches count them."""

    rows: int
    symbols: int
    tokens: int

    @property
    def text(self) -> str:
        return f"{self.rows:,} rows, {self.symbols:,} output symbols"


REFERENCE = TableFacts(rows=10_000, symbols=80_000, tokens=160_000)
"""The table that `show` assumes where it has none."""

Group = Mapping[str, Any]
Rule = Callable[[TableFacts, str, Group], Scalar]
R = TypeVar("R", bound=Rule)
RULES: dict[str, Rule] = {}


def fitted(rule: str, facts: TableFacts, path: str, group: Group) -> Scalar:
    """The value of the setting at a path, by the rule that its type names. group: the keys beside it, those before it
    fitted already."""
    return RULES[rule](facts, path, group)


def is_open(reason: str) -> bool:
    """Whether a setting in `fitted` still waits for its table: then it has a number there, and no reason."""
    return ": " not in reason


def fitted_notes(reasons: Mapping[str, str]) -> list[str]:
    """A line on the settings that were `auto`: for what table, and what they became; or what they are shown as.

    >>> fitted_notes({"encoder.size": "96: 400 rows", "decoder.size": "192: 400 rows"})
    ['auto, for 400 rows: encoder.size 96, decoder.size 192']
    >>> fitted_notes({"encoder.size": "176"})
    ['auto, to be fitted to the table (here: one of 10,000 rows): encoder.size']
    """
    waiting = [path for path, reason in reasons.items() if is_open(reason)]
    notes = [f"auto, to be fitted to the table (here: one of {REFERENCE.rows:,} rows): {', '.join(waiting)}"]
    tables: dict[str, list[str]] = {}
    for path, reason in reasons.items():
        value, _, table = reason.partition(": ")
        if not is_open(reason):
            tables.setdefault(table, []).append(f"{path} {value}")
    return notes[: bool(waiting)] + [f"auto, for {table}: {', '.join(values)}" for table, values in tables.items()]


def _rule(name: str) -> Callable[[R], R]:
    def add(rule: R) -> R:
        RULES[name] = rule
        return rule

    return add


def _clipped(value: float, least: float, most: float) -> float:
    return max(least, min(value, most))


@_rule("size")
def fit_size(facts: TableFacts, path: str, group: Group) -> int:
    """States of 128 numbers (of each direction) up to 25,000 output symbols, from there on growing with their fourth
    root, to 256 for 400,000; those of a decoder twice as many, embeddings and attention half. Smaller ones learn less
    even from a few hundred rows."""
    size = 16 * round(_clipped(256 * (facts.symbols / 400_000) ** 0.25, 128, 256) / 16)
    if path.endswith("embedding.size") or path.startswith("attention."):
        return size // 2
    return 2 * size if path.startswith("decoder.") else size


@_rule("dropout")
def fit_dropout(facts: TableFacts, path: str, group: Group) -> float:
    """From 0.3 for a million output symbols to 0.45 for a few thousand; half of it on embeddings."""
    share = _clipped(0.3 + 0.06 * (6 - log10(max(facts.symbols, 1))), 0.2, 0.5)
    return round(share / 2 if path.endswith("embedding.dropout") else share, 2)


@_rule("batch")
def fit_batch(facts: TableFacts, path: str, group: Group) -> int:
    """About 100 batches an epoch, of 300 to 1,500 symbols: small tables learn more from many small steps."""
    return 50 * round(_clipped(facts.tokens / 100, 300, 1_500) / 50)


@_rule("rate")
def fit_rate(facts: TableFacts, path: str, group: Group) -> float:
    """From 0.003 for up to 50,000 output symbols to 0.0015 for a million and more: large states bear less."""
    return round(_clipped(0.003 * (50_000 / max(facts.symbols, 1)) ** 0.23, 0.0015, 0.003), 4)


@_rule("ema")
def fit_ema(facts: TableFacts, path: str, group: Group) -> float:
    """An average over about three of a hundred of the run's updates."""
    batch = group.get("batch_tokens")
    batches = max(facts.tokens / (batch if isinstance(batch, int) else fit_batch(facts, path, group)), 1)
    epochs = group.get("epochs")
    epochs = epochs if isinstance(epochs, int) and epochs else fit_epochs(facts, path, group)
    updates = group.get("updates")
    planned = min(epochs * batches, updates) if isinstance(updates, int) and updates else epochs * batches
    return round(_clipped(1 - 1 / max(0.03 * planned, 1), 0.9, 0.999), 4)


@_rule("reports")
def fit_reports(facts: TableFacts, path: str, group: Group) -> int:
    """0, which is the same: reports are planned by the rows of train and dev (`epochs_between_reports` in
    training/reports.py)."""
    return 0


@_rule("epochs")
def fit_epochs(facts: TableFacts, path: str, group: Group) -> int:
    """Small tables are read more often: 20 times for a million output symbols, 60 times for 25,000."""
    return round(_clipped(20 * (1_000_000 / max(facts.symbols, 1)) ** 0.3, 15, 150))
