"""Every shipped recipe, and every mechanism by itself, does what it did when the record was made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import yaml

import seq2see
from tests.record.cases import cases
from tests.record.record import record, shortened, unexpected
from tests.record.tables import MAKERS

KEPT: dict[str, Any] = json.loads(Path(__file__).with_name("record.json").read_text(encoding="utf-8"))
RECIPES = Path(seq2see.__file__).parent / "recipes"
PARAMETERS = [
    pytest.param(name, marks=[] if case.quick else [pytest.mark.slow], id=name) for name, case in cases().items()
]


@pytest.fixture(autouse=True, scope="module")
def _shapes_unchecked() -> Iterator[None]:
    """They are checked elsewhere, and here they would take most of the time."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.parametrize("name", PARAMETERS)
def test_it_does_what_it_did(name: str, tmp_path: Path) -> None:
    case = cases()[name]
    if case.extra:
        pytest.importorskip(case.extra, reason=f"the package {case.extra} is not installed")
    found = json.loads(json.dumps(shortened(record(case, tmp_path))))
    assert unexpected(KEPT[name], found) == []


def test_no_recipe_and_no_case_is_left_out() -> None:
    shipped = {yaml.safe_load(path.read_text(encoding="utf-8"))["task"] for path in RECIPES.glob("*.yaml")}
    assert shipped == MAKERS.keys()
    assert shipped <= cases().keys()
    assert KEPT.keys() == cases().keys()


def test_little_of_the_record_is_left_to_chance() -> None:
    """What a rounding could throw is not compared; more of it would make the record blind."""
    assert sum(len(kept["unsteady"]) for kept in KEPT.values()) < 100
