"""`seq2see crossval`: Measure a recipe on speakers, books or writers that it was not trained on.

For each value of the --by column one model is trained without the rows that have it, and measured on them; without
--by, K folds of rows take their place. The table shows every group, the mean with its 95 % interval (Student's t over
groups), and the metrics over all held-out rows. Finished folds are kept in --out: the same command continues where it
stopped.
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
    "seq2see crossval speech-recognition --data fsdd --by speaker --minutes 5",
    "seq2see crossval transliteration --data names.csv --folds 5 --epochs 10 --seeds 3",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name listed by `seq2see tasks`, or YAML file")
    add_training(parser, each="in every run: ", dev=False)
    add_folds(parser)
    parser.add_argument("--seeds", metavar="K", type=integer, default=1, help="seeds for each fold (default: 1)")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="folder for results, plot and models (default: runs/crossval-TASK)"
    )
    add_json(parser)


def run(args: Arguments) -> None:
    check_above_zero(args, "epochs", "updates", "minutes", "seeds")
    if args.data is None:
        raise UserError(
            f"no data: give --data, for example: {program()} crossval {args.recipe} --data pairs.tsv --by speaker"
        )
    from seq2see.api import crossval
    from seq2see.data.tables import locate
    from seq2see.training.comparing import draw_crossval

    table, dev = locate(args.data)
    if dev is not None:
        say(f"{dev} is not used: the rows held out from {table} are measured")
    result = crossval(
        args.recipe,
        table,
        by=args.by,
        folds=args.folds,
        dev_from=args.dev_from,
        columns=args.columns,
        overrides=overrides_of(args),
        epochs=args.epochs,
        updates=args.updates,
        minutes=args.minutes,
        seeds=args.seeds,
        out=args.out,
    )
    drawn = draw_crossval(result, title=Path(args.data).name)
    if args.json:
        print_json(result.to_dict())
    else:
        print(result.text(), end="")
    say(f"plot: {', '.join(map(str, drawn))}; models and their outputs: {Path(result.folder) / 'runs'}")
