"""`seq2see tasks`: The recipes that ship, one line each."""

from __future__ import annotations

from seq2see.cli.parser import Given, Parser, add_json
from seq2see.cli.terminal import emit

EXAMPLES = ("seq2see tasks",)


def arguments(parser: Parser) -> None:
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.recipe import shipped

    found = shipped()
    width = max(map(len, found), default=0)
    for name, description in found.items():
        if given.json:
            emit({"name": name, "description": description})
        else:
            print(f"{name:<{width}}  {description}")
