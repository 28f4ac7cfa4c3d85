"""`seq2see predict`: Predict outputs for INPUT..., for the rows of --file, or for lines of standard input.

A language model takes no input and samples. With --n-best each output is on a line of its own, after its score.
With --to the predictions are written to a table, and printed only with --json.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.inputs import chunked, load_model, read_inputs
from seq2see.cli.looks import LooksWriter, image_writer
from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_inputs,
    add_json,
    add_model,
    integer,
    number,
    print_json,
    say,
)
from seq2see.errors import UserError, counted
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.cli.inputs import InputSource, Item
    from seq2see.looks import Prediction
    from seq2see.pipeline.inputs import Notices
    from seq2see.recipe import Recipe


NAMES = ("prediction", "score")


def check_target(to: Path, file: Path | None, *, overwrite: bool) -> None:
    """Refuse to overwrite the input table unless that is allowed."""
    if file is None:
        raise UserError("--to needs --file: it writes that table with predictions added")
    if not overwrite and to.exists() and file.exists() and to.samefile(file):
        raise UserError(f"--to {to} is the table of --file; give another path, or --overwrite to replace it")


def write_back(
    path: Path, inputs: InputSource, predictions: Iterator[tuple[Item, Prediction]], *, n_best: int, scored: bool
) -> None:
    """Write the rows with their predictions; scored: outputs have a score."""
    from seq2see.data.tables import write

    ranks = columns_for(n_best, inputs.columns, scored=scored)
    added = [name for names in ranks for name in names]
    written, meter = 0, Meter()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal written
        for item, prediction in predictions:
            written += 1
            meter("rows predicted", written)
            ranked: list[tuple[Any, ...]] = [(answer_of(prediction), None if prediction.reason else prediction.score)]
            ranked += [(other.text, other.score) for other in prediction.alternatives]
            row = dict(item.row)
            row |= {
                column: _relative_path(path, item.inputs[name], row[column]) for name, column in inputs.files.items()
            }
            if isinstance(prediction.image, str):
                ranked[0] = (_relative_path(path, prediction.image, prediction.image), prediction.score)
            for names, values in zip(ranks, ranked, strict=False):
                row |= zip(names, values, strict=False)
            yield row

    try:
        write(path, rows(), [*inputs.columns, *added])
    finally:
        meter.close()
    own = [name for rank in range(n_best) for name in _names(1, rank) if name in inputs.columns]
    why = f" (the table already has {', '.join(own)})" if own else ""
    say(f"{counted(written, 'prediction')} in {path}, columns {', '.join(added)}{why}")


def _relative_path(table: Path, file: str, written: str) -> str:
    """A file path relative to the new table, unless it is absolute."""
    return written if not written.strip() or Path(written).is_absolute() else os.path.relpath(file, table.parent)


def answer_of(prediction: Prediction) -> str:
    """The answer as text; vectors in a form that can be read back."""
    if prediction.vector is None:
        return "" if prediction.answer is None else str(prediction.answer)
    from seq2see.modalities.vector import written

    return written(prediction.vector)


def columns_for(n_best: int, taken: Collection[str], *, scored: bool = True) -> list[tuple[str, ...]]:
    """(prediction, score) columns for each rank; with a suffix if the table already has columns of these names.

    >>> columns_for(2, ["word"])
    [('prediction', 'score'), ('prediction_2', 'score_2')]
    >>> columns_for(2, ["word", "score"])
    [('prediction_run2', 'score_run2'), ('prediction_run2_2', 'score_run2_2')]
    """
    for run in count(1):
        columns = [_names(run, rank)[: 1 + scored] for rank in range(n_best)]
        if not any(name in taken for names in columns for name in names):
            return columns
    raise AssertionError("unreachable")


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
    "--n-best": ("N", integer, "number of outputs for each input"),
    "--temperature": ("T", number, "temperature of --sample"),
    "--top-k": ("K", integer, "sample from the K most likely symbols"),
    "--top-p": ("P", number, "sample from the most likely symbols with total probability P"),
    "--seed": ("N", integer, "random seed of --sample"),
    "--min-length": ("N", integer, "minimum length of outputs in tokens"),
    "--max-length": ("N", integer, "maximum length of outputs in tokens"),
    "--prefix": ("TEXT", str, "force outputs to begin with this text"),
}


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_inputs(parser)
    parser.add_argument(
        "--to", metavar="TABLE", type=Path, help="write the table of --file with predictions added as columns"
    )
    parser.add_argument("--overwrite", action="store_true", help="allow --to to replace the table of --file")
    add_beam(parser)
    parser.add_argument("--sample", action="store_true", help="sample outputs instead of searching")
    for name, (metavar, kind, about) in SEARCH.items():
        parser.add_argument(name, metavar=metavar, type=kind, help=about)
    parser.add_argument(
        "--looks",
        metavar="PATH",
        help="save where the model looked: - for inline JSON, a folder (one image per input), a .jsonl file, or "
        "a .png, .svg, .html or .json file for a single input",
    )
    parser.add_argument("--pictures", metavar="DIR", type=Path, help="folder for the images that a model outputs")
    add_json(parser)


def run(args: Arguments) -> None:
    if args.to is not None:
        check_target(args.to, args.file, overwrite=args.overwrite)
    elif args.overwrite:
        raise UserError("--overwrite needs --to")
    from seq2see.pipeline.inputs import Notices

    model = load_model(args.model, args.on_error)
    options = _options(args, model)
    images = image_writer(args.pictures, outputs_images=model.recipe.output.file)
    inputs = read_inputs(model, args.inputs, args.file, args.columns)
    inline = args.looks == INLINE
    writer = None if args.looks is None or inline else LooksWriter(args.looks, count=inputs.count)
    notices = Notices(model.bundles)
    if options.get("n_best", 1) > 1 and not (args.json or inline or args.to is not None):
        say(_legend(model.recipe, options))
    with nullcontext() if writer is None else closing(writer):
        predictions = _predict(model, inputs, options, writer, notices)
        if images is not None:
            predictions = images.save_images(predictions)
        if args.json or inline:
            predictions = _print_as_json(predictions, looks=inline)
        if args.to is not None:
            write_back(args.to, inputs, predictions, n_best=args.n_best or 1, scored=not model.recipe.output.numeric)
        for _, prediction in predictions:
            if not (args.json or inline):
                print(_lines(prediction), flush=True)
    for line in notices.lines():
        say(line)


def _options(args: Arguments, model: Model) -> dict[str, Any]:
    """The search options."""
    names = ["beam", *(name.removeprefix("--").replace("-", "_") for name in SEARCH)]
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.sample or (not model.recipe.inputs and args.beam is None):
        options["sample"] = True
    _check_searched(options, model.recipe)
    if args.max_length is not None:
        from seq2see.pipeline.predictor import check_length

        check_length(model.recipe, args.max_length, f"--max-length {args.max_length}")
    if not (args.json or args.looks == INLINE):
        options.setdefault("n_best", 1)
    if args.looks is not None:
        options["maps"] = True
    if args.seed is not None and not options.get("sample"):
        raise UserError("--seed needs --sample: a search is deterministic")
    return options


def _check_searched(options: dict[str, Any], recipe: Recipe) -> None:
    """Refuse search options if there is no search."""
    from seq2see.pipeline.predictor import ranking_options, why_no_search

    useless = [name for name in options if name not in ranking_options(recipe)] if recipe.output.one_step else []
    if useless:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in useless)
        raise UserError(f"{names}: not applicable: {why_no_search(recipe).replace('n_best', '--n-best')}")


def _predict(
    model: Model, inputs: InputSource, options: dict[str, Any], writer: LooksWriter | None, notices: Notices
) -> Iterator[tuple[Item, Prediction]]:
    first = 0
    for chunk in chunked(inputs.items):
        rows = [dict(item.inputs) for item in chunk]
        for item, prediction in zip(
            chunk, model.predict(rows, first_row=first, notices=notices, **options), strict=True
        ):
            if writer is not None:
                writer.add(prediction)
            yield item, prediction
        first += len(chunk)


def _print_as_json(predictions: Iterator[tuple[Item, Prediction]], *, looks: bool) -> Iterator[tuple[Item, Prediction]]:
    """Pass predictions on, printing each as a line of JSON."""
    for item, prediction in predictions:
        print_json(prediction.to_dict(looks=looks))
        yield item, prediction


def _legend(recipe: Recipe, options: dict[str, Any]) -> str:
    """The meaning of the columns of an n-best list."""
    from seq2see.pipeline.predictor import options_of

    if recipe.output.one_step:
        return "columns: score (log-probability), output"
    searched = options_of(recipe, **{name: value for name, value in options.items() if name != "maps"})
    return f"columns: score, output ({searched.ranking}; --json has the log-probability too)"


def _lines(prediction: Prediction) -> str:
    """The answer alone, or with alternatives one line for each, after its score."""
    if not prediction.alternatives:
        return answer_of(prediction)
    ranked = [(prediction.score, prediction.answer), *((other.score, other.text) for other in prediction.alternatives)]
    return "\n".join(f"{score:.4f}\t{text}" for score, text in ranked)
