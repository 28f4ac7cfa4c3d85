"""`seq2see show`: Describe a recipe or a model in five answers.

What is the data? The encoder? The decoder, and how is it conditioned? The parameters, by part, named as in the
equations and counted? The loss, and how is it minimised?
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Arguments, Parser, add_json, add_overrides, print_json
from seq2see.errors import UserError

EXAMPLES = ("seq2see show translation --set attention.score=dot", "seq2see show runs/translation")


def arguments(parser: Parser) -> None:
    parser.add_argument("what", metavar="RECIPE|MODEL", help="recipe name, YAML file, model folder or packed model")
    add_overrides(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.pipeline.bundle import Bundle
    from seq2see.pipeline.five_answers import answers_of
    from seq2see.pipeline.packing import is_packed
    from seq2see.recipe import left_out, load_recipe

    if Path(args.what).is_dir() or is_packed(args.what):
        if args.changes:
            raise UserError("--set changes recipes only, not trained models")
        answers = answers_of(Bundle.load(args.what))
    else:
        try:
            recipe = load_recipe(args.what, overrides=args.changes)
        except UserError as error:
            more = "" if Path(args.what).exists() or "unknown recipe" not in str(error) else ", or a model folder"
            raise UserError(f"{error}{more}") from None
        answers = answers_of(recipe)
        answers.decoder += left_out(args.what, args.changes)
    if args.json:
        print_json(answers.to_dict())
    else:
        print(answers.text(), end="")
