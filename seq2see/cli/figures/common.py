"""What every figure is told, and where it ends up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.inputs import reading
from seq2see.cli.parser import Given, Parser, add_beam, add_data, add_json, add_plugin
from seq2see.cli.terminal import emit, say
from seq2see.errors import UserError, nearest
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.evaluation import Rows
    from seq2see.seeing.charts import Chart


FORMATS = (".png", ".svg", ".html", ".json")
THEMES = ("light", "dark")


def add_drawing(parser: Parser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="picture (.png, .svg), page (.html) or numbers (.json)"
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the picture")
    add_theme(parser)
    add_json(parser)


def add_theme(parser: Parser) -> None:
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark; not given: light, a page as the reader's system asks"
    )


def check_drawing(given: Given) -> None:
    """Whatever is wrong with where the picture goes is said before anything takes time."""
    suffix = given.out.suffix.lower()
    if suffix not in FORMATS:
        close = nearest(suffix, FORMATS)
        raise UserError(f"--out {given.out}: unknown suffix '{given.out.suffix}'{close}; allowed: {', '.join(FORMATS)}")
    if given.out.is_dir():
        raise UserError(f"--out {given.out}: a folder; a figure is a file")
    if given.theme is not None and given.theme not in THEMES:
        raise UserError(
            f"--theme: unknown theme '{given.theme}'{nearest(given.theme, THEMES)}; allowed: {', '.join(THEMES)}"
        )
    if suffix == ".json" and given.theme is not None:
        raise UserError("--theme: no meaning here: a .json file has no colours")


def finish(chart: Chart, given: Given) -> None:
    """Save the figure, and tell its numbers."""
    path = chart.save(given.out, theme=given.theme)
    if given.json:
        emit(chart.to_dict())
    else:
        print(chart.text(), end="")
    say(f"the figure: {path}")


# ---------------- Several models by name


def add_models(parser: Parser) -> None:
    """[NAME=]MODEL..., --data, --columns, --beam."""
    parser.add_argument(
        "models",
        metavar="[NAME=]MODEL",
        nargs="+",
        help="folders that train wrote, each with what to call it; several joined by + are an ensemble",
    )
    add_data(parser)
    add_beam(parser)
    add_plugin(parser)


def named(given: Sequence[str]) -> dict[str, str]:
    """Folders by name: the one given before `=`, or the folder's own, or all of its path where two are called alike.

    >>> named(["plain=runs/none", "runs/translation"])
    {'plain': 'runs/none', 'translation': 'runs/translation'}
    """
    pairs = [_pair(one) for one in given]
    short = [name or Path(folder).name or folder for name, folder in pairs]
    found: dict[str, str] = {}
    for (name, folder), brief in zip(pairs, short, strict=True):
        label = name or (brief if short.count(brief) == 1 else folder)
        if label in found:
            raise UserError(f"MODEL: '{label}' is given twice; NAME=MODEL calls one of them otherwise")
        found[label] = folder
    return found


def _pair(given: str) -> tuple[str, str]:
    name, sign, folder = given.partition("=")
    return ("", given) if not sign or Path(given).exists() else (name.strip(), folder)


def answers(given: Given, metric: str | None) -> tuple[str, dict[str, Rows]]:
    """(the metric, the rows of each model as they were answered); no metric given: the first model's leading one."""
    from seq2see.data.locate import locate
    from seq2see.pipeline.evaluator import answered
    from seq2see.pipeline.measures import check_metrics, metrics_of

    table, dev = locate(given.data)
    found: dict[str, Rows] = {}
    models: dict[str, Model] = {name: reading(folder, given.on_error) for name, folder in named(given.models).items()}
    for name, model in models.items():
        metric = metric or metrics_of(model.recipe)[0]
        _check(name, model, given)
        check_metrics([metric], model.recipe, key="--metric")
    assert metric is not None
    with closing(Meter()) as meter:
        for name, model in models.items():
            rows = model.rows_of(dev or table, given.columns)
            model.seen(rows)
            found[name] = answered(model.bundles, rows, metric=metric, beam=given.beam, progress=meter)
    return metric, found


def _check(name: str, model: Model, given: Given) -> None:
    recipe = model.recipe
    if not recipe.texts:
        read = ", ".join(f"{key} ({one.kind})" for key, one in recipe.inputs.items()) or "nothing"
        raise UserError(f"{name}: inputs are counted in symbols, and this model reads {read}")
    if recipe.output.one_step and given.beam is not None:
        raise UserError(f"--beam: no meaning for {name}: {recipe.output.said} is not searched for")
