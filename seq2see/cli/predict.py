"""`seq2see predict`: What a model says of inputs: of INPUT..., of the rows of --file, or of lines of standard input.

A language model needs no input and samples. With --n-best each output has a line of its own, its score before it.
With --to the predictions go into a table, and to stdout only where --json asks for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.inputs import Item, Source, chunked, reading, source
from seq2see.cli.looks import LooksWriter, picture_writer
from seq2see.cli.parser import Given, Parser, add_beam, add_inputs, add_json, add_model, number, whole
from seq2see.cli.terminal import emit, say
from seq2see.errors import UserError, counted
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.cli.inputs import Item, Source
    from seq2see.looks import Prediction
    from seq2see.pipeline.input_warnings import Notices
    from seq2see.recipe import Recipe


# ---------------- `--to TABLE`

NAMES = ("prediction", "score")


def check_target(to: Path, file: Path | None, *, overwrite: bool) -> None:
    """A table is not written over the one it is made from unless that was asked for."""
    if file is None:
        raise UserError("--to writes the table of --file back with the predictions: give --file too")
    if not overwrite and to.exists() and file.exists() and to.samefile(file):
        raise UserError(f"--to {to}: that is the table of --file; give another, or --overwrite to replace it")


def write_back(
    path: Path, inputs: Source, told: Iterator[tuple[Item, Prediction]], *, n_best: int, scored: bool
) -> None:
    """Write the rows with their predictions, and say where they are; scored: outputs have a score."""
    from seq2see.data.tables import write

    ranks = columns_for(n_best, inputs.columns, scored=scored)
    added = [name for names in ranks for name in names]
    written, meter = 0, Meter()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal written
        for item, prediction in told:
            written += 1
            meter("rows predicted", written)
            ranked: list[tuple[Any, ...]] = [(answer_of(prediction), None if prediction.reason else prediction.score)]
            ranked += [(other.text, other.score) for other in prediction.alternatives]
            row = dict(item.row)
            row |= {column: _from(path, item.inputs[name], row[column]) for name, column in inputs.files.items()}
            if isinstance(prediction.image, str):
                ranked[0] = (_from(path, prediction.image, prediction.image), prediction.score)
            for names, values in zip(ranks, ranked, strict=False):
                row |= zip(names, values, strict=False)
            yield row

    try:
        write(path, rows(), [*inputs.columns, *added])
    finally:
        meter.close()
    own = [name for rank in range(n_best) for name in _names(1, rank) if name in inputs.columns]
    why = f" (the table has {', '.join(own)} of its own)" if own else ""
    say(f"{counted(written, 'prediction')} in {path}, columns {', '.join(added)}{why}")


def _from(table: Path, file: str, written: str) -> str:
    """A file as the new table has to name it: paths in a table begin where it lies, unless they are whole."""
    return written if not written.strip() or Path(written).is_absolute() else os.path.relpath(file, table.parent)


def answer_of(prediction: Prediction) -> str:
    """The answer as text; numbers such that they can be read again."""
    if prediction.vector is None:
        return "" if prediction.answer is None else str(prediction.answer)
    from seq2see.modalities.vector import written

    return written(prediction.vector)


def columns_for(n_best: int, taken: Collection[str], *, scored: bool = True) -> list[tuple[str, ...]]:
    """(prediction, score) columns for each rank; where the table has any of these, all of them are another run's.

    >>> columns_for(2, ["word"])
    [('prediction', 'score'), ('prediction_2', 'score_2')]
    >>> columns_for(2, ["word", "score"])
    [('prediction_run2', 'score_run2'), ('prediction_run2_2', 'score_run2_2')]
    """
    for run in count(1):
        found = [_names(run, rank)[: 1 + scored] for rank in range(n_best)]
        if not any(name in taken for names in found for name in names):
            return found
    raise AssertionError("there is always a name that is free")


def _names(run: int, rank: int) -> tuple[str, ...]:
    ending = ("" if run == 1 else f"_run{run}") + ("" if rank == 0 else f"_{rank + 1}")
    return tuple(f"{name}{ending}" for name in NAMES)


EXAMPLES = (
    'seq2see predict runs/translation "a dog runs" --beam 5 --n-best 3',
    "seq2see predict runs/translation --file in.tsv --to out.tsv",
    "seq2see predict runs/entailment $'a man sleeps\\ta man is awake' --json --looks -",
)
INLINE = "-"
SEARCH: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "--n-best": ("N", whole, "the N best outputs of each input"),
    "--temperature": ("T", number, "of --sample: below 1 safer, above 1 bolder"),
    "--top-k": ("K", whole, "--sample from the K likeliest symbols"),
    "--top-p": ("P", number, "--sample from the likeliest symbols that hold P of the probability"),
    "--seed": ("N", whole, "of --sample: same seed, same outputs"),
    "--min-length": ("N", whole, "outputs of at least N tokens"),
    "--max-length": ("N", whole, "outputs of at most N tokens"),
    "--prefix": ("TEXT", str, "every output begins with this"),
}


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_inputs(parser)
    parser.add_argument(
        "--to", metavar="TABLE", type=Path, help="write the table of --file back, the predictions added as columns"
    )
    parser.add_argument("--overwrite", action="store_true", help="--to may be the table of --file itself")
    add_beam(parser)
    parser.add_argument("--sample", action="store_true", help="draw outputs instead of searching for the best")
    for name, (metavar, kind, about) in SEARCH.items():
        parser.add_argument(name, metavar=metavar, type=kind, help=about)
    parser.add_argument(
        "--looks",
        metavar="PATH",
        help="where the model looked: - inline in the JSON; a folder, one picture per input; a .jsonl file; "
        "a .png, .svg, .html or .json file for a single input",
    )
    parser.add_argument(
        "--pictures", metavar="DIR", type=Path, help="models that give pictures: the folder they are written to"
    )
    add_json(parser)


def run(given: Given) -> None:
    if given.to is not None:
        check_target(given.to, given.file, overwrite=given.overwrite)
    elif given.overwrite:
        raise UserError("--overwrite: no meaning without --to")
    from seq2see.pipeline.input_warnings import Notices

    model = reading(given.model, given.on_error)
    options = _options(given, model)
    made = picture_writer(given.pictures, gives_pictures=model.recipe.output.file)
    inputs = source(model, given.inputs, given.file, given.columns)
    inline = given.looks == INLINE
    writer = None if given.looks is None or inline else LooksWriter(given.looks, count=inputs.count)
    notices = Notices(model.bundles)
    if options.get("n_best", 1) > 1 and not (given.json or inline or given.to is not None):
        say(_legend(model.recipe, options))
    with nullcontext() if writer is None else closing(writer):
        told = _predicted(model, inputs, options, writer, notices)
        if made is not None:
            told = made.written(told)
        if given.json or inline:
            told = _emitted(told, looks=inline)
        if given.to is not None:
            write_back(given.to, inputs, told, n_best=given.n_best or 1, scored=not model.recipe.output.numeric)
        for _, prediction in told:
            if not (given.json or inline):
                print(_lines(prediction), flush=True)
    for line in notices.lines():
        say(line)


def _options(given: Given, model: Model) -> dict[str, Any]:
    """The options of the search that were given."""
    names = ["beam", *(name.removeprefix("--").replace("-", "_") for name in SEARCH)]
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.sample or (not model.recipe.inputs and given.beam is None):
        options["sample"] = True
    _check_searched(options, model.recipe)
    if given.max_length is not None:
        from seq2see.pipeline.predictor import check_reach

        check_reach(model.recipe, given.max_length, f"--max-length {given.max_length}")
    if not (given.json or given.looks == INLINE):
        options.setdefault("n_best", 1)
    if given.looks is not None:
        options["maps"] = True
    if given.seed is not None and not options.get("sample"):
        raise UserError("--seed: no meaning without --sample: a search finds the same each time")
    return options


def _check_searched(options: dict[str, Any], recipe: Recipe) -> None:
    """Refuse, by their names here, options of a search where nothing is searched for."""
    from seq2see.pipeline.predictor import ranked, unsearched

    useless = [name for name in options if name not in ranked(recipe)] if recipe.output.one_step else []
    if useless:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in useless)
        raise UserError(f"{names}: no meaning here: {unsearched(recipe).replace('n_best', '--n-best')}")


def _predicted(
    model: Model, inputs: Source, options: dict[str, Any], writer: LooksWriter | None, notices: Notices
) -> Iterator[tuple[Item, Prediction]]:
    first = 0
    for chunk in chunked(inputs.items):
        rows = [dict(item.inputs) for item in chunk]
        for one, prediction in zip(
            chunk, model.predict(rows, first_row=first, notices=notices, **options), strict=True
        ):
            if writer is not None:
                writer.add(prediction)
            yield one, prediction
        first += len(chunk)


def _emitted(told: Iterator[tuple[Item, Prediction]], *, looks: bool) -> Iterator[tuple[Item, Prediction]]:
    """Pass predictions on, each also as a line of JSON."""
    for one, prediction in told:
        emit(prediction.to_dict(looks=looks))
        yield one, prediction


def _legend(recipe: Recipe, options: dict[str, Any]) -> str:
    """What the columns of an n-best list are."""
    from seq2see.pipeline.predictor import options_of

    if recipe.output.one_step:
        return "columns: score (log-probability), output"
    searched = options_of(recipe, **{name: value for name, value in options.items() if name != "maps"})
    return f"columns: score, output ({searched.ranking}; --json has the log-probability too)"


def _lines(prediction: Prediction) -> str:
    """The answer alone; with alternatives a line for each, its score first."""
    if not prediction.alternatives:
        return answer_of(prediction)
    ranked = [(prediction.score, prediction.answer), *((other.score, other.text) for other in prediction.alternatives)]
    return "\n".join(f"{score:.4f}\t{text}" for score, text in ranked)
