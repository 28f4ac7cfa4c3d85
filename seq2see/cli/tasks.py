"""`seq2see tasks`: List the recipes that come with seq2see, one line each."""

from __future__ import annotations

from seq2see.cli.parser import Arguments, Parser, add_json, print_json

EXAMPLES = ("seq2see tasks",)


def arguments(parser: Parser) -> None:
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.recipe import shipped

    recipes = shipped()
    width = max(map(len, recipes), default=0)
    for name, description in recipes.items():
        if args.json:
            print_json({"name": name, "description": description})
        else:
            print(f"{name:<{width}}  {description}")
