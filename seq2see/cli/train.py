"""`seq2see train`: Train a recipe on a table and write the model to --out.

Progress goes to stderr; at the end the metrics on the development data are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_json,
    add_training,
    check_above_zero,
    integer,
    number,
    overrides_of,
    print_json,
    program,
    say,
)
from seq2see.errors import UserError, imported, speaks

if TYPE_CHECKING:
    from seq2see.training.reports import Listener

EXAMPLES = (
    "seq2see train transliteration --data names.csv --minutes 10",
    "seq2see train translation --data multi30k --set attention.score=dot --set encoder.size=256",
    "seq2see train runs/translation --resume",
    "seq2see train grapheme-to-phoneme --data words.tsv --unlabelled more.txt --confidence 0.95",
    "seq2see train translation --data multi30k --studio",
)


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="name listed by `seq2see tasks`, or YAML file; with --resume also the run's folder",
    )
    add_training(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder of the run (default: runs/TASK)")
    parser.add_argument("--seed", metavar="N", type=integer, help="random seed")
    parser.add_argument("--resume", action="store_true", help="continue a run that was stopped")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing run")
    parser.add_argument(
        "--replay",
        action="store_true",
        help="recompute only the last update of a run whose gradient was not finite, and report where it is not",
    )
    parser.add_argument("--from", dest="start", metavar="MODEL", help="start from the weights of a model (fine-tuning)")
    parser.add_argument(
        "--unlabelled",
        metavar="TABLE",
        help="self-training: inputs that a first model labels (pseudo-labels); limits apply to each stage",
    )
    parser.add_argument(
        "--confidence",
        metavar="C",
        type=number,
        help="minimum probability of a pseudo-label; for texts, the geometric mean over symbols (default: 0.9)",
    )
    parser.add_argument(
        "--pretrain",
        metavar="SHARE",
        type=number,
        help="share of the run spent on denoising pre-training of encoder and decoder on the texts (default: 0)",
    )
    parser.add_argument(
        "--device", metavar="D", help="device: cpu, cuda, cuda:1, mps ... (default: the recipe's setting)"
    )
    parser.add_argument(
        "--track",
        metavar="NAME",
        action="append",
        default=[],
        help="also send reports to a tracker: tensorboard, mlflow or wandb (extras of the same names); may be repeated",
    )
    parser.add_argument("--studio", action="store_true", help="show the run live on a local web page")
    parser.add_argument(
        "--studio-port", metavar="N", type=integer, help="port of that page (default: 8000; 0: any free port)"
    )
    add_json(parser)


def run(args: Arguments) -> None:
    if args.replay:
        _check_replay(args)
        _replay(Path(args.recipe) if args.out is None else args.out, as_json=args.json)
        return
    _check(args)
    folder = _folder(args)
    from seq2see.api import train
    from seq2see.data.tables import locate

    table, beside = (None, None) if args.data is None else locate(args.data)
    if args.resume:
        beside = None  # a resumed run keeps its dev rows unless --dev is given
    with _listeners(folder, args) as listeners:
        train(
            args.recipe,
            table,
            dev=beside if args.dev is None else locate(args.dev)[0],
            columns=args.columns,
            out=folder,
            overrides=overrides_of(args),
            epochs=args.epochs,
            updates=args.updates,
            minutes=args.minutes,
            seed=args.seed,
            device=args.device,
            resume=args.resume,
            overwrite=args.overwrite,
            start=args.start,
            unlabelled=None if args.unlabelled is None else locate(args.unlabelled)[0],
            confidence=args.confidence,
            pretrain=0.0 if args.pretrain is None else args.pretrain,
            listeners=listeners,
        )
    if not speaks():
        return
    print_report(folder, as_json=args.json, plugins=args.plugins)
    if args.studio:
        plugin_options = "".join(f" --plugin {name}" for name in args.plugins)
        say(f"  {program()} serve {folder}{plugin_options}   (the recording is at /live)")


@contextmanager
def _listeners(folder: Path, args: Arguments) -> Iterator[Sequence[Listener]]:
    """The listeners of the run: the terminal, trackers, and with --studio a page."""
    from seq2see.training.reports import Progress
    from seq2see.training.trackers import tracker_named

    with ExitStack() as stack:
        trackers = [tracker_named(name, folder) for name in dict.fromkeys(args.track)] if speaks() else []
        for tracker in trackers:
            stack.enter_context(tracker)
        progress = stack.enter_context(closing(Progress()))
        if not args.studio or not speaks():
            yield [progress, *trackers]
            return
        from seq2see.cli.serve import NEEDED, PORT

        for module in NEEDED:
            imported(module, extra="studio")
        from seq2see.studio.app import serve_training_run

        with serve_training_run(folder, PORT if args.studio_port is None else args.studio_port) as (url, page):
            say(f"watch the run at {url}")
            yield [progress, *trackers, page]


def _check(args: Arguments) -> None:
    check_above_zero(args, "epochs", "updates", "minutes")
    if args.studio_port is not None and not args.studio:
        raise UserError(f"--studio-port {args.studio_port} needs --studio")
    if args.resume:
        useless = _given(args, ["start", "overwrite", "unlabelled", "confidence", "pretrain"])
        if useless:
            raise UserError(
                f"{', '.join(useless)}: cannot be used with --resume, which continues a run as it was started"
            )
    elif args.data is None:
        raise UserError(f"no data: give --data, for example: {program()} train {args.recipe} --data pairs.tsv")


def _check_replay(args: Arguments) -> None:
    """Refuse options that have no effect: a replayed update is as it was."""
    names = ["data", "dev", "columns", "changes", "epochs", "updates", "minutes", "seed", "device", "start"]
    names += ["unlabelled", "confidence", "pretrain", "resume", "overwrite", "track", "studio", "studio_port"]
    useless = _given(args, names)
    if useless:
        raise UserError(
            f"{', '.join(useless)}: cannot be used with --replay, which computes an update of a run as it was"
        )


def _given(args: Arguments, names: Sequence[str]) -> list[str]:
    """Those of the options that are given, as they are typed; a value of 0 is given too."""
    spelled = {"start": "from", "changes": "set", "studio_port": "studio-port"}
    values = {name: getattr(args, name) for name in names}
    return [
        f"--{spelled.get(name, name)}"
        for name, value in values.items()
        if value is not None and value is not False and value != []
    ]


def _folder(args: Arguments) -> Path:
    if args.out is not None:
        return Path(args.out)
    if args.resume and Path(args.recipe).is_dir():
        return Path(args.recipe)
    from seq2see.recipe import load_recipe

    return Path("runs") / load_recipe(args.recipe, overrides=[] if args.resume else args.changes).task


def _replay(folder: Path, *, as_json: bool) -> None:
    """Print what is not finite in the update that a run has saved."""
    from dataclasses import asdict

    from seq2see.training.checkpoints import resumable
    from seq2see.training.run import replay

    found = replay(*resumable(folder), folder=folder)
    if not speaks():
        return
    if as_json:
        print_json(asdict(found))
        return
    print(f"update {found.update:,}: epoch {found.epoch}, batch {found.batch}, loss {found.loss:g}")
    print("rows (from 0, of those trained on): " + ", ".join(map(str, found.rows)))
    for name, value in found.terms.items():
        print(f"loss.{name}: {value:g}")
    for name, count in found.parameters.items():
        print(f"not finite: {count:,} numbers of the gradient of {name}")
    if not found.parameters:
        print("every number of the gradient is finite this time: did the run use another number of processes?")


def print_report(folder: Path, *, as_json: bool, plugins: Sequence[str]) -> None:
    """Print the dev metrics to stdout, and how to use the model to stderr."""
    from seq2see.recipe import load_recipe
    from seq2see.training.reports import best_report

    report = best_report(folder)
    metrics: dict[str, float] = report.get("dev", {})
    if as_json:
        beside = report.get("baseline", {})
        print_json({"model": str(folder), "update": report.get("update"), "dev": metrics, "baseline": beside})
    else:
        from seq2see.evaluation import lookup

        print("dev " + "  ".join(f"{name} {lookup(name).show(value)}" for name, value in metrics.items()))
    recipe = load_recipe(folder / "recipe.yaml")
    say(f"the model is in {folder}; try it with:")
    plugin_options = "".join(f" --plugin {name}" for name in plugins)
    several = "$'" + "\\t".join(map(str.upper, recipe.inputs)) + "'" if len(recipe.inputs) > 1 else "INPUT"
    pictures = " --pictures out" if recipe.output.file else ""
    say(f"  {program()} predict {folder}{f' {several}' if recipe.inputs else ''}{pictures}{plugin_options}")
    if recipe.looked_at:
        say(f"  {program()} look {folder} {several} --out look.png{plugin_options}")
