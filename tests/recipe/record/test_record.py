"""Recipes are accepted and refused as they were when the record was made, with the same keys named and the same
settings resolved. What is meant to differ stands in changes.py."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.recipe.record import adapter
from tests.recipe.record.cases import SMALL
from tests.recipe.record.changes import Change
from tests.recipe.record.comparing import compared, difference, rare, read_again, told
from tests.recipe.record.storage import Case, Outcome, Record, sampled

SAMPLE = 0.01
"""Share of the cases in the default suite; one of each sort of message is added."""
AGAIN = 0.02
"""Share of the accepted ones whose dump is read again there."""
AREAS = ["as they are", "attention", "decoder", "encoder", "inputs", "output", "loss", "training", "search"]
AREAS += ["evaluation", "data", "others"]


@cache
def record() -> Record:
    return Record.read()


@cache
def sample() -> frozenset[Case]:
    return frozenset([*sampled(list(record().outcomes), SAMPLE), *rare(record())])


def in_area(area: str) -> list[Case]:
    return [case for case in record().outcomes if (case.area if case.area in AREAS else "others") == area]


def accepted() -> list[Case]:
    return [case for case, outcome in record().outcomes.items() if outcome.short == "accepted"]


@pytest.mark.parametrize("area", AREAS)
def test_a_sample_ends_as_recorded(area: str) -> None:
    found = compared(record(), [case for case in in_area(area) if case in sample()])
    assert not found, told(found)


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_every_case_ends_as_recorded(area: str) -> None:
    found = compared(record(), in_area(area))
    assert not found, told(found)


@pytest.mark.parametrize("share", [AGAIN, pytest.param(1.0, marks=pytest.mark.slow)])
def test_recipes_of_folders_written_before_are_read(share: float) -> None:
    wrong = [said for case in sampled(accepted(), share) if (said := read_again(record(), case))]
    assert not wrong, "\n".join([f"{len(wrong)} in all", *wrong[:20]])


def test_every_recipe_that_shipped_still_ships_and_is_accepted() -> None:
    names = adapter.shipped_names()
    assert {name for name in record().sources if f"{name}, complete" in record().sources} - SMALL.keys() <= set(names)
    assert all(adapter.load(name).dump for name in names)


# ---------------------------------------------------------------- the comparison itself

CASE = Case("one text", ("decoder.size=8",))
TAKEN = Outcome({"decoder.size": 8, "inputs.a.tokens": "word"}, "1", left_out=("loss.ctc 1 is left out: why",))
SAID = Outcome(message="recipe: decoder.size: no", paths=("decoder.size",))


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (TAKEN, SAID, "was accepted, is refused"),
        (SAID, TAKEN, "was refused, is accepted"),
        (SAID, Outcome(error="KeyError: 'x'"), "was refused, is broken"),
        (SAID, Outcome(message="recipe: a: no", paths=("a",)), "no longer named: decoder.size; now named: a"),
        (TAKEN, Outcome({**TAKEN.leaves, "decoder.size": 8.0}, "2", TAKEN.left_out), "decoder.size has another value"),
        (TAKEN, Outcome({"decoder.size": 8}, "2", TAKEN.left_out), "inputs.NAME.tokens is gone"),
        (TAKEN, Outcome({**TAKEN.leaves, "b": 1}, "2", TAKEN.left_out), "b is new"),
        (TAKEN, Outcome(TAKEN.leaves, "1", TAKEN.left_out, ("attention is off",)), "notes are given"),
        (TAKEN, Outcome(TAKEN.leaves, "1"), "loss.ctc no longer said to be left out"),
    ],
)
def test_whatever_differs_is_told(was: Outcome, now: Outcome, said: str) -> None:
    assert difference(CASE, was, was) is None
    found = difference(CASE, was, now)
    assert found is not None
    assert said in found.what


def test_what_is_meant_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    meant = [Change("* | decoder.size=*", "refused: decoder.size", "accepted", "allowed by now")]
    monkeypatch.setattr("tests.recipe.record.comparing.EXCEPTIONS", meant)
    assert difference(CASE, SAID, TAKEN) is None
    assert difference(Case("one text", ("decoder.layers=8",)), SAID, TAKEN) is not None
    shorter = Outcome({"decoder.size": 8}, "2", TAKEN.left_out)
    monkeypatch.setattr("tests.recipe.record.comparing.GONE", {"inputs.NAME"})
    assert difference(CASE, TAKEN, shorter) is None


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "record.json.gz"
    chosen = sorted(sampled(list(record().outcomes), 0.02), key=lambda case: -len(case.overrides))
    plain = [case for case in record().outcomes if not case.overrides]
    part = Record(record().keys, record().sources, {case: record().outcomes[case] for case in [*chosen, *plain]})
    part.write(path)
    assert Record.read(path) == part
