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
    add_paper,
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
    from seq2see.looks import Looks, Prediction

LONGEST_TITLE = 48
"""Characters of an input or output in a title."""
EXAMPLES = (
    "seq2see look runs/transliteration india --out india.png",
    "seq2see look runs/transliteration india --out india.pdf --width 84mm --font-size 8",
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
        help="output file: image (.png, .svg, .pdf), page (.html) or data (.json)",
    )
    parser.add_argument("--target", metavar="TEXT", help="use this output instead of the model's own")
    add_beam(parser)
    parser.add_argument("--max-length", metavar="N", type=integer, help="maximum length of the output in tokens")
    parser.add_argument(
        "--map",
        metavar="NAME",
        help="draw this map only, or `all` (default: maps that explain the output, without self-attention)",
    )
    parser.add_argument(
        "--title", metavar="TEXT", help="title of the figure (default: the input and the output; '' for none)"
    )
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark (default: light; pages follow the reader's system)"
    )
    add_paper(parser)
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
    from seq2see.seeing.figure import FORMATS, check_suffix, save
    from seq2see.seeing.paper import paper_of
    from seq2see.seeing.style import theme_named

    paper_of(args.width, args.font_size, suffix=check_suffix(args.out, FORMATS)[1])

    if args.theme is not None:
        theme_named(args.theme)

    model = load(args.model)
    prediction = model.look(_row(model, args), target=args.target, beam=args.beam, max_length=args.max_length)
    check_looks(prediction.looks)
    path = save(
        prediction.looks,
        args.out,
        map=args.map,
        title=default_title(model, prediction) if args.title is None else args.title,
        theme=args.theme,
        width=args.width,
        font_size=args.font_size,
    )
    if args.json:
        print_json(prediction.to_dict() | {"file": str(path)})
    else:
        print(answer_of(prediction))
        say(f"figure saved to {path}")
        _mention_hidden(prediction.looks, args)


def default_title(model: Model, prediction: Prediction) -> str:
    """The input and the output, shortened; of files their names."""
    from seq2see.seeing.labels import direction_of

    values = prediction.input if isinstance(prediction.input, dict) else {"": prediction.input}
    files = [settings.file for settings in model.recipe.inputs.values()]
    parts = [
        Path(str(value)).name if file else _shortened(str(value))
        for value, file in zip(values.values(), files, strict=False)
    ]
    answer = "" if prediction.numeric else _shortened(str(prediction.answer))
    sides = [part for part in (" | ".join(parts), answer) if part]
    leftward = "rtl" in map(direction_of, sides)
    left_to_right = "\u200e" if leftward else ""  # a mark: the arrow points from the input to the output
    return left_to_right + f" → {left_to_right}".join(sides)


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_TITLE else f"{words[: LONGEST_TITLE - 1].rstrip()}…"


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
