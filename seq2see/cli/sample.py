"""`seq2see sample`: Write a small data set to try a recipe on; without a name, list all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.parser import Arguments, Parser, add_json, integer, print_json, program, say
from seq2see.errors import UserError, nearest

if TYPE_CHECKING:
    from seq2see.samples import Sample

EXAMPLES = (
    "seq2see sample",
    "seq2see sample easy-vqa --out data/easy-vqa",
    "seq2see sample facts --rows 10000 --facts 5",
)
OPTIONS = ("rows", "seed", "facts")
DEV_ROWS = 400
"""Rows of dev where --rows is given."""


def arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="name of the data set (default: list all)")
    parser.add_argument("--out", metavar="DIR", help="output folder (default: data/NAME)")
    parser.add_argument(
        "--rows", metavar="N", type=integer, help="rows of train.tsv (where the data are made by rules)"
    )
    parser.add_argument("--seed", metavar="N", type=integer, help="other rows for each seed (default: 1)")
    parser.add_argument("--facts", metavar="N", type=integer, help="facts: number of facts in a passage (default: 3)")
    parser.add_argument("--overwrite", action="store_true", help="replace existing tables")
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.samples import SAMPLES

    if args.name is None:
        if args.out is not None:
            raise UserError(f"--out {args.out}: NAME is missing; allowed: {', '.join(SAMPLES)}")
        _list(as_json=args.json)
        return
    if args.name not in SAMPLES:
        raise UserError(f"unknown sample '{args.name}'{nearest(args.name, SAMPLES)}; allowed: {', '.join(SAMPLES)}")
    if args.out == "":
        raise UserError("--out is empty; give a folder, or omit it for data/NAME")
    folder = Path(args.out or Path("data") / args.name)
    sample = SAMPLES[args.name]
    existing = [name for name in ("train.tsv", "dev.tsv") if (folder / name).exists()]
    if existing and not args.overwrite:
        raise UserError(f"{folder / existing[0]}: already exists; use --overwrite to replace it")
    for name, rows in sample.write(folder, **_options(args, sample)).items():
        if args.json:
            print_json({"table": str(folder / name), "rows": rows})
        else:
            print(f"{folder / name}  {rows:,} rows")
    for recipe in sample.recipes:
        say(f"to train on it: {program()} train {recipe} --data {folder}/train.tsv --dev {folder}/dev.tsv")


def _options(args: Arguments, sample: Sample) -> dict[str, Any]:
    """The options that were given, as the sample's writer takes them."""
    options = {name: value for name in OPTIONS if (value := getattr(args, name)) is not None}
    for name in options:
        if name not in sample.options:
            allowed = ", ".join(f"--{option}" for option in sample.options) or "none"
            raise UserError(f"--{name}: sample '{args.name}' has no such option; allowed: {allowed}")
    if "rows" in options:
        if options["rows"] < 1:
            raise UserError(f"--rows {options['rows']}: at least 1")
        options["rows"] = {"train": options["rows"], "dev": DEV_ROWS}
    return options


def _list(*, as_json: bool) -> None:
    from seq2see.samples import SAMPLES

    width = max(map(len, SAMPLES))
    for name, sample in SAMPLES.items():
        if as_json:
            print_json({"name": name, "description": sample.about, "recipes": list(sample.recipes)})
        else:
            print(f"{name:<{width}}  {sample.about}")
