"""Settings one by one, each by its path: what two recipes are compared by."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any


def leaves(value: Any, path: str, *, free: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """(path, value) of every setting below, but for keys that are free, wherever they stand.

    >>> dict(leaves({"size": 3, "embedding": {"size": 4, "dropout": 0.1}}, "encoder", free=["dropout"]))
    {'encoder.size': 3, 'encoder.embedding.size': 4}
    """
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inside in value.items():
        if key not in free:
            yield from leaves(inside, f"{path}.{key}", free=free)
