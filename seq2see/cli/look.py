"""`seq2see look`: Draw where a model looks while it writes its own output or a given one (--target)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.inputs import parse_input
from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_input,
    add_json,
    add_model,
    integer,
    print_json,
    program,
    say,
)
from seq2see.cli.predict import check_looks
from seq2see.errors import UserError
from seq2see.pipeline.prediction_columns import answer_of

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.looks import Looks

EXAMPLES = (
    "seq2see look runs/transliteration india --out india.png",
    'seq2see look runs/translation "a dog runs" --target "ein Hund läuft" --out dog.html',
    'seq2see look runs/translation-transformer "a dog runs" --map source.self-1 --out reading.png',
)


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_input(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        required=True,
        help="output file: image (.png, .svg), page (.html) or data (.json)",
    )
    parser.add_argument("--target", metavar="TEXT", help="use this output instead of the model's own")
    add_beam(parser)
    parser.add_argument("--max-length", metavar="N", type=integer, help="maximum length of the output in tokens")
    parser.add_argument(
        "--map",
        metavar="NAME",
        help="draw this map only, or `all` (default: maps that explain the output, without self-attention)",
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the figure")
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark (default: light; pages follow the reader's system)"
    )
    add_json(parser)


def run(args: Arguments) -> None:
    if args.target is not None and args.beam is not None:
        raise UserError("--beam cannot be used with --target: there is no search")
    if args.target is not None and args.max_length is not None:
        raise UserError("--max-length cannot be used with --target: there is no search")
    if args.title is not None and args.out.suffix.lower() == ".json":
        raise UserError("--title: a .json file has no title")
    if args.theme is not None and args.out.suffix.lower() == ".json":
        raise UserError("--theme: a .json file has no colours")
    from seq2see.api import load
    from seq2see.seeing.figure import save
    from seq2see.seeing.style import theme_named

    if args.theme is not None:
        theme_named(args.theme)

    model = load(args.model)
    prediction = model.look(_row(model, args), target=args.target, beam=args.beam, max_length=args.max_length)
    check_looks(prediction.looks)
    path = save(prediction.looks, args.out, map=args.map, title=args.title, theme=args.theme)
    if args.json:
        print_json(prediction.to_dict() | {"file": str(path)})
    else:
        print(answer_of(prediction))
        say(f"figure saved to {path}")
        _mention_hidden(prediction.looks, args)


def _row(model: Model, args: Arguments) -> dict[str, str] | None:
    """The input to look at; None for a language model with self-attention."""
    if model.recipe.inputs:
        if args.input is None:
            raise UserError("INPUT is missing")
        return parse_input(model, args.input)
    if not model.recipe.decoder.self_attends:
        raise UserError(
            f"{args.model}: a language model has no input to look at; "
            f"try `{program()} explain {args.model}` or `{program()} score {args.model} --data TABLE`"
        )
    if args.input is not None:
        raise UserError("INPUT: a language model takes no input; use --target TEXT to show self-attention over a text")
    return None


def _mention_hidden(looks: Looks, args: Arguments) -> None:
    """Say what was not drawn, and how to draw it."""
    from seq2see.seeing.panels import MAX_SYMBOLS, hidden_maps, truncated_length

    if args.map is not None or args.out.suffix.lower() == ".json":
        return
    if length := truncated_length(looks):
        names = ", ".join(name for name in looks.maps if name not in hidden_maps(looks))
        say(
            f"only the first {MAX_SYMBOLS} of {length:,} symbols are drawn; --map NAME draws all of one map ({names}), "
            "--max-length N limits the output"
        )
    if rest := hidden_maps(looks):
        say(f"more maps (draw them with --map NAME or --map all): {', '.join(rest)}")
