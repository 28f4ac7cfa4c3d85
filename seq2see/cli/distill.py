"""`seq2see distill`: Train one model, the student, on the predictions of an ensemble.

At every symbol the student learns from the mean probabilities of its teachers as well as from the true output (settings
loss.distillation.weight and loss.distillation.temperature). The teachers label the rows of --unlabelled.
`seq2see train DIR --resume` continues a run that was stopped.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_json,
    add_training,
    check_above_zero,
    integer,
    number,
    overrides_of,
)
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see distill runs/a+runs/b+runs/c --data words.tsv --out runs/student",
    "seq2see distill runs/a+runs/b --data words.tsv --unlabelled more.txt --out runs/student --minutes 10",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("teachers", metavar="MODEL+MODEL", help="folders of the teachers, joined by +; one is enough")
    add_training(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder of the student")
    parser.add_argument("--recipe", metavar="RECIPE", help="recipe of the student (default: that of the first teacher)")
    parser.add_argument(
        "--unlabelled", metavar="TABLE", help="further inputs to train on, which the teachers label (pseudo-labels)"
    )
    parser.add_argument(
        "--real-share",
        metavar="S",
        type=number,
        default=1.0,
        help="share of the rows of --data that keep their outputs; the others get pseudo-labels (default: 1)",
    )
    add_beam(parser)
    parser.add_argument("--seed", metavar="N", type=integer, help="random seed")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing run")
    parser.add_argument("--device", metavar="D", help="device: cpu, cuda, cuda:1, mps ... (default: the recipe's)")
    add_json(parser)


def run(args: Arguments) -> None:
    check_above_zero(args, "epochs", "updates", "minutes")
    if args.data is None:
        raise UserError("no data: give --data, a table with inputs and outputs")
    from seq2see.api import distill
    from seq2see.cli.train import print_report
    from seq2see.data.tables import locate
    from seq2see.training.reports import Progress

    table, dev = locate(args.data)
    with closing(Progress()) as progress:
        distill(
            args.teachers,
            table,
            out=args.out,
            recipe=args.recipe,
            unlabelled=None if args.unlabelled is None else locate(args.unlabelled)[0],
            real_share=args.real_share,
            beam=args.beam,
            dev=dev if args.dev is None else locate(args.dev)[0],
            columns=args.columns,
            overrides=overrides_of(args),
            epochs=args.epochs,
            updates=args.updates,
            minutes=args.minutes,
            seed=args.seed,
            device=args.device,
            overwrite=args.overwrite,
            listeners=[progress],
        )
    print_report(args.out, as_json=args.json, plugins=args.plugins)
