"""What happens to a case now beside what the record says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.recipe.record import adapter
from tests.recipe.record.changes import ADDED, EXCEPTIONS, GONE, listed, may_be_of_another_kind, of_another_kind
from tests.recipe.record.storage import Case, Outcome, Record, dump_of, leaves_of, outcome_of, same

SHOWN = 12
"""Differences of one test that are told in full."""


@dataclass(frozen=True)
class Difference:
    """A case that does not end as it did. what: of which sort, the same words for all that may have the same cause."""

    case: Case
    was: Outcome
    now: Outcome
    what: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.case}", f"  {self.what}", *(f"    {line}" for line in self.details)])


def compared(record: Record, cases: Iterable[Case]) -> list[Difference]:
    """The differences that no table of changes explains."""
    pairs = ((case, outcome_of(record.sources[case.source], case.overrides)) for case in cases)
    found = (difference(case, record.outcomes[case], now) for case, now in pairs)
    return [one for one in found if one is not None]


def difference(case: Case, was: Outcome, now: Outcome) -> Difference | None:
    """What is not as it was; None where nothing is, or where it is meant to be."""
    kinds = was.short.partition(":")[0], now.short.partition(":")[0]
    if was.error or (not now.error and any(one.covers(str(case), was.short, now.short) for one in EXCEPTIONS)):
        return None
    if kinds[0] != kinds[1]:
        return Difference(case, was, now, f"was {kinds[0]}, is {kinds[1]}", (now.error or now.message or was.message,))
    if was.message:
        return _refused(case, was, now)
    return _accepted(case, was, now)


def _refused(case: Case, was: Outcome, now: Outcome) -> Difference | None:
    if was.paths == now.paths or not (was.all_told and now.all_told):
        return None
    if {*was.paths} < {*now.paths} and all(map(may_be_of_another_kind, {*now.paths} - {*was.paths})):
        return None
    lost, new = sorted({*was.paths} - {*now.paths}), sorted({*now.paths} - {*was.paths})
    what = "; ".join([f"no longer named: {', '.join(map(_general, lost))}"] * bool(lost)
                     + [f"now named: {', '.join(map(_general, new))}"] * bool(new))  # fmt: skip
    return Difference(case, was, now, f"refused, {what}", (f"was: {was.message}", f"now: {now.message}"))


def _accepted(case: Case, was: Outcome, now: Outcome) -> Difference | None:
    wrong = _leaves(was, now)
    dropped, now_dropped = ({line.partition(" ")[0] for line in one.left_out} for one in (was, now))
    for path in sorted(dropped ^ now_dropped):
        wrong[path] = "no longer said to be left out" if path in dropped else "now said to be left out"
    if bool(was.notes) != bool(now.notes):
        wrong["notes"] = "are given, and none were" if now.notes else "are missing, and some were given"
    if not wrong:
        return None
    what = "; ".join(dict.fromkeys(f"{_general(path)} {said.partition(':')[0]}" for path, said in wrong.items()))
    return Difference(case, was, now, f"accepted, {what}", tuple(f"{path} {said}" for path, said in wrong.items()))


def _leaves(was: Outcome, now: Outcome) -> dict[str, str]:
    """{path: how it differs} of the leaves."""
    if was.digest == now.digest:
        return {}
    wrong = {}
    for path, value in was.leaves.items():
        if path not in now.leaves and not listed(path, GONE) and not of_another_kind(path, value):
            wrong[path] = f"is gone: {value!r}"
        elif path in now.leaves and not same(value, now.leaves[path]):
            wrong[path] = f"has another value: was {value!r}, is {now.leaves[path]!r}"
    for path in now.leaves.keys() - was.leaves.keys():
        if not listed(path, ADDED):
            wrong[path] = f"is new: {now.leaves[path]!r}"
    return wrong


def read_again(record: Record, case: Case) -> str | None:
    """What is wrong when the recipe that this case wrote into a model's folder is read now; None where nothing is."""
    was = record.outcomes[case]
    now = _read_again(was)
    if now.message or now.error:
        return f"{case}: written before, and now {now.message or now.error}"
    wrong = _leaves(was, now)
    return f"{case}: read again, {'; '.join(f'{path} {said}' for path, said in wrong.items())}" if wrong else None


def _read_again(was: Outcome) -> Outcome:
    try:
        made = adapter.load(dump_of(was.leaves), complete=True)
    except adapter.UserError as error:
        return Outcome(message=str(error))
    return Outcome(leaves_of(made.dump))


def _general(path: str) -> str:
    """The path whatever the input is called."""
    return re.sub(r"^inputs\.[^.]+", "inputs.NAME", path)


def rare(record: Record) -> list[Case]:
    """A case for each sort of message in the record, so that no rule goes untried in a sample."""
    found: dict[str, Case] = {}
    for case in sorted(record.outcomes, key=lambda one: one.number):
        for line in record.outcomes[case].message.split("\n"):
            found.setdefault(_sort(line), case)
    return list(dict.fromkeys(found.values()))


def _sort(line: str) -> str:
    """A message without its values, paths and lists of what is allowed."""
    line = re.sub(r"^(recipe: )?\s*[^\s:]*: ", "", line)
    line = re.sub(r"(; allowed:|, got|; add it|before it;).*", "", line)
    return re.sub(r"'[^']*'|[-\d.,]*\d|inputs\.\w+|--set \S+", "_", line)[:60]


def told(differences: Sequence[Difference]) -> str:
    """For a failing test."""
    shown = [str(one) for one in differences[:SHOWN]]
    more = [f"... and {len(differences) - SHOWN:,} more"] if len(differences) > SHOWN else []
    hint = "all of them, in groups: python -m tests.recipe.record.differences; what is meant: changes.py"
    return "\n".join([f"{len(differences):,} cases differ from the record ({hint})", *shown, *more])
