"""`seq2see train`: Train a recipe on a table; the model's folder is --out.

Progress goes to stderr; at the end the dev metrics of the model are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.parser import Given, Parser, add_json, add_training, whole
from seq2see.cli.serve import NEEDED, PORT
from seq2see.cli.terminal import emit, program, say
from seq2see.errors import UserError, imported

if TYPE_CHECKING:
    from seq2see.training.reports import Listener

EXAMPLES = (
    "seq2see train transliteration --data names.csv --minutes 10",
    "seq2see train translation --data multi30k --set attention.score=dot --set encoder.size=256",
    "seq2see train runs/translation --resume",
    "seq2see train translation --data multi30k --studio",
)


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "recipe",
        metavar="RECIPE",
        help="a name that `seq2see tasks` lists, or a YAML file; with --resume also a folder",
    )
    add_training(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="the run's folder; not given: runs/TASK")
    parser.add_argument("--seed", metavar="N", type=whole, help="same seed, same model")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--overwrite", action="store_true", help="begin anew where a run lies already")
    parser.add_argument("--from", dest="start", metavar="MODEL", help="begin from the weights of a model (fine-tuning)")
    parser.add_argument("--device", metavar="D", help="cpu, cuda, cuda:1, mps ...")
    parser.add_argument(
        "--studio", action="store_true", help="a page on this machine that shows the run while it goes, and its film"
    )
    parser.add_argument("--studio-port", metavar="N", type=whole, help="its port (default: 8000; 0: any that is free)")
    add_json(parser)


def run(given: Given) -> None:
    _check(given)
    folder = _folder(given)
    from seq2see import api
    from seq2see.data.locate import locate

    table, beside = (None, None) if given.data is None else locate(given.data)
    if given.resume:
        beside = None  # what the run was begun with holds, unless --dev says it again
    with _watched(folder, given) as listeners:
        api.train(
            given.recipe,
            table,
            dev=beside if given.dev is None else locate(given.dev)[0],
            columns=given.columns,
            out=folder,
            overrides=given.changes,
            epochs=given.epochs,
            updates=given.updates,
            minutes=given.minutes,
            seed=given.seed,
            device=given.device,
            resume=given.resume,
            overwrite=given.overwrite,
            start=given.start,
            listeners=listeners,
        )
    _tell(folder, as_json=given.json, plugins=given.plugins)
    if given.studio:
        brought = "".join(f" --plugin {name}" for name in given.plugins)
        say(f"  {program()} serve {folder}{brought}   (its film is at /live)")


@contextmanager
def _watched(folder: Path, given: Given) -> Iterator[Sequence[Listener]]:
    """The listeners of the run: the terminal, and with --studio a page."""
    from seq2see.training.progress import Progress

    with closing(Progress()) as progress:
        if not given.studio:
            yield [progress]
            return
        for module in NEEDED:
            imported(module, extra="studio")
        from seq2see.studio.app import serve_training_run

        with serve_training_run(folder, PORT if given.studio_port is None else given.studio_port) as (url, page):
            say(f"the run can be watched at {url}")
            yield [progress, page]


def _check(given: Given) -> None:
    for name in ("epochs", "updates", "minutes"):
        value = getattr(given, name)
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"--{name} must be above 0, got {value}")
    if given.studio_port is not None and not given.studio:
        raise UserError(f"--studio-port {given.studio_port}: no meaning without --studio")
    if given.resume:
        useless = ["--from"] if given.start is not None else []
        useless += ["--overwrite"] if given.overwrite else []
        if useless:
            raise UserError(f"{', '.join(useless)}: no meaning with --resume, which goes on with a run as it was begun")
    elif given.data is None:
        raise UserError(f"no data: give a table, for example: {program()} train {given.recipe} --data pairs.tsv")


def _folder(given: Given) -> Path:
    if given.out is not None:
        return Path(given.out)
    if given.resume and Path(given.recipe).is_dir():
        return Path(given.recipe)
    from seq2see.recipe import load_recipe

    return Path("runs") / load_recipe(given.recipe, overrides=[] if given.resume else given.changes).task


def _tell(folder: Path, *, as_json: bool, plugins: Sequence[str]) -> None:
    """The dev metrics on stdout; where the model lies and what to do with it on stderr."""
    from seq2see.recipe import load_recipe
    from seq2see.training.reports import best_report

    report = best_report(folder)
    measured: dict[str, float] = report.get("dev", {})
    if as_json:
        beside = report.get("baseline", {})
        emit({"model": str(folder), "update": report.get("update"), "dev": measured, "baseline": beside})
    else:
        from seq2see.evaluation import lookup

        print("dev " + "  ".join(f"{name} {lookup(name).show(value)}" for name, value in measured.items()))
    recipe = load_recipe(folder / "recipe.yaml")
    say(f"the model is in {folder}; to try it:")
    brought = "".join(f" --plugin {name}" for name in plugins)
    several = "$'" + "\\t".join(map(str.upper, recipe.inputs)) + "'" if len(recipe.inputs) > 1 else "INPUT"
    pictures = " --pictures made" if recipe.output.file else ""
    say(f"  {program()} predict {folder}{f' {several}' if recipe.inputs else ''}{pictures}{brought}")
    if recipe.looked_at:
        say(f"  {program()} look {folder} {several} --out look.png{brought}")
