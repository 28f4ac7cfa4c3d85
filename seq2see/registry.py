"""Names for kinds: a class registered under a name can be asked for by that name in a recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from seq2see.errors import UserError, nearest

T = TypeVar("T", bound=type)


class Registry(Generic[T]):
    """A dictionary of classes that refuses a name given twice and spells out the names it knows.

    >>> shapes = Registry("shape")
    >>> @shapes.register("round")
    ... class Round: ...
    >>> shapes["round"] is Round
    True
    """

    def __init__(self, what: str, *, tell: Callable[[str, T], None] | None = None):
        """tell: hears of each class before it is registered, and may refuse it."""
        self.what, self.tell = what, tell
        self._kinds: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        def add(kind: T) -> T:
            if name in self._kinds:
                raise ValueError(f"two classes want the {self.what} name '{name}': {self._kinds[name]} and {kind}")
            if self.tell is not None:
                self.tell(name, kind)
            self._kinds[name] = kind
            return kind

        return add

    def __getitem__(self, name: str) -> T:
        if name not in self._kinds:
            allowed = ", ".join(self._kinds)
            raise UserError(f"unknown {self.what} '{name}'{nearest(name, self._kinds)}; allowed: {allowed}")
        return self._kinds[name]

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)
