"""`make zoo`: build every model of seq2see/zoo, measure it, and write the figures where they are shown.

    python tools/make_zoo.py [NAME...] [--kept]
    python tools/make_zoo.py --tables

Writes seq2see/zoo/measured.json, and the tables between the marks in docs/models.md and docs/results.md. Models that
are not named keep their figures. --kept: take models from the cache rather than build all again. --tables: build
nothing, write the tables of what was measured.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from seq2see.evaluation import lookup
from seq2see.threads import configure
from seq2see.zoo import MODELS
from seq2see.zoo.building import MEASURED, Built, built, cached, example, find, measured

PROJECT = Path(__file__).resolve().parent.parent
RECORDS = PROJECT / "seq2see" / "zoo" / MEASURED
START, END = "<!-- zoo: made by tools/make_zoo.py -->", "<!-- end of zoo -->"


def what_it_does(records: Sequence[Built]) -> str:
    """The table of docs/models.md: what each model does, and how to try it."""
    rows = ["| model | task | what it does | try |", "|---|---|---|---|"]
    for record in records:
        entry, folder = MODELS[record.name], f"models/{record.name}"
        extras = f" (extra `{', '.join(entry.extras)}`)" if entry.extras else ""
        command = f"seq2see predict {folder} {shlex.join(example(entry, folder))}".replace("|", "\\|")
        rows.append(f"| `{record.name}` | {entry.recipe} | {entry.about}{extras} | `{command}` |")
    return "\n".join(rows)


def figures(records: Sequence[Built]) -> str:
    """The table of docs/results.md: what was measured."""
    rows = [
        "| model | recipe | rows | updates | core seconds | MB | figure | baseline | command |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        metric = lookup(record.metric)
        beside = "–" if record.baseline is None else f"{metric.show(record.baseline)} ({record.baseline_name})"
        rows.append(
            f"| {record.name} | {record.recipe} | {record.rows:,} | {record.updates:,} | {record.seconds:.0f} | "
            f"{record.bytes / 1e6:.2f} | {record.metric} **{metric.show(record.figure)}** | {beside} | "
            f"`seq2see get {record.name} --rebuild` |"
        )
    return "\n".join(rows)


def replace_table(path: Path, table: str) -> None:
    """Put a table between the marks of a page."""
    text = path.read_text("utf-8")
    marked = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    if len(marked.findall(text)) != 1:
        raise SystemExit(f"{path}: expected {START} and {END} once")
    path.write_text(marked.sub(lambda _: f"{START}\n{table}\n{END}", text), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar="NAME", nargs="*", help="models to build (default: all)")
    parser.add_argument("--kept", action="store_true", help="take models from the cache rather than build all again")
    parser.add_argument("--tables", action="store_true", help="build nothing, write the tables of what was measured")
    args = parser.parse_args()
    configure(1)
    known = measured()
    records = [known[each] for each in MODELS if each in known]
    for name in [] if args.tables else args.names or MODELS:
        find(name)
        built(name, rebuild=not args.kept)
        record = cached(name)
        assert record is not None
        known[name] = record
        print(f"{name}: {record.summary}", file=sys.stderr, flush=True)
        records = [known[each] for each in MODELS if each in known]
        content = json.dumps([each.to_dict() for each in records], ensure_ascii=False, indent=1)
        RECORDS.write_text(content + "\n", encoding="utf-8")
    replace_table(PROJECT / "docs" / "models.md", what_it_does(records))
    replace_table(PROJECT / "docs" / "results.md", figures(records))
    print(figures(records))


if __name__ == "__main__":
    main()
