"""`seq2see predict`: inputs in, outputs out; lines, tables or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seq2see.cli import options as o
from seq2see.cli.pictures import LooksWriter
from seq2see.cli.reading import Given, Source, chunked, source
from seq2see.cli.saying import emit, say
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.looks import Prediction

INLINE = "-"


def predict(
    model: o.Model,
    inputs: o.Inputs = None,
    file: o.File = None,
    to: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Write the table of --file back with the predictions added.")
    ] = None,
    columns: o.Columns = None,
    beam: o.Beam = None,
    n_best: Annotated[
        int | None, typer.Option("--n-best", metavar="N", help="The N best outputs of each input.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw outputs instead of searching the best.")] = False,
    temperature: Annotated[float | None, typer.Option(metavar="T", help="Of --sample; below 1: safer.")] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="--sample from the K likeliest only.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="--sample from the likeliest that hold P.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of --sample: same seed, same outputs.")] = None,
    min_length: Annotated[int | None, typer.Option(metavar="N", help="At least so many tokens.")] = None,
    max_length: Annotated[int | None, typer.Option(metavar="N", help="At most so many tokens.")] = None,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Every output begins with this.")] = None,
    looks: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where the model looked: - inline in the JSON; a folder, one picture per input; a .jsonl file; "
            "a .png, .svg, .html or .json file for a single input.",
        ),
    ] = None,
    as_json: o.Json = False,
) -> None:
    """What a model says of inputs.

    Examples: seq2see predict runs/translation "a dog runs"  ·  seq2see predict runs/translation --file in.tsv --to out.tsv
    """
    if to is not None and file is None:
        raise UserError("--to writes the table of --file back with the predictions: give --file too")
    from seq2see.api import load

    made = load(model)
    options: dict[str, Any] = {
        "beam": beam,
        "n_best": n_best,
        "sample": sample or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "min_length": min_length,
        "max_length": max_length,
        "prefix": prefix,
    }
    if not made.recipe.inputs and beam is None:
        options["sample"] = True
    if seed is not None and not options["sample"]:
        raise UserError("--seed: no meaning without --sample: a search finds the same each time")
    chosen = {name: value for name, value in options.items() if value is not None}
    given = source(made, inputs, file, o.parted(columns))
    writer = None if looks in (None, INLINE) else LooksWriter(looks, count=given.count)  # type: ignore[arg-type]
    with closing(writer) if writer is not None else nullcontext():
        told = _predicted(made, given, chosen, writer)
        if to is not None:
            _write(to, given, told, n_best or 1)
            return
        for _, prediction in told:
            if as_json or looks == INLINE:
                emit(prediction.to_dict(looks=looks == INLINE))
            else:
                print(_lines(prediction), flush=True)


def _predicted(
    model: Model, given: Source, options: dict[str, Any], writer: LooksWriter | None
) -> Iterator[tuple[Given, Prediction]]:
    seed = options.get("seed", 0)
    for number, chunk in enumerate(chunked(given.given)):
        if options.get("sample"):
            options = {**options, "seed": seed + number}  # rows are counted from 0 in each chunk: draw others
        for one, prediction in zip(chunk, model.predict([dict(item.inputs) for item in chunk], **options), strict=True):
            if writer is not None:
                writer.add(prediction)
            yield one, prediction


def _lines(prediction: Prediction) -> str:
    """The answer alone; with alternatives a line for each, its score first."""
    if not prediction.alternatives:
        return str(prediction.answer)
    ranked = [(prediction.score, prediction.answer), *((other.score, other.text) for other in prediction.alternatives)]
    return "\n".join(f"{score:.4f}\t{text}" for score, text in ranked)


def _write(path: Path, given: Source, told: Iterator[tuple[Given, Prediction]], n_best: int) -> None:
    from seq2see.data.tables import write

    added = [name for rank in range(n_best) for name in _columns_of(rank)]
    names = dict(zip(added, free_names(added, given.columns), strict=True))
    count = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal count
        for one, prediction in told:
            count += 1
            ranked: list[tuple[Any, float]] = [(prediction.answer, prediction.score)]
            ranked += [(other.text, other.score) for other in prediction.alternatives]
            row = dict(one.row)
            for rank, values in enumerate(ranked[:n_best]):
                row |= {names[name]: value for name, value in zip(_columns_of(rank), values, strict=True)}
            yield row

    write(path, rows(), [*given.columns, *names.values()])
    say(f"{count:,} predictions in {path}, column{'s' if len(names) > 1 else ''} {', '.join(names.values())}")


def _columns_of(rank: int) -> tuple[str, str]:
    return ("prediction", "score") if rank == 0 else (f"prediction_{rank + 1}", f"score_{rank + 1}")


def free_names(wanted: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names for new columns; one that the table has already gets a number.

    >>> free_names(["prediction", "score"], ["word", "score"])
    ['prediction', 'score_2']
    """
    used = set(taken)
    found = []
    for name in wanted:
        free, number = name, 2
        while free in used:
            free, number = f"{name}_{number}", number + 1
        used.add(free)
        found.append(free)
    return found
