"""`seq2see sample`: Small data to try a recipe on, written as tables; without a name, what there is."""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Given, Parser, add_json
from seq2see.cli.terminal import emit, program, say
from seq2see.errors import UserError, nearest

EXAMPLES = ("seq2see sample", "seq2see sample easy-vqa --out data/easy-vqa")


def arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which one; not given: all are listed")
    parser.add_argument("--out", metavar="DIR", help="folder to write it into (default: data/NAME)")
    parser.add_argument("--overwrite", action="store_true", help="begin anew where tables are there already")
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.samples import SAMPLES

    if given.name is None:
        if given.out is not None:
            raise UserError(f"--out {given.out}: of which sample? allowed: {', '.join(SAMPLES)}")
        _list(as_json=given.json)
        return
    if given.name not in SAMPLES:
        raise UserError(f"unknown sample '{given.name}'{nearest(given.name, SAMPLES)}; allowed: {', '.join(SAMPLES)}")
    if given.out == "":
        raise UserError("--out: it is empty; name a folder, or leave it out for data/NAME")
    folder = Path(given.out or Path("data") / given.name)
    sample = SAMPLES[given.name]
    there = [name for name in ("train.tsv", "dev.tsv") if (folder / name).exists()]
    if there and not given.overwrite:
        raise UserError(f"{folder / there[0]}: is there already, and nothing was changed; --overwrite begins anew")
    for name, rows in sample.write(folder).items():
        if given.json:
            emit({"table": str(folder / name), "rows": rows})
        else:
            print(f"{folder / name}  {rows:,} rows")
    for recipe in sample.recipes:
        say(f"to learn from it: {program()} train {recipe} --data {folder}/train.tsv --dev {folder}/dev.tsv")


def _list(*, as_json: bool) -> None:
    from seq2see.samples import SAMPLES

    width = max(map(len, SAMPLES))
    for name, sample in SAMPLES.items():
        if as_json:
            emit({"name": name, "description": sample.about, "recipes": list(sample.recipes)})
        else:
            print(f"{name:<{width}}  {sample.about}")
