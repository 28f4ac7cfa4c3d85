"""`seq2see predict`: What a model says of inputs: of INPUT..., of the rows of --file, or of lines of standard input.

A language model needs no input and samples. With --n-best each output has a line of its own, its score before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.options import add_beam, add_inputs, add_json, add_model
from seq2see.cli.parser import Given, Parser, number, whole
from seq2see.cli.pictures import LooksWriter
from seq2see.cli.reading import Item, Source, chunked, source
from seq2see.cli.saying import emit, say
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.looks import Prediction

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
    add_json(parser)


def run(given: Given) -> None:
    if given.to is not None and given.file is None:
        raise UserError("--to writes the table of --file back with the predictions: give --file too")
    from seq2see.api import load

    model = load(given.model)
    options = _options(given, model)
    inputs = source(model, given.inputs, given.file, given.columns)
    inline = given.looks == INLINE
    writer = None if given.looks is None or inline else LooksWriter(given.looks, count=inputs.count)
    with nullcontext() if writer is None else closing(writer):
        told = _predicted(model, inputs, options, writer)
        if given.to is not None:
            _write(given.to, inputs, told, given.n_best or 1)
            return
        for _, prediction in told:
            if given.json or inline:
                emit(prediction.to_dict(looks=inline))
            else:
                print(_lines(prediction), flush=True)


def _options(given: Given, model: Model) -> dict[str, Any]:
    """The options of the search that were given."""
    names = ["beam", *(name.removeprefix("--").replace("-", "_") for name in SEARCH)]
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.sample or (not model.recipe.inputs and given.beam is None):
        options["sample"] = True
    if not (given.json or given.looks == INLINE):
        options.setdefault("n_best", 1)
    if given.seed is not None and not options.get("sample"):
        raise UserError("--seed: no meaning without --sample: a search finds the same each time")
    return options


def _predicted(
    model: Model, inputs: Source, options: dict[str, Any], writer: LooksWriter | None
) -> Iterator[tuple[Item, Prediction]]:
    seed = options.get("seed", 0)
    for place, chunk in enumerate(chunked(inputs.items)):
        if options.get("sample"):
            options = {**options, "seed": _seed_of(seed, place)}
        for one, prediction in zip(chunk, model.predict([dict(item.inputs) for item in chunk], **options), strict=True):
            if writer is not None:
                writer.add(prediction)
            yield one, prediction


def _seed_of(seed: int, chunk: int) -> int:
    """Rows are counted from 0 in each chunk, so each draws from a seed of its own, the first from the one given.

    Hashed and not counted up: chunk 1 of seed 0 is not to be chunk 0 of seed 1.
    """
    if not chunk:
        return seed
    return int.from_bytes(blake2b(f"{seed} {chunk}".encode(), digest_size=8).digest(), "little")


def _lines(prediction: Prediction) -> str:
    """The answer alone; with alternatives a line for each, its score first."""
    if not prediction.alternatives:
        return str(prediction.answer)
    ranked = [(prediction.score, prediction.answer), *((other.score, other.text) for other in prediction.alternatives)]
    return "\n".join(f"{score:.4f}\t{text}" for score, text in ranked)


def _write(path: Path, inputs: Source, told: Iterator[tuple[Item, Prediction]], n_best: int) -> None:
    from seq2see.data.tables import write

    added = [name for rank in range(n_best) for name in _columns_of(rank)]
    names = dict(zip(added, free_names(added, inputs.columns), strict=True))
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

    write(path, rows(), [*inputs.columns, *names.values()])
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
