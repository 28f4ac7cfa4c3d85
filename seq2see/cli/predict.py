"""`seq2see predict`: Predict outputs for INPUT..., for the rows of --file, or for lines of standard input.

A language model takes no input and samples. With --n-best each output is on a line of its own, after its score.
With --to the predictions are written to a table, and printed only with --json. Where --file is a pattern or a folder
of tables (shards), --to is a folder: shards are divided among the processes of torchrun or Slurm, and finished ones
are not predicted again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from seq2see.cli.inputs import chunked, load_model, read_inputs
from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_device,
    add_inputs,
    add_json,
    add_language_model,
    add_model,
    integer,
    language_model_options,
    number,
    print_json,
    say,
)
from seq2see.errors import UserError, counted, processes
from seq2see.pipeline.prediction_columns import PredictionColumns, answer_of, names_of
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.cli.inputs import InputSource, Item
    from seq2see.looks import Looks, Prediction
    from seq2see.pipeline.inputs import Notices
    from seq2see.recipe import Recipe


EXAMPLES = (
    'seq2see predict runs/translation "a dog runs" --beam 5 --n-best 3',
    "seq2see predict runs/translation --file in.tsv --to out.tsv",
    "seq2see predict runs/translation --file 'in/*.tsv.gz' --to out/ --shard 0/4",
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
        "--to",
        metavar="TABLE|DIR",
        help="write the table of --file here, with predictions added as columns; if this is a folder (DIR/, or one "
        "that exists), every table of --file, which may be a folder or a pattern ('in/*.tsv.gz')",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="let --to replace the table of --file, or outputs in DIR of another model or with other options",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        help="predict only the share of process I of N, counted from 0 (default: as set by torchrun or Slurm)",
    )
    add_device(parser)
    add_beam(parser)
    parser.add_argument("--sample", action="store_true", help="sample outputs instead of searching")
    for name, (metavar, kind, about) in SEARCH.items():
        parser.add_argument(name, metavar=metavar, type=kind, help=about)
    add_language_model(parser)
    parser.add_argument(
        "--looks",
        metavar="PATH",
        help="save where the model looked: - for inline JSON, a folder (one image per input), a .jsonl file, or "
        "a .png, .svg, .pdf, .html or .json file for a single input",
    )
    parser.add_argument("--pictures", metavar="DIR", type=Path, help="folder for the images that a model outputs")
    add_json(parser)


def run(args: Arguments) -> None:
    if args.to is None:
        if args.overwrite or args.shard is not None:
            raise UserError(f"{'--overwrite' if args.overwrite else '--shard'} needs --to")
    elif args.file is None:
        raise UserError("--to needs --file: it writes that table with predictions added")
    else:
        from seq2see.cli.predict_shards import is_folder, predict_shards

        if is_folder(args.to, args.file):
            predict_shards(args)
            return
        check_target(Path(args.to), args.file, overwrite=args.overwrite)
        if args.shard is not None:
            raise UserError(
                f"--shard {args.shard}: one table cannot be divided; give --file several tables, and --to DIR/"
            )
    _predict_one(args)


def _predict_one(args: Arguments) -> None:
    if processes() > 1:
        raise UserError(
            f"one input or table cannot be divided among {processes()} processes of torchrun; give --file several "
            "tables and --to DIR/"
        )
    """Predict inputs that are not several tables, and write or print what was asked for."""
    to = None if args.to is None else Path(args.to)
    from seq2see.pipeline.inputs import Notices

    model = load_model(args.model, args.on_error, device=args.device)
    options = search_options(args, model)
    images = image_writer(args.pictures, outputs_images=model.recipe.output.file)
    inputs = read_inputs(model, args.inputs, args.file, args.columns)
    inline = args.looks == INLINE
    writer = None if args.looks is None or inline else LooksWriter(args.looks, count=inputs.count)
    notices = Notices(model.bundles)
    if options.get("n_best", 1) > 1 and not (args.json or inline or to is not None):
        say(_legend(model.recipe, options))
    with nullcontext() if writer is None else closing(writer):
        predictions = predict_items(model, inputs, options, notices, writer=writer)
        if images is not None:
            predictions = images.save_images(predictions)
        if args.json or inline:
            predictions = _print_as_json(predictions, looks=inline)
        if to is not None:
            columns = added_columns(inputs, model.recipe, args.n_best)
            written = write_back(to, inputs, predictions, columns)
            say(f"{counted(written, 'prediction')} in {to}, {_columns_added(inputs, columns)}")
        for _, prediction in predictions:
            if not (args.json or inline):
                print(_lines(prediction), flush=True)
    for line in notices.lines():
        say(line)


def search_options(args: Arguments, model: Model) -> dict[str, Any]:
    """The search options."""
    names = ["beam", *(name.removeprefix("--").replace("-", "_") for name in SEARCH)]
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    options |= language_model_options(args)
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


def predict_items(
    model: Model, inputs: InputSource, options: dict[str, Any], notices: Notices, *, writer: LooksWriter | None = None
) -> Iterator[tuple[Item, Prediction]]:
    """Inputs with their predictions, in order; writer: gets the looks of each."""
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


# ---------------- A table with predictions (--to)


def check_target(to: Path, file: Path, *, overwrite: bool) -> None:
    """Refuse to overwrite the input table unless that is allowed."""
    if not overwrite and to.exists() and file.exists() and to.samefile(file):
        raise UserError(f"--to {to} is the table of --file; give another path, or --overwrite to replace it")


def added_columns(inputs: InputSource, recipe: Recipe, n_best: int | None) -> PredictionColumns:
    """The columns that predictions of this model add to a table."""
    return PredictionColumns.beside(inputs.columns, n_best=n_best or 1, scored=not recipe.output.numeric)


def write_back(
    path: Path,
    inputs: InputSource,
    predictions: Iterator[tuple[Item, Prediction]],
    columns: PredictionColumns,
    *,
    place: Path | None = None,
) -> int:
    """Write the rows with their predictions; returns how many. place: where the table will be in the end, from which
    relative paths of files start (default: `path`)."""
    from seq2see.data.tables import write

    written, meter = 0, Meter()

    def relative(file: str, as_written: str) -> str:
        return _relative_path(place or path, file, as_written)

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal written
        for item, prediction in predictions:
            written += 1
            meter("rows predicted", written)
            row = dict(item.row)
            row |= {column: relative(item.inputs[name], row[column]) for name, column in inputs.files.items()}
            row |= columns.values(prediction)
            if isinstance(prediction.image, str):
                row[columns.names[0]] = relative(prediction.image, prediction.image)
            yield row

    try:
        write(path, rows(), [*inputs.columns, *columns.names], like=inputs.table)
    finally:
        meter.close()
    return written


def _columns_added(inputs: InputSource, columns: PredictionColumns) -> str:
    """'columns prediction, score', and why they are called otherwise."""
    own = [name for rank in range(len(columns.ranks)) for name in names_of(1, rank) if name in inputs.columns]
    why = f" (the table already has {', '.join(own)})" if own else ""
    return f"columns {', '.join(columns.names)}{why}"


def _relative_path(table: Path, file: str, written: str) -> str:
    """A file path relative to the new table, unless it is absolute."""
    return written if not written.strip() or Path(written).is_absolute() else os.path.relpath(file, table.parent)


# ---------------- Attention (--looks PATH) and the images that a model outputs (--pictures DIR)

FORMATS = (".png", ".svg", ".pdf", ".html", ".json")
LINES = ".jsonl"


class LooksWriter:
    """Writes attention to a folder (one image per input), a .jsonl file (one line per input) or one image file."""

    def __init__(self, path: str, *, count: int | None):
        self.path = Path(path)
        suffix = self.path.suffix.lower()
        self._lines: TextIO | None = None
        self._number = 0
        self._single = suffix in FORMATS and not self.path.is_dir()
        if self._single and count != 1:
            raise UserError(
                f"--looks {path}: an image shows one input, got {count or 'several'}; give a folder or a {LINES} file"
            )
        if not self._single and suffix != LINES and suffix and not self.path.is_dir():
            allowed = ", ".join((*FORMATS, LINES))
            raise UserError(f"--looks {path}: unknown suffix '{self.path.suffix}'; allowed: a folder, {allowed}, or -")
        try:
            if suffix == LINES:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._lines = self.path.open("w", encoding="utf-8")
            elif not self._single:
                self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--looks {path}: cannot write: {error.strerror or error}") from None

    def add(self, prediction: Prediction) -> None:
        """Write the looks of the next prediction."""
        self._number += 1
        looks = prediction.looks
        if self._lines is not None:
            self._lines.write(json.dumps(looks.to_dict(), ensure_ascii=False) + "\n")
            return
        if prediction.reason and not self._single:
            return  # no answer, no image; numbers follow the inputs
        check_looks(looks)
        if self._single:
            looks.save(self.path)
        else:
            looks.save(self.path / f"{self._number:05d}{_name_part(prediction.input)}.png")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


def image_writer(folder: Path | None, *, outputs_images: bool) -> ImageWriter | None:
    """The writer of a model's output images; None if it does not output images."""
    if outputs_images and folder is None:
        raise UserError("the model outputs images: give a folder for them with --pictures DIR")
    if not outputs_images and folder is not None:
        raise UserError("--pictures: this model does not output images (use --looks to draw where it looked)")
    return None if folder is None else ImageWriter(folder)


class ImageWriter:
    """Writes images to a folder, one .png each, numbered and named after the inputs."""

    def __init__(self, folder: Path):
        self.folder, self._number = folder, 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--pictures {folder}: cannot write: {error.strerror or error}") from None

    def save_images(self, predictions: Iterator[tuple[Item, Prediction]]) -> Iterator[tuple[Item, Prediction]]:
        """Pass predictions on, with the path of each image in place of its pixels."""
        from PIL import Image

        for item, prediction in predictions:
            self._number += 1
            if prediction.reason:
                yield item, prediction
                continue
            assert prediction.image is not None
            assert not isinstance(prediction.image, str)
            stems = [Path(str(value)).stem for value in item.inputs.values()]
            path = self.folder / f"{self._number:05d}{_name_part(' '.join(stems))}.png"
            try:
                Image.fromarray(prediction.image).save(path)
            except OSError as error:
                raise UserError(f"{path}: cannot write: {error.strerror or error}") from None
            yield item, replace(prediction, image=str(path))


def check_looks(looks: Looks) -> None:
    """Raise a UserError if the model has no attention."""
    if not looks.maps:
        raise UserError(looks.reason or "this model has no attention: there is nothing to draw")


def _name_part(value: object) -> str:
    """'-hello' for the input 'hello': the part of a file name that says what it shows."""
    words = " ".join(map(str, value.values())) if isinstance(value, dict) else str(value or "")
    short = re.sub(r"[^\w]+", "-", words).strip("-")[:40]
    return f"-{short}" if short else ""
