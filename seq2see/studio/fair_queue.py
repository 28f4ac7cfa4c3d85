"""A queue in which clients take turns: who has queued much delays only himself."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items of several clients. Those of one client keep their order; clients take turns. Not for several threads."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Item]] = OrderedDict()  # whose turn it is comes first
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, client: str, items: Sequence[Item]) -> None:
        """Queue items of a client; a client that had none is last in turn."""
        if items:
            self._clients.setdefault(client, deque()).extend(items)
            self._length += len(items)

    def peek(self) -> Item:
        """The item whose turn it is."""
        return next(iter(self._clients.values()))[0]

    def pop(self) -> Item:
        """Remove the item whose turn it is; its client's next turn comes after all others'."""
        client = next(iter(self._clients))
        self._clients.move_to_end(client)
        item = self._clients[client].popleft()
        self._count_removed(client, 1)
        return item

    def take(self, fits: Callable[[Item], bool], most: int) -> list[Item]:
        """Remove up to `most` items that fit, one of each client in turn, until none is left. Turns stay as they are.

        fits: asked once of an item, which is taken where the answer is True."""
        taken: list[Item] = []
        scans = {client: _Scan(items, fits) for client, items in self._clients.items()}
        active = list(scans.values())
        while active and len(taken) < most:
            active = [scan for scan in active if len(taken) < most and scan.take_next(taken)]
        for client, scan in scans.items():
            removed = len(self._clients[client]) - scan.left
            self._clients[client] = deque(scan.remaining())
            self._count_removed(client, removed)
        return taken

    def remove(self, client: str, is_meant: Callable[[Item], bool]) -> bool:
        """Remove one item of a client; False where it is not in the queue."""
        items = self._clients.get(client, deque())
        for number, item in enumerate(items):
            if is_meant(item):
                del items[number]
                self._count_removed(client, 1)
                return True
        return False

    def displace(self, client: str, count: int, excess: int) -> list[Item] | None:
        """Remove `excess` items of those who have queued most, the newest first, so that a client may queue `count`.

        Nobody is left with fewer than that client will have; None, with nothing removed, where that is not enough."""
        share = len(self._clients.get(client, ())) + count
        others = {name: items for name, items in self._clients.items() if name != client and len(items) > share}
        if sum(len(items) - share for items in others.values()) < excess:
            return None
        removed = []
        for _ in range(excess):
            name = max(others, key=lambda name: len(others[name]))
            removed.append(others[name].pop())
            self._count_removed(name, 1)
        return removed

    def clear(self) -> list[Item]:
        """Remove all items."""
        items = [item for queued in self._clients.values() for item in queued]
        self._clients.clear()
        self._length = 0
        return items

    def _count_removed(self, client: str, count: int) -> None:
        self._length -= count
        if not self._clients[client]:
            del self._clients[client]


class _Scan(Generic[Item]):
    """One pass over a client's items: those that fit are taken one at a time, the others are kept in order."""

    def __init__(self, items: deque[Item], fits: Callable[[Item], bool]):
        self._items, self._fits = iter(items), fits
        self._kept: list[Item] = []
        self.left = len(items)

    def take_next(self, taken: list[Item]) -> bool:
        """Append the next item that fits to `taken`; False where there is none."""
        for item in self._items:
            if self._fits(item):
                taken.append(item)
                self.left -= 1
                return True
            self._kept.append(item)
        return False

    def remaining(self) -> Iterator[Item]:
        yield from self._kept
        yield from self._items
