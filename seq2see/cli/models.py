"""`seq2see models`: List the small trained models that `seq2see get` builds, with their figures.

Figures are measured on rows that neither trained the model nor selected its weights; in parentheses, that of a
trivial model. Seconds are those of one core.
"""

from __future__ import annotations

from typing import Any

from seq2see.cli.parser import Arguments, Parser, add_json, print_json, program, say

EXAMPLES = ("seq2see models", "seq2see models --json")


def arguments(parser: Parser) -> None:
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.zoo import MODELS
    from seq2see.zoo.building import cached, measured

    known = measured()
    for name, entry in MODELS.items():
        here = cached(name)
        record = here or known.get(name)
        if args.json:
            about: dict[str, Any] = {"name": name, "task": entry.recipe, "description": entry.about}
            figures = {} if record is None else record.to_dict()
            print_json({**about, **figures, "here": here is not None, "extras": list(entry.extras)})
        else:
            print(f"{name}  ({entry.recipe}{', here' if here else ''})")
            print(f"    {entry.about}")
            print(f"    {'not measured' if record is None else record.summary}")
    say(f"to have one: {program()} get NAME")
