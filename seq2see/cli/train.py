"""`seq2see train`: a recipe and a table in, a model's folder out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2see.cli import options as o
from seq2see.cli.saying import emit, say
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.recipe import Recipe


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A shipped recipe (seq2see tasks) or a YAML file; with --resume also a run's folder."
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Rows to learn from: a table, a folder with train.* and dev.*, or a data set's name."
        ),
    ] = None,
    dev: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Rows to measure on; not given: some of --data are set aside.")
    ] = None,
    columns: o.Columns = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run's folder.", show_default="runs/TASK")] = None,
    changes: o.Set = None,
    epochs: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after N readings of the rows.")] = None,
    updates: Annotated[int | None, typer.Option(metavar="N", min=1, help="Stop after N updates.")] = None,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Stop after M minutes.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Same seed, same model.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew where a run lies already.")] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="Begin from the weights of a model (fine-tuning).")
    ] = None,
    device: Annotated[str | None, typer.Option(metavar="D", help="cpu, cuda, cuda:1, mps ...")] = None,
    as_json: o.Json = False,
) -> None:
    """Train a recipe on a table.

    Example: seq2see train grapheme-to-phoneme --data words.tsv --minutes 10
    """
    if minutes is not None and not minutes > 0:
        raise UserError(f"--minutes must be above 0, got {minutes:g}")
    if resume:
        _refuse_with_resume(data=data, dev=dev, columns=columns, overwrite=overwrite, start=start)
    elif data is None:
        raise UserError(f"no data: give a table with --data, for example: seq2see train {recipe} --data pairs.tsv")
    folder = _folder(recipe, changes or [], out, resume=resume)
    if not (resume or overwrite):
        check_free(folder)
    from seq2see import api
    from seq2see.data.locate import locate

    table, beside = locate(data) if data is not None else (None, None)
    api.train(
        recipe,
        table,
        dev=locate(dev)[0] if dev is not None else beside,
        columns=o.parted(columns),
        out=folder,
        overrides=changes or (),
        epochs=epochs,
        updates=updates,
        minutes=minutes,
        seed=seed,
        device=device,
        resume=resume,
        start=start,
    )
    _tell(folder, as_json=as_json)


def _refuse_with_resume(**given: object) -> None:
    names = {"start": "from"}
    useless = [f"--{names.get(name, name)}" for name, value in given.items() if value]
    if useless:
        raise UserError(f"{', '.join(useless)}: no meaning with --resume, which goes on with the run as it was begun")


def _folder(recipe: str, changes: list[str], out: Path | None, *, resume: bool) -> Path:
    if out is not None:
        return out
    if resume and Path(recipe).is_dir():
        return Path(recipe)
    from seq2see.recipe import load_recipe

    made: Recipe = load_recipe(recipe, overrides=changes)
    return Path("runs") / made.task


def check_free(folder: Path) -> None:
    """A run is never lost by mistake."""
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a run needs a folder")
    if any((folder / name).exists() for name in ("recipe.yaml", "model.safetensors", "metrics.jsonl")):
        raise UserError(
            f"{folder} holds a run already and nothing was changed; --resume goes on with it, --out takes another "
            "folder, --overwrite begins anew"
        )


def _tell(folder: Path, *, as_json: bool) -> None:
    """The dev metrics of the best report on stdout; where the model lies and what to do with it on stderr."""
    report = best_report(folder)
    measured: dict[str, Any] = report.get("dev", {})
    if as_json:
        emit(
            {
                "model": str(folder),
                "update": report.get("update"),
                "dev": measured,
                "baseline": report.get("baseline", {}),
            }
        )
    else:
        from seq2see.evaluation import lookup

        print("dev " + "  ".join(f"{name} {lookup(name).show(value)}" for name, value in measured.items()))
    say(f"the model is in {folder}; to try it:")
    say(f"  seq2see predict {folder} INPUT")
    say(f"  seq2see look {folder} INPUT --out look.png")


def best_report(folder: Path) -> dict[str, Any]:
    """The report of metrics.jsonl whose weights were kept."""
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    reports: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return next((report for report in reversed(reports) if report.get("best")), reports[-1] if reports else {})
