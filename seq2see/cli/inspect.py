"""`seq2see inspect`: Describe a table, what a recipe makes of it, and which recipes fit it.

Reports rows, lengths, scripts, Unicode forms, unusual characters, blank cells, repeated rows and inputs with several
outputs. With RECIPE it also reports the columns, rows and vocabularies that the recipe would use, the values of `auto`
settings, and how long training would take on this machine, estimated from a few updates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_columns,
    add_json,
    add_overrides,
    add_threads,
    integer,
    print_json,
    say,
)
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see inspect names.csv",
    "seq2see inspect names.csv transliteration --dev dev.csv --out names.html",
    "seq2see inspect 'book.xlsx#Sheet 2' --json",
)
SUFFIXES = (".html", ".json")


def arguments(parser: Parser) -> None:
    parser.add_argument("table", metavar="TABLE", help="table, or name of a data set")
    parser.add_argument("recipe", metavar="RECIPE", nargs="?", help="recipe name or YAML file")
    parser.add_argument("--dev", metavar="TABLE", help="development data; rows that are also in the table are counted")
    add_columns(parser)
    add_overrides(parser)
    parser.add_argument("--updates", metavar="N", type=integer, help="number of updates to time (default: 8; 0: none)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write a standalone page (.html), or the JSON (.json)")
    add_threads(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    _check(args)
    from seq2see.data.tables import locate

    table, beside = locate(args.table)
    dev = beside if args.dev is None else locate(args.dev)[0]
    record, error = _inspect(args, table, dev)
    if args.out is not None:
        _write(args.out, record)
        say(f"written to {args.out}")
    if args.json:
        print_json(record)
    elif args.out is None:
        print(_report(record), end="")
    if error is not None:
        raise error


def _check(args: Arguments) -> None:
    if args.out is not None and args.out.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {args.out}: unknown suffix '{args.out.suffix}'; allowed: {', '.join(SUFFIXES)}")
    if args.recipe is None and (args.changes or args.updates is not None):
        raise UserError(f"{'--set' if args.changes else '--updates'} needs RECIPE")
    if args.updates is not None and not 0 <= args.updates <= 9:
        raise UserError(f"--updates {args.updates}: allowed: 0 to 9")


def _inspect(args: Arguments, path: Path, dev: Path | None) -> tuple[dict[str, Any], UserError | None]:
    """(everything that is told, the error of a recipe that cannot be trained on the table)."""
    from seq2see.data.columns import OUTPUT
    from seq2see.data.inspection import inspect_table
    from seq2see.data.tables import read
    from seq2see.recipe import load_recipe
    from seq2see.training.dataset import open_table
    from seq2see.training.inspection import UPDATES, fitting_recipes, inspect_recipe, named_columns

    recipe = None if args.recipe is None else load_recipe(args.recipe, overrides=args.changes)
    table = read(path, settings=None if recipe is None else recipe.data)
    names, output, error = list(args.columns or []), None, None
    if recipe is not None:
        names = []
        try:
            mapping = open_table(recipe, table, args.columns)[1].mapping
            output = mapping.get(OUTPUT)
            names = [column for name, column in mapping.items() if name in recipe.inputs and column in table.columns]
        except UserError as problem:
            error = problem
    elif names:
        _check_columns(names, table.columns, path)
        names, output = (names[:-1], names[-1]) if len(names) > 1 else (names, None)
    else:
        names, output = named_columns(table.columns)
    facts = inspect_table(table, inputs=names, output=output if output in table.columns else None)
    for note in facts.notes:
        say(note)
    record = facts.to_dict()
    if dev is not None:
        record["dev"] = {"table": str(dev), **facts.shared_with(read(dev, settings=table.settings))}
        record["problems"] += _leaks(record["dev"])
    record["fits"] = fitting_recipes(facts)
    if recipe is not None:
        record["recipe"] = {"task": recipe.task}
        try:
            if error is not None:
                raise error
            updates = UPDATES if args.updates is None else args.updates
            made = inspect_recipe(recipe, path, dev=dev, columns=args.columns, updates=updates)
            record["recipe"] = made.to_dict()
        except UserError as problem:
            record["recipe"]["error"], error = str(problem), problem
    return record, error


def _check_columns(names: list[str], columns: list[str], path: Path) -> None:
    from seq2see.data.columns import quoted
    from seq2see.errors import nearest

    missing = next((name for name in names if name not in columns), None)
    if missing is not None:
        raise UserError(f"{path}: no column '{missing}'{nearest(missing, columns)}; the table has: {quoted(columns)}")


def _leaks(dev: dict[str, Any]) -> list[str]:
    lines = []
    if dev["same"]:
        lines.append(f"dev: {dev['same']:,} of {dev['rows']:,} rows are in the table too")
    if dev["same_inputs"]:
        lines.append(f"dev: the inputs of {dev['same_inputs']:,} more rows are in the table, with other outputs")
    return lines


def _write(path: Path, record: dict[str, Any]) -> None:
    from seq2see.files import finite, write_bytes
    from seq2see.seeing.table_page import table_page

    page = path.suffix.lower() == ".html"
    text = table_page(record) if page else json.dumps(finite(record), ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_bytes(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"--out {path}: cannot write: {error.strerror or error}") from None


def _report(record: dict[str, Any]) -> str:
    """The report as text."""
    from seq2see.seeing.table_page import recipe_lines

    more = "" if record["complete"] else " (the first ones; there are more)"
    lines = [f"{record['table']}: {record['rows']:,} rows{more}, {len(record['columns'])} columns", ""]
    for column in record["columns"]:
        lengths = column["lengths"]
        lines.append(f"{column['name']}  ({column['kind']})")
        lines.append(
            f"  length {lengths['least']:,} to {lengths['most']:,} characters, median {lengths['median']:,}; "
            f"{column['words']:g} words on average; {column['distinct']:,} distinct values"
        )
        lines.append(f"  {column['characters']:,} characters: {' '.join(column['alphabet'][:60])}")
        if column["scripts"]:
            lines.append("  scripts: " + ", ".join(f"{name} {rows:,}" for name, rows in column["scripts"].items()))
        lines += [f"  for example: {' · '.join(column['examples'])}", ""]
    recipe = record.get("recipe")
    noted = recipe is not None and (recipe.get("notes") or "error" in recipe)
    nothing = "nothing in the table itself; see below what the recipe notes" if noted else "nothing stands out"
    lines += ["what to look at", *(f"  {problem}" for problem in record["problems"] or [nothing]), ""]
    if recipe is not None:
        lines.append(f"with {recipe['task']}")
        told = [("error", recipe["error"])] if "error" in recipe else recipe_lines(recipe)
        lines += [*(f"  {name:<14} {value}" for name, value in told), ""]
    fits = [f"  {one['recipe']}: {one['why']}" for one in record["fits"]]
    lines += ["recipes that fit", *(fits or ["  none of the shipped ones is for such columns"])]
    return "\n".join(lines) + "\n"
