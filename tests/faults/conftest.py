"""Faults that are tried for real: how many of them, and a table at the end of what came of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.faults.children import Children, Ended
from tests.training import tiny

TALLY = pytest.StashKey[dict[str, dict[str, int]]]()
Count = Callable[[str, str], None]

RUN = {"updates": 45, "report_every": 15, "checkpoint_every": 5, "average": 3, "scheduled_sampling": 0.5}
"""Of a run that is disturbed: several checkpoints, weights of several reports, their mean at the end."""


@pytest.fixture(scope="session")
def seed() -> int:
    """Of all that is drawn here; printed, so that a failure can be repeated: SEED=7 make faults."""
    return int(os.environ.get("SEED", "1"))


@pytest.fixture(scope="session")
def kills() -> int:
    """Random kills, and a fifth of it is the number of tries of other random faults: KILLS=50 make faults."""
    return int(os.environ.get("KILLS", "50"))


@pytest.fixture(scope="session")
def children(tmp_path_factory: pytest.TempPathFactory) -> Children:
    return Children(tmp_path_factory.mktemp("children"))


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Count:
    """Count a case and its outcome for the table at the end."""
    tally = request.config.stash.setdefault(TALLY, {})

    def add(case: str, outcome: str) -> None:
        outcomes = tally.setdefault(case, {})
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash.get(TALLY, {})
    if not tally:
        return
    terminalreporter.section(f"faults (SEED={os.environ.get('SEED', '1')})")
    width = max(map(len, tally))
    terminalreporter.line(f"{'case':<{width}}  times  outcome")
    for case, outcomes in tally.items():
        for number, (outcome, times) in enumerate(outcomes.items()):
            terminalreporter.line(f"{case if number == 0 else '':<{width}}  {times:>5}  {outcome}")


class Runs:
    """Small trainings of one kind, by the command line. whole: the folder of one that nothing disturbed."""

    def __init__(self, children: Children, folder: Path, kind: str, whole: Path):
        self.children, self.folder, self.whole = children, folder, whole
        folder.mkdir(parents=True, exist_ok=True)
        recipe = tiny.ROWS if kind == "rows" else tiny.TEXT
        recipe = {**recipe, "training": {**recipe["training"], **RUN}}
        if kind == "stream":
            del recipe["training"]["scheduled_sampling"]
        self.recipe = folder / "recipe.yaml"
        self.recipe.write_text(yaml.safe_dump(recipe), encoding="utf-8")
        self.data = tiny.words(folder / "words.tsv") if kind == "rows" else tiny.text(folder / "text.txt")

    def begin(self, out: Path, *more: object) -> tuple[object, ...]:
        """The command that begins a run."""
        return ("train", self.recipe, "--data", self.data, "--out", out, *more)

    def go_on(self, out: Path) -> Ended:
        """Resume a run, or begin it again where it was killed before there was anything to resume."""
        ended = self.children.run("train", self.recipe, "--out", out, "--resume")
        if ended.code == 2 and "nothing to resume" in ended.err:
            ended = self.children.run(*self.begin(out))
        return ended

    def same(self, out: Path) -> bool:
        """Whether a run has ended with the bits of the one that nothing disturbed: model, checkpoint, reports."""
        mine, whole = tiny.last_checkpoint(out), tiny.last_checkpoint(self.whole)
        return (
            tiny.same(tiny.weights(out), tiny.weights(self.whole))
            and tiny.same(mine.weights, whole.weights)
            and tiny.same(mine.optimizer, whole.optimizer)
            and tiny.same(mine.carried, whole.carried)
            and bool((mine.random == whole.random).all())
            and reports(out) == reports(self.whole)
        )


def reports(folder: Path) -> list[dict[str, object]]:
    """The reports of a run without what a clock says."""
    return [
        {key: value for key, value in line.items() if key not in ("seconds", "tokens_per_second")}
        for line in tiny.journal(folder)
    ]


@pytest.fixture(scope="session")
def new_runs(children: Children, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], Runs]:
    """Runs in a folder, of a kind (rows, stream), beside the one of that kind that nothing disturbs."""

    @cache
    def whole(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        ended = children.run(*Runs(children, folder, kind, folder).begin(folder / "whole"))
        assert ended.code == 0, ended.err
        return folder / "whole"

    return lambda folder, kind: Runs(children, folder, kind, whole(kind))


@pytest.fixture
def runs(new_runs: Callable[[Path, str], Runs], tmp_path: Path) -> Runs:
    return new_runs(tmp_path, "rows")
