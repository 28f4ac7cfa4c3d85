"""Rules about inputs, until each kind brings its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from seq2see.modalities.set import SetInput
from seq2see.modalities.texts import TextsInput
from seq2see.recipe.directions import needless, undirected
from seq2see.recipe.documents import through, unknown_places, unread, unsuited, unused_sentences, unwindowed
from seq2see.recipe.media_checks import unreadable, unseen
from seq2see.recipe.schema import Recipe
from seq2see.recipe.sets import ordered, unlike
from seq2see.recipe.sound_checks import silent, unheard
from seq2see.recipe.video_checks import unwatchable, unwatched
from seq2see.registry import Problem, Stage, rule
from seq2see.settings.base import no_effect


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
    "names": {"separators": unlike},
    "readers": {"readers": unread, "places": unknown_places},
    "encoder": {"encoder": unsuited},
    "combinations": {
        "through": through,
        "sentences": unused_sentences,
        "sound": unheard,
        "video": unwatchable,
        "direction": undirected,
        "sets": ordered,
        "documents": unwindowed,
        "image": unreadable,
    },
}
for _stage, _checks in _STAGED.items():
    for _name, _check in _checks.items():
        rule(_name, stage=_stage)(_lines(_check))
rule("image-settings", stage="no-effect")(_reasons(unseen))
rule("sound-settings", stage="no-effect")(_reasons(silent))
rule("video-settings", stage="no-effect")(_reasons(unwatched))
rule("direction-settings", stage="no-effect")(_reasons(needless))


@rule("text-settings", stage="no-effect")
def check_texts(recipe: Recipe) -> Iterator[Problem]:
    for name, settings in recipe.inputs.items():
        if isinstance(settings, TextsInput) and not settings.max_sentences:
            yield from no_effect(settings, f"inputs.{name}", ["keep"], "without max_sentences all are kept")
        if isinstance(settings, SetInput) and settings.separator is not None:
            yield from no_effect(settings, f"inputs.{name}", ["tokens"], "separator tells elements apart")
