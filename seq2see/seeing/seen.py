"""Maps that lie over something to be seen itself: a picture, a video, a sound."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from seq2see.looks import Looks
from seq2see.seeing.films import Reel, reels_of
from seq2see.seeing.hearings import Hearing, hearings_of
from seq2see.seeing.panels import Panel
from seq2see.seeing.scenes import Scene, scenes_of

if TYPE_CHECKING:
    from seq2see.seeing.sheet import Box, Manner

Seen: TypeAlias = Scene | Reel | Hearing


def seen_of(looks: Looks, groups: list[list[Panel]], *, apart: bool = False, scale: str = "auto") -> list[Seen]:
    """All that can be seen of these maps, in their order; files are read once. apart: heads are told apart."""
    once = replace(looks, pictures={name: cache(shown) for name, shown in looks.pictures.items()})
    found: list[Seen] = []
    for group in groups:
        found += scenes_of(once, [group], apart=apart, scale=scale)
        found += reels_of(once, [group], apart=apart, scale=scale)
        found += hearings_of(once, [group], apart=apart, scale=scale)
    return found


def seen_box(seen: Seen, manner: Manner) -> Box:
    """One of them, to be laid on a sheet."""
    if isinstance(seen, Reel):
        from seq2see.seeing.film_sheet import reel_box  # late: pages of pictures need no matplotlib

        return reel_box(seen, manner)
    if isinstance(seen, Hearing):
        from seq2see.seeing.hearing_sheet import hearing_box

        return hearing_box(seen, manner)
    from seq2see.seeing.scene_sheet import scene_box

    return scene_box(seen, manner)


def unseen(groups: list[list[Panel]], seen: list[Seen]) -> list[list[Panel]]:
    """The maps that nothing shows yet."""
    shown = {one.name for one in seen}
    return [group for group in groups if group[0].name not in shown]


def untold(groups: list[list[Panel]], seen: list[Seen]) -> list[list[Panel]]:
    """The maps whose numbers a page tells one by one: those that nothing shows, and those over time, where places are
    frames with a second for a name; cells of pictures are too many, and have no names."""
    in_time = {one.name for one in seen if isinstance(one, Hearing) or (isinstance(one, Reel) and one.whole)}
    shown = {one.name for one in seen} - in_time
    return [group for group in groups if group[0].name not in shown]
