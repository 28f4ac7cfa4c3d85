"""`seq2see figure`: Draw figures of models and runs, as .png, .svg, .pdf, .html (standalone) or .json.

See also `seq2see look` (where a model looks), `seq2see faithful --out` and `seq2see compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.inputs import load_model
from seq2see.cli.parser import Arguments, Parser, add_beam, add_data, add_json, add_paper, add_plugin, print_json, say
from seq2see.errors import UserError, nearest
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.evaluation import Rows
    from seq2see.seeing.charts import Chart


EXAMPLES = (
    "seq2see figure lengths attention=runs/translation none=runs/translation-none --data test.tsv --out lengths.png",
    "seq2see figure map runs/translation --file sentences.txt --neighbours 1 --out map.html",
    "seq2see figure curve runs/a runs/b --measure dev.bleu --out curves.svg",
)
KINDS = {
    "lengths": "quality by input length, for one or more models",
    "positions": "how much of each part of the input recurs in the output",
    "map": "encoded inputs in two dimensions, with nearest neighbours",
    "curve": "learning curves of runs",
    "gradients": "gradients through time for three cells, with and without clipping",
    "pca": "an autoencoder compared with PCA of the same code size",
    "code-size": "error of autoencoders by code size, compared with PCA",
}
"""Kinds of figures, each with its own arguments: `seq2see figure KIND --help`."""


def arguments(parser: Parser) -> None:
    width = max(len(name) for name in KINDS) + 2  # not `map`, which is a module of this package
    lines = "\n".join(f"  {name:<{width}}{about}" for name, about in KINDS.items())
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help="the figure; KIND --help shows its options")
    parser.add_argument("rest", metavar="...", nargs="*", help="arguments of the figure")
    parser.description = f"{parser.description}\n\nKinds:\n{lines}"


def run(args: Arguments) -> None:
    raise AssertionError(f"'{args.kind}' is called by its own module")


# --- Options and helpers that all figures share

FORMATS = (".png", ".svg", ".pdf", ".html", ".json")
THEMES = ("light", "dark")


def add_drawing(parser: Parser) -> None:
    """--out, --title, --theme, --width, --font-size and --json."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        required=True,
        help="output file: image (.png, .svg, .pdf), page (.html) or data (.json)",
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the figure")
    add_theme(parser)
    add_paper(parser)
    add_json(parser)


def add_theme(parser: Parser) -> None:
    """--theme."""
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark (default: light; pages follow the reader's system)"
    )


def check_drawing(args: Arguments) -> None:
    """Check the output options before anything takes time."""
    suffix = args.out.suffix.lower()
    if suffix not in FORMATS:
        close = nearest(suffix, FORMATS)
        raise UserError(f"--out {args.out}: unknown suffix '{args.out.suffix}'{close}; allowed: {', '.join(FORMATS)}")
    if args.out.is_dir():
        raise UserError(f"--out {args.out} is a folder; give a file")
    if args.theme is not None and args.theme not in THEMES:
        raise UserError(
            f"--theme: unknown theme '{args.theme}'{nearest(args.theme, THEMES)}; allowed: {', '.join(THEMES)}"
        )
    if suffix == ".json" and args.theme is not None:
        raise UserError("--theme: a .json file has no colours")
    if args.width is not None or args.font_size is not None:
        from seq2see.seeing.paper import paper_of

        paper_of(args.width, args.font_size, suffix=suffix)


def finish(chart: Chart, args: Arguments) -> None:
    """Save the figure and print its numbers."""
    path = chart.save(args.out, theme=args.theme, width=args.width, font_size=args.font_size)
    if args.json:
        print_json(chart.to_dict())
    else:
        print(chart.text(), end="")
    say(f"figure saved to {path}")


def add_models(parser: Parser) -> None:
    """[NAME=]MODEL..., --data, --columns, --beam."""
    parser.add_argument(
        "models",
        metavar="[NAME=]MODEL",
        nargs="+",
        help="model folders, each with an optional name; join several with + for an ensemble",
    )
    add_data(parser)
    add_beam(parser)
    add_plugin(parser)


def named_paths(arguments: Sequence[str]) -> dict[str, str]:
    """Folders by name: the name before `=`, or the folder's own, or its whole path if two have the same name.

    >>> named_paths(["plain=runs/none", "runs/translation"])
    {'plain': 'runs/none', 'translation': 'runs/translation'}
    """
    pairs = [_pair(argument) for argument in arguments]
    short = [name or Path(folder).name or folder for name, folder in pairs]
    paths: dict[str, str] = {}
    for (name, folder), brief in zip(pairs, short, strict=True):
        label = name or (brief if short.count(brief) == 1 else folder)
        if label in paths:
            raise UserError(f"MODEL: two models are called '{label}'; rename one with NAME=MODEL")
        paths[label] = folder
    return paths


def _pair(argument: str) -> tuple[str, str]:
    name, sign, folder = argument.partition("=")
    return ("", argument) if not sign or Path(argument).exists() else (name.strip(), folder)


def answers(args: Arguments, metric: str | None) -> tuple[str, dict[str, Rows]]:
    """(the metric, the outputs of each model); default metric: the main one of the first model."""
    from seq2see.data.tables import locate
    from seq2see.pipeline.evaluator import check_metrics, metrics_of, predict_rows

    table, dev = locate(args.data)
    outputs: dict[str, Rows] = {}
    models: dict[str, Model] = {
        name: load_model(folder, args.on_error) for name, folder in named_paths(args.models).items()
    }
    for name, model in models.items():
        metric = metric or metrics_of(model.recipe)[0]
        _check(name, model, args)
        check_metrics([metric], model.recipe, key="--metric")
    assert metric is not None
    with closing(Meter()) as meter:
        for name, model in models.items():
            rows = model.rows_of(dev or table, args.columns)
            model.seen(rows)
            outputs[name] = predict_rows(model.bundles, rows, metric=metric, beam=args.beam, progress=meter)
    return metric, outputs


def _check(name: str, model: Model, args: Arguments) -> None:
    recipe = model.recipe
    if not recipe.texts:
        kinds = ", ".join(f"{key} ({settings.kind})" for key, settings in recipe.inputs.items()) or "nothing"
        raise UserError(f"{name}: input lengths are counted in symbols, but this model reads {kinds}")
    if recipe.output.one_step and args.beam is not None:
        raise UserError(f"--beam: {name} has no search: its output is {recipe.output.noun}")
