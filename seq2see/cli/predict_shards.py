"""`seq2see predict --file SHARDS --to DIR`: tables predicted one by one, shared out over processes that do not talk.

Each process finds its own shards by the number of processes and its own number among them, and skips those that are
finished. What is predicted for a row depends on the model, the options and the shard alone: not on the other shards,
nor on who predicts them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.inputs import load_model, read_inputs
from seq2see.cli.parser import Arguments, say
from seq2see.cli.predict import added_columns, image_writer, predict_items, search_options, write_back
from seq2see.errors import UserError, counted, listing
from seq2see.progress import remaining

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.cli.inputs import Item
    from seq2see.pipeline.finished_shards import FinishedShards

# ---------------- Which process this is

VARIABLES = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), ("SLURM_PROCID", "SLURM_NTASKS"))
"""(number of this process, number of processes): of torchrun; of a step that srun started; of a Slurm job."""
MOST_PROCESSES = 1_000_000


@dataclass(frozen=True)
class Process:
    """One of `count` processes, numbered from 0; source: what says so."""

    number: int = 0
    count: int = 1
    source: str = ""

    def say(self, message: str) -> None:
        """Print a message to stderr, after the number of the process where there are several."""
        say(f"[{self.number}/{self.count}] {message}" if self.count > 1 else message)


def process_of(option: str | None, environment: Mapping[str, str]) -> Process:
    """This process among those that share the work: by --shard I/N, or by the variables of torchrun or Slurm."""
    if option is not None:
        number, slash, count = option.partition("/")
        if not slash:
            raise UserError(f"--shard {option}: expected I/N, process I (from 0) of N, for example 0/4")
        return _process(number, count, f"--shard {option}")
    for number, count in VARIABLES:
        if number in environment and count in environment:
            source = f"{number}={environment[number]}, {count}={environment[count]}"
            return _process(environment[number], environment[count], source)
    for name, other in (VARIABLES[0], VARIABLES[0][::-1]):
        if name in environment:
            raise UserError(f"{name} is set but {other} is not: torchrun sets both; or give --shard I/N")
    return Process()


def _process(number: str, count: str, source: str) -> Process:
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in (number, count)):
        raise UserError(f"{source}: expected two whole numbers: the process (from 0) and the number of processes")
    if not 1 <= int(count) <= MOST_PROCESSES:
        raise UserError(f"{source}: {count} processes; allowed: 1 to {MOST_PROCESSES:,}")
    if int(number) >= int(count):
        raise UserError(f"{source}: no process {number} among {count}; allowed: 0 to {int(count) - 1}")
    return Process(int(number), int(count), source)


# ---------------- Shards and their folder


def is_folder(to: str, file: Path) -> bool:
    """Whether --to is a folder for the tables of --file."""
    from seq2see.data.shards import names_several
    from seq2see.data.tables import format_of

    folder = to.endswith(("/", os.sep)) or Path(to).is_dir()
    if folder or not names_several(file):
        return folder
    try:
        format_of(Path(to))
    except UserError:
        return True
    raise UserError(
        f"--to {to}: --file {file} names several tables, each of which is written to a file of its own; "
        f"give a folder (--to {to}/ is one)"
    )


def shards_for(file: Path, to: Path, tell: Callable[[str], None]) -> list[Path]:
    """The tables of --file, which can all be written into the folder --to."""
    from seq2see.data.shards import shards_of
    from seq2see.data.tables import format_of

    tables = shards_of(file)
    folder = to.resolve()
    shards = [shard for shard in tables if folder not in shard.resolve().parents]
    if not shards:
        raise UserError(f"--to {to}: --file {file} is in this folder; give another one, as tables keep their names")
    if len(shards) < len(tables):  # 'data/**/*.tsv' with --to data/out
        tell(f"{counted(len(tables) - len(shards), 'table')} of --file in {to} left out")
    names = Counter(shard.name for shard in shards)
    twice = [shard for shard in shards if names[shard.name] > 1]
    if twice:
        raise UserError(
            f"--file {file}: tables keep their names in {to}, and these have the same: {listing(map(str, twice), 4)}"
        )
    for shard in shards:
        if shard.suffix == ".zst":
            raise UserError(
                f"{shard}: predictions are written in the format of the table, and .zst can only be read; allowed: .gz"
            )
        if shard.is_dir() or format_of(shard).one_column:
            kind = "a dataset folder" if shard.is_dir() else f"a {shard.suffix} file"
            raise UserError(f"{shard}: {kind} cannot hold predictions as columns; give .tsv, .csv, .jsonl or .parquet")
    return shards


def shard_seed(seed: int, name: str) -> int:
    """The seed of a shard's samples, which are drawn by (seed, row): rows of two shards must not draw the same.

    >>> shard_seed(1, "a.tsv") == shard_seed(1, "a.tsv"), shard_seed(1, "a.tsv") == shard_seed(1, "b.tsv")
    (True, False)
    """
    digest = hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big")


# ---------------- The work of one process


class UnreadableShard(UserError):
    """A shard, or a row of it, cannot be read."""


@contextmanager
def _reading(shard: Path) -> Iterator[None]:
    """Turn errors of a table into errors that name the shard."""
    try:
        yield
    except UserError as error:
        raise UnreadableShard(_naming(shard, error)) from None


def _naming(shard: Path, error: UserError) -> str:
    return str(error) if shard.name in str(error) else f"{shard}: {error}"


def predict_shards(args: Arguments) -> None:
    """Predict this process's share of the tables of --file."""
    from seq2see.data.shards import share_out
    from seq2see.pipeline.bundle import model_checksums
    from seq2see.pipeline.finished_shards import FinishedShards
    from seq2see.pipeline.weights import file_digest

    _check_arguments(args)
    process = process_of(args.shard, os.environ)
    shards = shards_for(args.file, Path(args.to), process.say)
    own = share_out(shards, process.count)[process.number]
    if process.count > 1:
        process.say(f"{len(own)} of {counted(len(shards), 'shard')} ({process.source})")
    checksums = model_checksums(args.model)
    model = load_model(args.model, args.on_error, device=args.device)
    if model_checksums(args.model) != checksums:
        raise UserError(f"{args.model}: the model changed while it was being loaded: wait until its training has ended")
    if not model.recipe.inputs:
        raise UserError(f"--file {args.file}: this model is a language model and reads no table")
    options = search_options(args, model)
    image_writer(args.pictures, outputs_images=model.recipe.output.file)
    job: dict[str, Any] = {"models": checksums, "options": _recorded(args, model, options)}
    if path := job["options"].get("language_model"):
        job["language_model"] = model_checksums(path) if Path(path).is_dir() else file_digest(Path(path))
    finished = FinishedShards(Path(args.to), job, overwrite=args.overwrite)
    for shard in own:
        finished.check_job(shard)
    ShardPredictor(args, model, options, finished, process).predict(own)


def _check_arguments(args: Arguments) -> None:
    if args.inputs:
        raise UserError(
            f"--to {args.to} takes only tables, got INPUT {listing(args.inputs, 2)}; "
            "quote a pattern, so that the shell does not expand it: --file 'in/*.tsv'"
        )
    for option, given in (("--json", args.json), ("--looks", args.looks is not None)):
        if given:
            raise UserError(
                f"{option}: predictions of several tables are written to --to alone; give --file one table "
                "and --to one, or no --to"
            )


def _recorded(args: Arguments, model: Model, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that outputs depend on, with those that come from the recipe."""
    from seq2see.pipeline.predictor import answer_options
    from seq2see.search.options import LANGUAGE_MODEL

    chosen = {name: value for name, value in options.items() if name not in ("prefix", "maps")}
    searched = asdict(answer_options(model.recipe, **chosen))
    for name in ("oracle", "runners_up", *(LANGUAGE_MODEL if searched["language_model"] is None else ())):
        del searched[name]
    pictures = None if args.pictures is None else str(args.pictures)
    others = {"columns": args.columns, "on_error": model.recipe.data.on_error, "pictures": pictures}
    return searched | {"prefix": args.prefix} | others


@dataclass
class ShardPredictor:
    """Predicts shards one after the other, and says how far it is."""

    args: Arguments
    model: Model
    options: dict[str, Any]
    finished: FinishedShards
    process: Process

    def predict(self, shards: Sequence[Path]) -> None:
        """Predict what is not finished. A shard that cannot be read ends it, or is left out with `--on-error skip`."""
        skip = self.model.recipe.data.on_error == "skip"
        sizes = {shard: shard.stat().st_size for shard in shards}
        total, done, started = sum(sizes.values()), 0, time.monotonic()  # bytes that are to be predicted in this run
        before, predicted, left_out = 0, 0, 0
        for number, shard in enumerate(shards, start=1):
            if self.finished.is_finished(shard):
                before += 1
                total -= sizes[shard]
                continue
            done += sizes[shard]
            try:
                rows = self._predict(shard)
            except UnreadableShard as error:
                if not skip:
                    raise
                left_out += 1
                self.process.say(f"left out: {error}")
                continue
            predicted += rows
            left = remaining(done / max(total, 1), time.monotonic() - started)
            self.process.say(f"{shard.name}: {counted(rows, 'prediction')} ({number} of {len(shards)}){left}")
        parts = [f"{before:,} of them finished before" if before else "", f"{left_out:,} left out" if left_out else ""]
        more = "".join(f", {part}" for part in parts if part)
        self.process.say(f"{counted(predicted, 'prediction')} in {self.args.to}: {counted(len(shards), 'shard')}{more}")

    def _predict(self, shard: Path) -> int:
        """Predict a shard and put its output into its place; returns the number of rows."""
        from seq2see.pipeline.inputs import Notices

        notices = Notices(self.model.bundles)
        with self.finished.attempt(shard) as attempt:
            with _reading(shard):
                inputs = read_inputs(self.model, None, shard, self.args.columns, tell=self.process.say)
            inputs = replace(inputs, items=_items(inputs.items, shard))
            options = dict(self.options)
            if options.get("sample"):
                options["seed"] = shard_seed(options.get("seed", 0), shard.name)
            predictions = predict_items(self.model, inputs, options, notices)
            pictures = None if self.args.pictures is None else self.args.pictures / shard.name
            images = image_writer(pictures, outputs_images=self.model.recipe.output.file)
            if images is not None:
                predictions = images.save_images(predictions)
            columns = added_columns(inputs, self.model.recipe, self.args.n_best)
            try:
                rows = write_back(attempt.part, inputs, predictions, columns, place=self.finished.output(shard))
            except UnreadableShard:
                raise
            except UserError as error:
                raise UserError(_naming(shard, error)) from None
            self.finished.finish(shard, attempt, rows=rows, columns=[*inputs.columns, *columns.names])
        for line in notices.lines():
            self.process.say(f"{shard.name}: {line}")
        return rows


def _items(items: Iterable[Item], shard: Path) -> Iterator[Item]:
    with _reading(shard):
        yield from items
