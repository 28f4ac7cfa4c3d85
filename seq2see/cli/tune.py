"""`seq2see tune`: Search for the best settings of a recipe within a given time.

Trials are drawn by TPE (Optuna, extra `tune`) and stopped early if they fall behind the median of the others at the
same share of their time. The first trial is the recipe as it is. A report, the best recipe (best.yaml, for train) and
its model are written to --out. The best dev score of many trials is optimistic: measure the model on other rows.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_columns,
    add_json,
    add_overrides,
    add_threads,
    check_above_zero,
    integer,
    number,
    overrides_of,
    print_json,
    program,
    say,
)
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see tune transliteration --data names.csv --minutes 60",
    "seq2see tune translation --data multi30k --minutes 240 --space space.yaml --trials 20",
    "seq2see tune translation --data multi30k --minutes 480 --space space.yaml --trials 20 --resume",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name listed by `seq2see tasks`, or YAML file")
    parser.add_argument(
        "--data",
        metavar="TABLE",
        help="training data: a table, a folder with train.* and dev.*, or the name of a data set",
    )
    parser.add_argument("--dev", metavar="TABLE", help="development data (default: rows held out from --data)")
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="hold out all rows of some values of this column (speakers, writers) as development data",
    )
    add_columns(parser)
    add_overrides(parser)
    parser.add_argument("--minutes", metavar="M", type=number, help="time of the whole search")
    parser.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="YAML file that maps keys to {low, high, log} or {choices: [...]} (default: learning rate, dropout, "
        "sizes, batch_tokens and label smoothing, around the values of the recipe)",
    )
    parser.add_argument(
        "--trials",
        metavar="N",
        type=integer,
        help="maximum number of trials, which share the time (default: as many as fit, each at most a tenth of it)",
    )
    parser.add_argument("--seed", metavar="N", type=integer, default=1, help="random seed of the search (default: 1)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder of the search (default: runs/tune-TASK)")
    parser.add_argument("--resume", action="store_true", help="continue a search that was stopped")
    add_threads(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    check_above_zero(args, "minutes", "trials")
    for name in ("data", "minutes"):
        if getattr(args, name) is None:
            example = f"{program()} tune {args.recipe} --data pairs.tsv --minutes 60"
            raise UserError(f"no {name}: give --{name}, for example: {example}")
    from seq2see.api import tune
    from seq2see.data.tables import locate
    from seq2see.training.tuning import BEST, MODEL, draw_tuning

    table, beside = locate(args.data)
    if beside is not None and args.by is not None:
        say(f"{beside} is not used: the dev rows are those of the held-out values of '{args.by}'")
        beside = None
    result = tune(
        args.recipe,
        table,
        minutes=args.minutes,
        space=args.space,
        dev=beside if args.dev is None else locate(args.dev)[0],
        columns=args.columns,
        by=args.by,
        overrides=overrides_of(args),
        trials=args.trials,
        seed=args.seed,
        out=args.out,
        resume=args.resume,
    )
    drawn = draw_tuning(result, title=Path(args.data).name)
    if args.json:
        print_json(result.to_dict())
    else:
        print(result.text(), end="")
    folder = Path(result.folder)
    say(f"plot: {', '.join(map(str, drawn))}; model: {folder / MODEL}; train it again, longer:")
    say(f"  {program()} train {folder / BEST} --data {args.data} --minutes M --out DIR")
