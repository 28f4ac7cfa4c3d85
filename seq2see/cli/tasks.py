"""`seq2see tasks`: the recipes that ship."""

from __future__ import annotations

from seq2see.cli import options as o
from seq2see.cli.saying import emit


def tasks(as_json: o.Json = False) -> None:
    """The recipes that ship, one line each."""
    from seq2see.recipe import shipped

    found = shipped()
    width = max(map(len, found), default=0)
    for name, description in found.items():
        if as_json:
            emit({"name": name, "description": description})
        else:
            print(f"{name:<{width}}  {description}")
