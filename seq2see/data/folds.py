"""Folds of cross-validation: whole groups of rows (speakers, books, writers) or single rows, dealt by size and hash."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeVar

from seq2see.data.split import hold_out, row_hash
from seq2see.errors import UserError, listing

DevFrom = Literal["group", "rows"]
"""Where the dev rows of a fold come from: from a group that is not trained on, or from the rows of groups that are."""
MOST_FOLDS = 10
"""Of groups, where no number is asked for: with more values of the column, several share a fold."""
ROW_FOLDS = 5
"""Of single rows, where no number is asked for."""
LARGEST = 100
"""The most folds that can be asked for: each is a run of its own, and a copy of the table."""
GROUPS_FOR_DEV = 8
"""From so many folds on, one more is left out for dev: fewer would leave too little to train on."""

Key = TypeVar("Key", bound=Hashable)
Row = Mapping[str, str]


@dataclass(frozen=True)
class Fold:
    """One part that is tested by a model that has not seen it: numbers of rows, ascending.

    name: of the fold; groups: the left-out groups with their rows, which are all of `test`; dev: what the training
    selects its best weights by, never of a tested group.
    """

    name: str
    groups: dict[str, list[int]]
    train: list[int]
    dev: list[int]

    @property
    def test(self) -> list[int]:
        return sorted(number for rows in self.groups.values() for number in rows)


def deal(sizes: Mapping[Key, int], folds: int) -> list[list[Key]]:
    """Deal keys into so many folds of about the same size: the largest first, each into the smallest fold so far.

    Keys of equal size come by a hash, so that the folds depend neither on the order of the table nor on the machine.

    >>> deal({"a": 5, "b": 4, "c": 3, "d": 2}, 2)
    [['a', 'd'], ['b', 'c']]
    """
    dealt: list[list[Key]] = [[] for _ in range(folds)]
    heap = [(0, number) for number in range(folds)]
    for key in sorted(sizes, key=lambda key: (-sizes[key], _hash(key))):
        rows, number = heapq.heappop(heap)
        dealt[number].append(key)
        heapq.heappush(heap, (rows + sizes[key], number))
    return dealt


def _hash(key: Hashable) -> bytes:
    return blake2b(str(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def folds_by_group(
    rows: Sequence[Row],
    groups: Sequence[str],
    *,
    names: Sequence[str],
    column: str,
    folds: int | None = None,
    dev_from: DevFrom | None = None,
    share: float,
    most: int,
) -> list[Fold]:
    """Leave one group out, or with more groups than folds several at a time.

    groups: that of each row; names: the inputs, whose hash decides which rows are set aside; column: of the groups, for
    messages; share, most: of rows that are set aside for dev (`data.dev_share`, `data.dev_most`). dev_from: where dev
    rows come from; None: from the groups of the next fold where there are `GROUPS_FOR_DEV` folds or more, otherwise
    from rows of the groups that are trained on.
    """
    members: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        members.setdefault(group, []).append(number)
    if len(members) < 2:
        raise UserError(f"column '{column}' has one value ({listing(members)}); leaving one out takes two or more")
    number = _number_of_folds(folds, len(members), default=MOST_FOLDS, what=f"values of column '{column}'")
    dealt = deal({group: len(numbers) for group, numbers in members.items()}, number)
    if dev_from == "group" and number < 3:
        raise UserError(f"a separate dev group needs at least three folds, got {number}")
    group_for_dev = dev_from == "group" or (dev_from is None and number >= GROUPS_FOR_DEV)
    order = {group: place for place, group in enumerate(members)}
    dealt = sorted((sorted(part, key=order.__getitem__) for part in dealt), key=lambda part: order[part[0]])
    made = []
    for place, part in enumerate(dealt):
        tested = {group: members[group] for group in part}
        aside = set(dealt[(place + 1) % number]) if group_for_dev else set()
        rest = [row for row, group in enumerate(groups) if group not in tested and group not in aside]
        dev = [row for row, group in enumerate(groups) if group in aside]
        if not group_for_dev:
            rest, dev = _set_aside(rows, rest, names=names, share=share, most=most)
        made.append(Fold(part[0] if len(part) == 1 else f"fold {place + 1}", tested, rest, dev))
    return made


def folds_by_row(
    rows: Sequence[Row], *, names: Sequence[str], folds: int | None = None, share: float, most: int
) -> list[Fold]:
    """K folds over rows by a hash of their inputs, so that rows with equal inputs stay together."""
    equal: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        equal.setdefault(row_hash(row, names), []).append(number)
    number = _number_of_folds(folds, len(equal), default=ROW_FOLDS, what="different inputs")
    made = []
    for place, part in enumerate(deal({key: len(numbers) for key, numbers in equal.items()}, number), start=1):
        test = sorted(number for key in part for number in equal[key])
        tested = set(test)
        rest = [row for row in range(len(rows)) if row not in tested]
        rest, dev = _set_aside(rows, rest, names=names, share=share, most=most)
        made.append(Fold(f"fold {place}", {f"fold {place}": test}, rest, dev))
    return made


def _number_of_folds(folds: int | None, available: int, *, default: int, what: str) -> int:
    if folds is None:
        folds = min(default, available)
    most = min(available, LARGEST)
    if not 2 <= folds <= most:
        allowed = f"2 to {most}" if most >= 2 else "none"
        why = f"there are {available:,} {what}" if most == available else "each is a run of its own"
        raise UserError(f"--folds {folds}: allowed: {allowed} ({why})")
    return folds


def _set_aside(
    rows: Sequence[Row], numbers: Sequence[int], *, names: Sequence[str], share: float, most: int
) -> tuple[list[int], list[int]]:
    """(the rows to train on, the dev rows), split as `train` splits a table."""
    split = hold_out((rows[number] for number in numbers), names=names, share=share, most=most)
    split.check()
    dev = {number for number in numbers if split.is_dev(rows[number])}
    return [number for number in numbers if number not in dev], sorted(dev)
