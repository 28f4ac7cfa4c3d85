"""A standalone HTML page of what is in a table, from the record that `seq2see inspect --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """\
:root { color-scheme: light dark; --paper: #fbfaf8; --card: #fff; --ink: #1d1b19; --muted: #6d675f; --line: #e4dfd7;
  --accent: #c2571a; --soft: #f6e7db }
@media (prefers-color-scheme: dark) { :root { --paper: #161513; --card: #201e1b; --ink: #ece8e1; --muted: #a49c91;
  --line: #38342f; --accent: #f0914f; --soft: #3a2a1e } }
* { box-sizing: border-box }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; background: var(--paper); color: var(--ink) }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere }
p { margin: .25rem 0 } .muted { color: var(--muted) }
.facts { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; padding: 0; list-style: none }
.facts li { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .6rem 1rem;
  min-width: 8rem }
.facts b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.facts span { color: var(--muted); font-size: .85rem }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem;
  min-width: 0 }
.card header { display: flex; justify-content: space-between; gap: .75rem; align-items: baseline }
.kind { background: var(--soft); color: var(--accent); border-radius: 1rem; padding: .05rem .7rem; font-size: .85rem;
  white-space: nowrap }
.bars { display: flex; align-items: flex-end; gap: 2px; height: 4.5rem; margin: .9rem 0 .2rem;
  border-bottom: 1px solid var(--line) }
.bars i { flex: 1; background: var(--accent); border-radius: 2px 2px 0 0; min-height: 1px }
.axis { display: flex; justify-content: space-between; color: var(--muted); font-size: .75rem; margin: 0 0 .75rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; font-size: .9rem }
dt { color: var(--muted) } dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums }
ul.list { margin: .25rem 0; padding-left: 1.2rem } ul.list li { margin: .2rem 0; overflow-wrap: anywhere }
ul.problems { border-left: 4px solid var(--accent); padding-left: 2rem }
code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--soft); border-radius: .3rem;
  padding: .05rem .35rem }
"""


def table_page(record: Mapping[str, Any]) -> str:
    """The page of a record; everything in it is escaped, and no script or address is in the page."""
    parts = [
        f"<h1>{_text(record['table'])}</h1>",
        _facts(record),
        _section("What to look at", _list(record["problems"], "problems") or "<p class=muted>Nothing stands out.</p>"),
        _section("Columns", f'<div class="cards">{"".join(map(_column, record["columns"]))}</div>'),
        _dev(record.get("dev")),
        _recipe(record.get("recipe")),
        _section("Recipes that fit", _fits(record["fits"])),
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{_text(record["table"])}</title>
<style>
{STYLE}</style>
</head>
<body><main>
{"".join(parts)}
</main></body>
</html>
"""


def _text(value: object) -> str:
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{content}</section>\n" if content else ""


def _list(lines: Sequence[str], kind: str = "") -> str:
    items = "".join(f'<li dir="auto">{_text(line)}</li>' for line in lines)
    return f'<ul class="list {kind}">{items}</ul>' if lines else ""


def _definitions(pairs: Iterable[tuple[str, object]]) -> str:
    rows = "".join(f'<dt>{_text(name)}</dt><dd dir="auto">{_text(value)}</dd>' for name, value in pairs if value != "")
    return f"<dl>{rows}</dl>"


def _facts(record: Mapping[str, Any]) -> str:
    rows = f"{record['rows']:,}" + ("" if record["complete"] else "+")
    facts = [(rows, "rows"), (len(record["columns"]), "columns")]
    facts.append((f"{record['duplicates']['rows']:,}", "repeated rows"))
    if record["output"] is not None:
        facts.append((f"{record['several_outputs']['rows']:,}", "inputs with several outputs"))
    timing = (record.get("recipe") or {}).get("timing")
    if timing:
        facts.append((f"about {duration(timing['total'])}", "of training here"))
    return (
        '<ul class="facts">' + "".join(f"<li><b>{_text(n)}</b><span>{_text(w)}</span></li>" for n, w in facts) + "</ul>"
    )


def _column(column: Mapping[str, Any]) -> str:
    histogram, lengths = column["histogram"], column["lengths"]
    most = max((rows for _, rows in histogram), default=0) or 1
    bars = "".join(
        f'<i style="height:{100 * rows / most:.1f}%" title="from {start:,} characters: {rows:,} rows"></i>'
        for start, rows in histogram
    )
    ends = (histogram[0][0], f"{histogram[-1][0]:,}+") if histogram else ("", "")
    axis = f"<span>{ends[0]}</span><span>characters</span><span>{ends[1]}</span>"
    scripts = ", ".join(f"{name} ({rows:,})" for name, rows in list(column["scripts"].items())[:6])
    forms = ", ".join(f"{form} {rows:,}" for form, rows in column["forms"].items())
    details = [
        (
            "length",
            f"{lengths['least']:,} to {lengths['most']:,}, median {lengths['median']:,}, 95 % to {lengths['p95']:,}",
        ),
        ("words", f"{column['words']:g} on average"),
        ("distinct", f"{column['distinct']:,}"),
        ("blank", f"{column['blanks']:,}" if column["blanks"] else ""),
        ("scripts", scripts),
        ("Unicode", forms),
        ("characters", f"{column['characters']:,}: {' '.join(column['alphabet'][:120])}"),
        ("for example", " · ".join(column["examples"])),
    ]
    return (
        f'<article class="card"><header><h3 dir="auto">{_text(column["name"])}</h3>'
        f'<span class="kind">{_text(column["kind"])}</span></header>'
        f'<div class="bars" role="img" aria-label="lengths">{bars}</div><p class="axis">{axis}</p>'
        f"{_definitions(details)}</article>"
    )


def _dev(dev: Mapping[str, Any] | None) -> str:
    if dev is None:
        return ""
    pairs = [("rows", f"{dev['rows']:,}"), ("in the table too", f"{dev['same']:,}")]
    pairs.append(("in the table with another output", f"{dev['same_inputs']:,}"))
    return _section("Dev", f'<div class="card">{_definitions(pairs)}</div>')


def _recipe(recipe: Mapping[str, Any] | None) -> str:
    if recipe is None:
        return ""
    if "error" in recipe:
        return _section(f"With {recipe['task']}", _list([recipe["error"]], "problems"))
    return _section(f"With {recipe['task']}", f'<div class="card">{_definitions(recipe_lines(recipe))}</div>')


def _fits(fits: Sequence[Mapping[str, str]]) -> str:
    items = "".join(f"<li><code>{_text(one['recipe'])}</code> {_text(one['why'])}</li>" for one in fits)
    return (
        f'<ul class="list">{items}</ul>' if fits else "<p class=muted>None of the shipped ones is for such columns.</p>"
    )


# ---------------------------------------------------------------- words that the text output shares


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(3), duration(200), duration(8000)
    ('3 s', '3 min', '2.2 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def recipe_lines(recipe: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a recipe makes of a table, as (what, value)."""
    lines = [
        ("columns", ", ".join(f"{name}: {column}" for name, column in recipe["columns"].items())),
        ("training rows", f"{recipe['rows']:,}"),
        ("dev rows", f"{recipe['dev_rows']:,}"),
        ("left out", f"{recipe['left_out']:,} (too long)" if recipe["left_out"] else ""),
        ("vocabulary", ", ".join(f"{name} {size:,}" for name, size in recipe["vocabularies"].items())),
        ("parameters", f"{recipe['parameters']:,}"),
        ("auto", "; ".join(recipe["fitted"]).removeprefix("auto, ")),
        ("notes", "; ".join(recipe["notes"])),
    ]
    if timing := recipe["timing"]:
        epoch = duration(timing["seconds"] * timing["updates"])
        lines += [
            ("an update", f"{1000 * timing['seconds']:.0f} ms here (the mean of {timing['measured']})"),
            ("an epoch", f"about {epoch}, {timing['updates']:,} updates"),
            (
                "the run",
                f"about {duration(timing['total'])}, ended by {timing['limit']}; an estimate, dev not counted",
            ),
        ]
    return [(name, value) for name, value in lines if value]
