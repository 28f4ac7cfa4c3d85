"""`seq2see explain`: Work out one decoding step with the model's numbers, next to its equations."""

from __future__ import annotations

from seq2see.cli.inputs import load_single_model, parse_input
from seq2see.cli.parser import Arguments, Parser, add_beam, add_input, add_json, add_model, integer, print_json
from seq2see.errors import UserError

EXAMPLES = ("seq2see explain runs/transliteration india --step 2",)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_input(parser)
    parser.add_argument(
        "--step", metavar="T", type=integer, default=0, help="decoding step, counted from 0 (default: 0)"
    )
    parser.add_argument("--target", metavar="TEXT", help="explain this output instead of the model's own")
    add_beam(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    if args.target is not None and args.beam is not None:
        raise UserError("--beam cannot be used with --target: there is no search")
    model = load_single_model(args.model, "explain")
    if model.recipe.inputs and args.input is None:
        raise UserError("INPUT is missing")
    if not model.recipe.inputs and args.input is not None:
        raise UserError("this model is a language model and takes no INPUT")
    row = parse_input(model, args.input) if model.recipe.inputs else {}
    explanation = model.explain(row, step=args.step, target=args.target, beam=args.beam)
    if args.json:
        print_json(explanation.to_dict())
    else:
        print(explanation.text())
