"""`seq2see compare`: Variants of a recipe, each trained under the same updates and the same seeds: which is best?

All values of every --vary meet all values of the others. With two seeds or more the table gives the 95 % interval of
each mean and marks the variants whose interval overlaps the best's: those are not told apart from it. Finished runs
are kept in --out, so that the same command goes on where it was stopped, and more variants or seeds may be added.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Given, Parser, add_json, add_training, whole
from seq2see.cli.terminal import emit, program, say
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see compare transliteration --data names.csv --vary attention.score=dot,additive,none --updates 500 --seeds 3",
    "seq2see compare translation --data multi30k --vary attention.score=dot,none --vary decoder.layers=1,2 --epochs 5",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a name that `seq2see tasks` lists, or a YAML file")
    add_training(parser, each="every run: ")
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        action="append",
        default=[],
        help="a key of the recipe and its values (attention.score=dot,additive,none); may be given several times",
    )
    parser.add_argument("--seeds", metavar="K", type=whole, default=1, help="train every variant from K seeds (1)")
    parser.add_argument("--skip", action="store_true", help="leave out variants that cannot be, instead of refusing")
    parser.add_argument("--out", metavar="DIR", type=Path, help="results, plot, models; not given: runs/compare-TASK")
    add_json(parser)


def run(given: Given) -> None:
    _check(given)
    from seq2see.api import compare
    from seq2see.data.locate import locate
    from seq2see.training.comparing import draw

    table, beside = locate(given.data)
    ranking = compare(
        given.recipe,
        table,
        vary=given.vary,
        dev=beside if given.dev is None else locate(given.dev)[0],
        columns=given.columns,
        overrides=given.changes,
        epochs=given.epochs,
        updates=given.updates,
        minutes=given.minutes,
        seeds=given.seeds,
        out=given.out,
        skip=given.skip,
    )
    drawn = draw(ranking, title=Path(given.data).name)
    if given.json:
        for record in ranking.to_dicts():
            emit(record)
    else:
        print(ranking.text(), end="")
    say(f"the plot: {', '.join(map(str, drawn))}; the models: {Path(ranking.folder) / 'runs'}")


def _check(given: Given) -> None:
    for name in ("epochs", "updates", "minutes", "seeds"):
        value = getattr(given, name)
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"--{name} must be above 0, got {value}")
    if given.data is None:
        raise UserError(f"no data: give a table, for example: {program()} compare {given.recipe} --data pairs.tsv")
