"""`seq2see show`: The five answers about a recipe or a model.

What is the data, the encoder, the decoder (and how it is conditioned), the parameters (by part, named as in the
equations, counted), the loss and how it is minimised?
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Given, Parser, add_changes, add_json
from seq2see.cli.terminal import emit
from seq2see.errors import UserError

EXAMPLES = ("seq2see show translation --set attention.score=dot", "seq2see show runs/translation")


def arguments(parser: Parser) -> None:
    parser.add_argument("what", metavar="RECIPE|MODEL", help="a shipped name, a YAML file, or a model's folder")
    add_changes(parser)
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.pipeline.bundle import Bundle
    from seq2see.pipeline.five_answers import answers_of
    from seq2see.recipe import left_out, load_recipe

    if Path(given.what).is_dir():
        if given.changes:
            raise UserError("--set: no meaning here: a trained model is as it is; it changes a recipe")
        answers = answers_of(Bundle.load(given.what))
    else:
        try:
            recipe = load_recipe(given.what, overrides=given.changes)
        except UserError as error:
            more = "" if Path(given.what).exists() or "unknown recipe" not in str(error) else ", or a model's folder"
            raise UserError(f"{error}{more}") from None
        answers = answers_of(recipe)
        answers.decoder += left_out(given.what, given.changes)
    if given.json:
        emit(answers.to_dict())
    else:
        print(answers.text(), end="")
