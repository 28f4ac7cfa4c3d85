"""The rules a recipe has to keep: which problems it has, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from seq2see.recipe import check as checks
from seq2see.recipe import inert
from seq2see.recipe.along import out_of_line
from seq2see.recipe.directions import undirected
from seq2see.recipe.documents import unknown_places, unread, unsuited, unwindowed
from seq2see.recipe.looking_back import unfit_scores
from seq2see.recipe.measures import unfit
from seq2see.recipe.media_checks import unreadable
from seq2see.recipe.numbers import unworkable
from seq2see.recipe.pointing import impossible
from seq2see.recipe.resolve import unconditioned
from seq2see.recipe.schema import Recipe
from seq2see.recipe.sets import ordered, unlike
from seq2see.recipe.shrinking import shrunk_away
from seq2see.recipe.sound_checks import unheard
from seq2see.recipe.transformers import misfitting
from seq2see.recipe.units import unfitting
from seq2see.recipe.video_checks import unwatchable
from seq2see.registry import RULES, Problem, Stage, rule
from seq2see.settings.base import Settings


def problems(recipe: Recipe) -> list[Problem]:
    """Every problem of a recipe whose keys and types are right."""
    for stage in ("names", "readers", "encoder"):
        found = _staged(recipe, stage)
        if found:
            return found
    parts = list(part_problems(recipe))
    found = _staged(recipe, "combinations") + [problem for problem in parts if not problem.no_effect]
    idle = _staged(recipe, "no-effect") + [problem for problem in parts if problem.no_effect]
    named = {problem.path for problem in found}  # one mistake is one problem
    return found + list({problem.path: problem for problem in idle if problem.path not in named}.values())


def droppable(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of settings that have lost their meaning, so that an override may drop them."""
    found = [problem for one in RULES.values() if one.droppable for problem in one.problems(recipe)]
    found += [problem for problem in part_problems(recipe) if problem.no_effect]
    return {problem.path: problem.message for problem in found}


def part_problems(recipe: Recipe) -> Iterator[Problem]:
    """What the settings of each part that is used find wrong with themselves (their method `check`)."""
    for path, settings in _parts(recipe):
        check = getattr(settings, "check", None)
        for problem in check(recipe, path) if check is not None else ():
            yield problem if problem.rule else replace(problem, rule=type(settings).__name__)


def _parts(recipe: Recipe) -> Iterator[tuple[str, Settings]]:
    unused = {"encoder"} - {recipe.encoder_path(name) for name in recipe.inputs}
    for key, value in recipe:
        if isinstance(value, Settings) and key not in unused:
            yield from _nested(key, value)
    for name, settings in recipe.inputs.items():
        yield from _nested(f"inputs.{name}", settings)


def _nested(path: str, settings: Settings) -> Iterator[tuple[str, Settings]]:
    yield path, settings
    for key, value in settings:
        if isinstance(value, Settings):
            yield from _nested(f"{path}.{key}", value)


def _staged(recipe: Recipe, stage: Stage) -> list[Problem]:
    return [problem for one in RULES.values() if one.stage == stage for problem in one.problems(recipe)]


def _lines(check: Callable[[Recipe], Iterable[str]]) -> Callable[[Recipe], Iterator[Problem]]:
    def problems(recipe: Recipe) -> Iterator[Problem]:
        for line in check(recipe):
            path, _, message = line.partition(": ")
            yield Problem(path, message)

    return problems


def _reasons(check: Callable[[Recipe], dict[str, str]]) -> Callable[[Recipe], Iterator[Problem]]:
    def problems(recipe: Recipe) -> Iterator[Problem]:
        return (Problem(path, reason) for path, reason in check(recipe).items())

    return problems


_STAGED: dict[Stage, dict[str, Callable[[Recipe], Any]]] = {
    "names": {"names": checks._names, "shares": checks._shares, "separators": unlike},
    "readers": {"readers": unread, "places": unknown_places},
    "encoder": {"encoder": unsuited},
    "combinations": {
        "attention": checks._attention,
        "decoder": checks._decoder,
        "data": checks._data,
        "sizes": checks._sizes,
        "search": checks._search,
        "layers": checks._layers,
        "sound": unheard,
        "video": unwatchable,
        "direction": undirected,
        "ctc": out_of_line,
        "sets": ordered,
        "documents": unwindowed,
        "pointing": impossible,
        "transformer": misfitting,
        "units": unfitting,
        "self-attention": unfit_scores,
        "image": unreadable,
        "shrinking": shrunk_away,
        "numbers": unworkable,
        "own": checks._own,
    },
}
for _stage, _checks in _STAGED.items():
    for _name, _check in _checks.items():
        rule(_name, stage=_stage)(_lines(_check))
rule("metrics", droppable=True)(_reasons(unfit))
rule("conditioned", droppable=True)(_reasons(unconditioned))
rule("no-effect", stage="no-effect")(_reasons(inert.inert))
