"""Names short enough to stand beside each other, cut where they are alike."""

from __future__ import annotations

from collections.abc import Collection, Sequence

CUT = "…"


def short_names(names: Sequence[str], letters: int) -> list[str]:
    """Each in at most so many letters. Where any is too long, what all begin with (a folder, the same words) goes
    first; then the middle does, and where that would make two alike, all but what is around their first difference.

    >>> short_names(["clips/of/the/first/day/a.mp4", "clips/of/the/first/day/b.mp4"], 12)
    ['…a.mp4', '…b.mp4']
    >>> short_names(["a dog runs after a ball", "two cats"], 12)
    ['a dog … ball', 'two cats']
    """
    whole = [" ".join(name.split()) for name in names]
    if all(len(name) <= letters for name in whole):
        return whole
    shared = _shared(whole)
    rest = [CUT * bool(shared) + name[shared:] for name in whole]
    made = [_middle(name, letters) for name in rest]
    alike: dict[str, set[str]] = {}
    for short, name in zip(made, rest, strict=True):
        alike.setdefault(short, set()).add(name)
    return [
        short if len(alike[short]) == 1 else _around(name, _alike(alike[short]), letters)
        for short, name in zip(made, rest, strict=True)
    ]


def _shared(names: Sequence[str]) -> int:
    """Letters that all begin with, up to the last folder or word that is whole in all of them."""
    prefix = names[0][: _alike(names)] if len(set(names)) > 1 else ""
    return max(prefix.rfind("/"), prefix.rfind("\\"), prefix.rfind(" ")) + 1


def _alike(names: Collection[str]) -> int:
    """Letters that all begin with."""
    first, last = min(names), max(names)
    differing = (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)
    return next(differing, len(first))


def _middle(name: str, letters: int) -> str:
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}{CUT}{name[len(name) - end :]}"


def _around(name: str, place: int, letters: int) -> str:
    """What lies around a place."""
    room = letters - 2
    start = max(min(place - room // 3, len(name) - room), 0)
    part = name[start : start + room]
    return f"{CUT if start else ''}{part}{CUT if start + room < len(name) else ''}"
