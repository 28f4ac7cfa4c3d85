"""`seq2see compare`: Train variants of a recipe with the same updates and seeds, and rank them.

Every combination of the --vary values is trained. With two or more seeds the table shows the 95 % interval of each mean
and marks the variants whose interval overlaps that of the best. With --by every variant is measured on values of a
column that it was not trained on, as in crossval. Finished runs are kept in --out: the same command continues where
it stopped, and more variants or seeds can be added.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_folds,
    add_json,
    add_training,
    check_above_zero,
    integer,
    overrides_of,
    print_json,
    program,
    say,
)
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see compare transliteration --data names.csv --vary attention.score=dot,additive,none --updates 500 --seeds 3",
    "seq2see compare translation --data multi30k --vary attention.score=dot,none --vary decoder.layers=1,2 --epochs 5",
    "seq2see compare speech-recognition --data fsdd --by speaker --vary encoder.dropout=0.1,0.3 --epochs 10",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name listed by `seq2see tasks`, or YAML file")
    add_training(parser, each="in every run: ")
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        action="append",
        default=[],
        help="recipe key and its values (attention.score=dot,additive,none); may be repeated",
    )
    parser.add_argument("--seeds", metavar="K", type=integer, default=1, help="seeds for each variant (default: 1)")
    add_folds(parser)
    parser.add_argument("--skip", action="store_true", help="skip invalid variants instead of stopping")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="folder for results, plot and models (default: runs/compare-TASK)"
    )
    add_json(parser)


def run(args: Arguments) -> None:
    _check(args)
    from seq2see.api import compare
    from seq2see.data.tables import locate
    from seq2see.training.comparing import draw

    table, dev = locate(args.data)
    if dev is not None and (args.by is not None or args.folds is not None):
        say(f"{dev} is not used: the rows held out from {table} are measured")
        dev = None
    ranking = compare(
        args.recipe,
        table,
        vary=args.vary,
        dev=dev if args.dev is None else locate(args.dev)[0],
        columns=args.columns,
        overrides=overrides_of(args),
        epochs=args.epochs,
        updates=args.updates,
        minutes=args.minutes,
        seeds=args.seeds,
        by=args.by,
        folds=args.folds,
        dev_from=args.dev_from,
        out=args.out,
        skip=args.skip,
    )
    drawn = draw(ranking, title=Path(args.data).name)
    if args.json:
        for record in ranking.to_dicts():
            print_json(record)
    else:
        print(ranking.text(), end="")
    say(f"plot: {', '.join(map(str, drawn))}; models: {Path(ranking.folder) / 'runs'}")


def _check(args: Arguments) -> None:
    check_above_zero(args, "epochs", "updates", "minutes", "seeds")
    if args.data is None:
        raise UserError(f"no data: give --data, for example: {program()} compare {args.recipe} --data pairs.tsv")
