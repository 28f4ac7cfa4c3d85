"""`seq2see evaluate`: Metrics of a model on a table with known outputs, the trivial models beside it.

Rows with equal inputs are references of each other.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from seq2see.cli.inputs import reading
from seq2see.cli.parser import Given, Parser, add_beam, add_data, add_json, add_model, listed, whole
from seq2see.cli.terminal import emit
from seq2see.errors import UserError
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.recipe import Recipe

EXAMPLES = (
    "seq2see evaluate runs/translation --data test.tsv --beam 5",
    "seq2see evaluate runs/grapheme-to-phoneme --data cmudict --by-length --json",
)
LENGTHS = 5
"""Parts that --by-length divides the rows into."""


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_data(parser)
    add_beam(parser)
    parser.add_argument("--n-best", metavar="N", type=whole, help="hypotheses for metrics such as exact@5")
    parser.add_argument("--by-length", action="store_true", help="also by the length of the input")
    parser.add_argument(
        "--positions", action="store_true", help="also how much of which part of the input is found in the output"
    )
    parser.add_argument("--reverse", action="store_true", help="also with every video backwards, beside each other")
    parser.add_argument("--metrics", metavar="A,B", type=listed, help="metrics by name; not given: the recipe's")
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.data.locate import locate

    model = reading(given.model, given.on_error)
    _check(given, model.recipe)
    table, dev = locate(given.data)
    with closing(Meter()) as meter:
        report = model.evaluate(
            dev or table,
            columns=given.columns,
            beam=given.beam,
            n_best=given.n_best,
            by_length=LENGTHS if given.by_length else 0,
            positions=given.positions,
            metrics=given.metrics,
            reverse=given.reverse,
            progress=meter,
        )
    if given.json:
        emit(report.to_dict())
    else:
        print(report.text(), end="")


def _check(given: Given, recipe: Recipe) -> None:
    """Options without effect on this model, and metrics that cannot be taken of it, are refused."""
    from seq2see.pipeline.measures import check_metrics

    if given.metrics is not None:
        check_metrics(given.metrics, recipe, key="--metrics")
    if recipe.output.one_step and (given.beam is not None or given.n_best is not None):
        raise UserError(f"--beam, --n-best: no meaning here: {recipe.output.said} is not searched for")
    spoken = {"--beam": given.beam, "--n-best": given.n_best, "--by-length": given.by_length or None}
    spoken["--positions"] = given.positions or None
    useless = [name for name, value in spoken.items() if value is not None]
    counted = [name for name in ("--by-length", "--positions") if spoken[name] is not None]
    if recipe.inputs and counted and not recipe.texts:
        read = ", ".join(f"{name} ({one.kind})" for name, one in recipe.inputs.items())
        raise UserError(f"{', '.join(counted)}: no meaning here: texts have lengths, and the model reads {read}")
    if not recipe.inputs and useless:
        raise UserError(f"{', '.join(useless)}: no meaning here: a language model is measured by its perplexity alone")
