"""The command line: predict, look, score, serve. Results go to stdout, messages to stderr; exit 2: bad input."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from seq2see.errors import UserError, nearest
from seq2see.files import parse_json
from seq2see.looks import Prediction

if TYPE_CHECKING:
    from seq2see_runtime.model import Model

DELIMITERS = {".tsv": "\t", ".csv": ","}
TABLES = (".tsv", ".csv", ".jsonl", ".txt")
MOST_CHARACTERS = 1 << 20
"""Characters of one cell of a table."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(options, "inputs") or any(part.startswith("-") and part != "-" for part in rest)):
        parser.error(f"unknown: {' '.join(rest)}")
    if rest:  # inputs behind options
        options.inputs = [*options.inputs, *rest]
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
    except UserError as error:
        print(f"seq2see-runtime: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the results has left
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"seq2see-runtime: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seq2see-runtime", description="Models exported by seq2see, without torch.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], None], about: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about, description=about)
        made.add_argument("model", metavar="MODEL", help="folder that `seq2see export MODEL --to onnx` wrote")
        about_threads = "threads (default: one per core, at most 4)"
        made.add_argument("--threads", type=_count, choices=range(257), metavar="N", default=0, help=about_threads)
        made.set_defaults(command=command)
        return made

    predicting = add("predict", _predict, "outputs of the model")
    predicting.add_argument("inputs", nargs="*", metavar="INPUT", help="a text, or several: NAME=VALUE for each input")
    predicting.add_argument("--file", type=Path, help=f"table of inputs ({', '.join(TABLES)}; .gz too)")
    _add_search(predicting)
    predicting.add_argument("--looks", metavar="PATH", help="- : in the JSON; a file ending in .jsonl: written there")
    predicting.add_argument("--json", action="store_true", help="one JSON object per line")

    looking = add(
        "look", _look, "where the model looks, as .json, or with seq2see-runtime[pictures] as .png, .svg, .html"
    )
    looking.add_argument("inputs", nargs="+", metavar="INPUT", help="a text, or NAME=VALUE for each input")
    looking.add_argument("--out", type=Path, required=True, help="file to write: .json, or a picture")
    looking.add_argument("--target", help="an output to follow instead of the model's own")
    _add_search(looking)

    scoring = add("score", _score, "log-probability and perplexity of given outputs")
    scoring.add_argument("--data", type=Path, required=True, help="table of inputs and outputs")
    scoring.add_argument("--each", action="store_true", help="every row")
    scoring.add_argument("--json", action="store_true", help="one JSON object per line")

    serving = add("serve", _serve, "an HTTP API: POST /api/predict, /api/score")
    serving.add_argument("--host", default="127.0.0.1", help="address (default: this machine alone)")
    serving.add_argument(
        "--port", type=_count, metavar="N", default=8000, help="port (default: 8000; 0: any that is free)"
    )
    serving.add_argument("--token", help="clients must send it: Authorization: Bearer TOKEN")
    return parser


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--beam", type=_count, metavar="N", help="hypotheses that the search keeps; 1: greedy (default: the recipe's)"
    )
    parser.add_argument("--n-best", type=_count, metavar="N", help="outputs of each input (default: all of the beam)")
    parser.add_argument("--sample", action="store_true", default=None, help="draw outputs instead of searching")
    parser.add_argument("--temperature", type=float, metavar="T", help="below 1 safer, above 1 bolder")
    parser.add_argument("--seed", type=_count, metavar="N", help="of sampling: same seed, same outputs")
    parser.add_argument("--max-length", type=_count, metavar="N", help="maximum number of symbols")
    parser.add_argument("--prefix", help="what every output begins with")
    parser.add_argument(
        "--no-shortlist",
        dest="shortlist",
        action="store_false",
        default=None,
        help="consider every symbol, though the model was exported with a shortlist",
    )


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 10 else -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r}; a whole number from 0 on expected")
    return number


SEARCH = ("beam", "n_best", "sample", "temperature", "seed", "max_length", "prefix", "shortlist")


def _search(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in SEARCH if getattr(options, name) is not None}


# ---------------------------------------------------------------- commands


def _loaded(options: argparse.Namespace) -> Model:
    """The model; onnxruntime is imported late, so that `--help` is quick."""
    from seq2see_runtime.model import load

    return load(options.model, threads=options.threads)


def _predict(options: argparse.Namespace) -> None:
    model = _loaded(options)
    if options.file is not None and options.inputs:
        raise UserError("give inputs, or --file, not both")
    if options.file is None and not options.inputs and model.inputs:
        raise UserError(f"no input; this model reads {', '.join(model.inputs)}")
    inline = options.looks == "-"
    written = None if options.looks in (None, "-") else Path(options.looks)
    if written is not None and written.suffix != ".jsonl":
        raise UserError(f"--looks {written}: allowed: -, or a file ending in .jsonl")
    values = rows_of(options.file, model) if options.file is not None else iter(_given(model, options.inputs))
    file = None if written is None else _created(written)
    try:
        done = 0
        for part in _parts(values, 256):
            rows = [model.row(value) for value in part]
            predictions = model.predict_rows(rows, first_row=done, **_search(options))
            done += len(rows)
            for prediction in predictions:
                shown = options.json or inline
                print(_line(prediction, as_json=shown, looks=inline, several=options.n_best is not None))
                if file is not None:
                    file.write(json.dumps(prediction.to_dict(looks=True), ensure_ascii=False) + "\n")
    finally:
        if file is not None:
            file.close()


def _created(path: Path) -> TextIO:
    """A new file; an error names it."""
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def _parts(values: Iterator[Any], size: int) -> Iterator[list[Any]]:
    part: list[Any] = []
    for value in values:
        part.append(value)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def _given(model: Model, inputs: Sequence[str]) -> list[Any]:
    """The inputs that were typed: a text each, or NAME=VALUE for all that a model reads of one."""
    if len(model.inputs) < 2:
        if any(not text.strip() for text in inputs):
            raise UserError("INPUT is empty")
        return list(inputs) or [None]
    pairs = [text.partition("=")[::2] for text in inputs]
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise UserError(f"{max(names, key=names.count)}= is given twice")
    return [dict(pairs)]


def _line(prediction: Prediction, *, as_json: bool, looks: bool, several: bool) -> str:
    if as_json:
        return json.dumps(prediction.to_dict(looks=looks), ensure_ascii=False)
    others = [f"  {other.score:.4f}\t{other.text}" for other in prediction.alternatives] if several else []
    best = str(prediction.answer)
    return best if not others else "\n".join([f"  {prediction.score:.4f}\t{best}", *others])


def _look(options: argparse.Namespace) -> None:
    model = _loaded(options)
    search = _search(options) | ({"target": options.target} if options.target is not None else {})
    given = _given(model, options.inputs)
    if len(given) > 1:
        raise UserError(f"one input at a time, got {len(given)}")
    prediction = model.predict_rows([model.row(given[0])], maps=True, **search)[0]
    if not prediction.looks.maps:
        raise UserError(f"nothing to look at: {prediction.looks.reason}")
    if options.out.suffix == ".json":
        with _created(options.out) as file:
            file.write(json.dumps(prediction.looks.to_dict(), ensure_ascii=False) + "\n")
    else:
        try:
            prediction.looks.save(options.out)
        except ModuleNotFoundError as error:
            raise UserError(f"{error.name} is not installed: pip install 'seq2see-runtime[pictures]'") from None
    print(f"{prediction.answer}\n{options.out}")


def _score(options: argparse.Namespace) -> None:
    model = _loaded(options)
    total, symbols, count = 0.0, 0, 0
    blank = 0
    for value, output in pairs_of(options.data, model):
        if model.missing(model.row(value)):
            blank += 1
            continue
        scored = model.score([(value, output)])[0]
        total, symbols, count = total + scored.log_probability, symbols + len(scored.tokens), count + 1
        if options.each:
            print(
                json.dumps(scored.to_dict(), ensure_ascii=False)
                if options.json
                else f"{scored.log_probability:.4f}\t{output}"
            )
    if blank:
        print(f"{blank} rows with an empty input: left out", file=sys.stderr)
    if not count:
        raise UserError(f"{options.data}: no rows to score")
    perplexity = math.exp(min(-total / symbols, 700))
    report = {"rows": count, "tokens": symbols, "log_probability": total, "perplexity": perplexity}
    print(json.dumps(report) if options.json else "\n".join(f"{name}: {number}" for name, number in report.items()))


def _serve(options: argparse.Namespace) -> None:
    from seq2see_runtime.server import serve

    serve(_loaded(options), options.host, options.port, token=options.token)


# ---------------------------------------------------------------- tables


def rows_of(path: Path, model: Model) -> Iterator[Any]:
    """The inputs of a table, one by one: {name: value}, or of a .txt file its lines."""
    if _kind(path) == ".txt":
        if len(model.inputs) != 1:
            raise UserError(
                f"{path}: lines are single inputs, and this model reads {', '.join(model.inputs) or 'none'}"
            )
        with _opened(path) as file:
            yield from (line.rstrip("\r\n") for line in file)
        return
    for place, record in _records(path):
        yield _inputs(record, model, place, path.parent)


def pairs_of(path: Path, model: Model) -> Iterator[tuple[Any, str]]:
    """The inputs of a table with their outputs."""
    for place, record in _records(path):
        yield _inputs(record, model, place, path.parent) or None, _cell(record, model.columns["output"], place)


def _inputs(record: dict[str, Any], model: Model, place: str, folder: Path) -> dict[str, str]:
    """The inputs of a row; paths of files are relative to the table."""
    single = len(record) == len(model.inputs) == 1
    columns = dict.fromkeys(model.inputs, next(iter(record))) if single else model.columns
    found = {name: _cell(record, columns[name], place) for name in model.inputs}
    return {name: str(folder / value) if name in model.files and value else value for name, value in found.items()}


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A text file, packed or not; errors name it."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield cast(TextIO, file)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def _kind(path: Path) -> str:
    kind = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    if kind not in TABLES:
        raise UserError(f"{path}: {kind or 'no ending'}; allowed: {', '.join(TABLES)}, each also .gz")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    return kind


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where it stands, the row), of a table with a header or of JSON lines."""
    kind = _kind(path)
    if kind != ".jsonl" and kind not in DELIMITERS:
        raise UserError(f"{path}: a table with columns expected: {', '.join(DELIMITERS)}, .jsonl")
    with _opened(path) as file:
        yield from _objects(path, file) if kind == ".jsonl" else _cells(path, file, kind)


def _objects(path: Path, file: TextIO) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise UserError(f"{path}, line {number}: an object expected, got {type(record).__name__}")
        yield f"{path}, line {number}", record


def _cells(path: Path, file: TextIO, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(MOST_CHARACTERS)
    plain: Literal[0, 3] = csv.QUOTE_NONE if kind == ".tsv" else csv.QUOTE_MINIMAL
    reader: csv.DictReader[str] = csv.DictReader(file, delimiter=DELIMITERS[kind], quoting=plain, strict=True)
    try:
        names = list(reader.fieldnames or [])
        if not names or len(set(names)) < len(names):
            raise UserError(f"{path}, line 1: a header with a name for each column expected, got {names}")
        for record in reader:
            place = f"{path}, line {reader.line_num}"
            if None in record or None in record.values():
                raise UserError(f"{place}: as many cells as columns expected, {len(names)}")
            yield place, record
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}") from None


def _cell(record: dict[str, Any], column: str, place: str) -> str:
    if column not in record:
        names = [str(name) for name in record]
        raise UserError(f"{place}: no column '{column}'{nearest(column, names)}; there are {', '.join(names)}")
    value = record[column]
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
