"""`seq2see evaluate`: Compute metrics of a model on a table with known outputs, next to trivial baselines.

Rows with equal inputs are references of each other.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from seq2see.cli.inputs import load_model
from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_data,
    add_device,
    add_json,
    add_language_model,
    add_model,
    comma_separated,
    integer,
    language_model_options,
    print_json,
)
from seq2see.errors import UserError
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.recipe import Recipe

EXAMPLES = (
    "seq2see evaluate runs/translation --data test.tsv --beam 5",
    "seq2see evaluate runs/grapheme-to-phoneme --data cmudict --by-length --json",
)
LENGTHS = 5
"""Number of bins of --by-length."""


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_data(parser)
    add_device(parser)
    add_beam(parser)
    add_language_model(parser)
    parser.add_argument("--n-best", metavar="N", type=integer, help="number of hypotheses for metrics such as exact@5")
    parser.add_argument("--by-length", action="store_true", help="also report metrics by input length")
    parser.add_argument(
        "--positions", action="store_true", help="also report how much of each part of the input recurs in the output"
    )
    parser.add_argument("--reverse", action="store_true", help="also evaluate with every video reversed")
    parser.add_argument(
        "--metrics", metavar="A,B", type=comma_separated, help="metrics by name (default: the recipe's)"
    )
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.data.tables import locate

    model = load_model(args.model, args.on_error, device=args.device)
    _check(args, model.recipe)
    table, dev = locate(args.data)
    with closing(Meter()) as meter:
        report = model.evaluate(
            dev or table,
            columns=args.columns,
            beam=args.beam,
            n_best=args.n_best,
            by_length=LENGTHS if args.by_length else 0,
            positions=args.positions,
            metrics=args.metrics,
            reverse=args.reverse,
            progress=meter,
            **language_model_options(args),
        )
    if args.json:
        print_json(report.to_dict())
    else:
        print(report.text(), end="")


def _check(args: Arguments, recipe: Recipe) -> None:
    """Refuse options that have no effect on this model, and metrics that do not apply to it."""
    from seq2see.pipeline.evaluator import check_metrics

    if args.metrics is not None:
        check_metrics(args.metrics, recipe, key="--metrics")
    searched = args.beam is not None or args.n_best is not None or language_model_options(args)
    if recipe.output.one_step and searched:
        raise UserError(f"--beam, --n-best, --language-model: {recipe.output.noun} is not searched for")
    options = {"--beam": args.beam, "--n-best": args.n_best, "--by-length": args.by_length or None}
    options["--language-model"] = language_model_options(args) or None
    options["--positions"] = args.positions or None
    unused = [name for name, value in options.items() if value is not None]
    counted = [name for name in ("--by-length", "--positions") if options[name] is not None]
    if recipe.inputs and counted and not recipe.texts:
        kinds = ", ".join(f"{name} ({settings.kind})" for name, settings in recipe.inputs.items())
        raise UserError(f"{', '.join(counted)}: only texts have lengths, but the model reads {kinds}")
    if not recipe.inputs and unused:
        raise UserError(f"{', '.join(unused)}: a language model is evaluated by perplexity only")
