"""`seq2see look`: A picture of where a model looks while it writes its own output, or a given one (--target)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.inputs import argument
from seq2see.cli.looks import check_looks
from seq2see.cli.parser import Given, Parser, add_beam, add_input, add_json, add_model, whole
from seq2see.cli.terminal import emit, program, say
from seq2see.errors import UserError

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
        "--out", metavar="FILE", type=Path, required=True, help="picture (.png, .svg), page (.html) or numbers (.json)"
    )
    parser.add_argument("--target", metavar="TEXT", help="look while writing this instead of the model's own output")
    add_beam(parser)
    parser.add_argument("--max-length", metavar="N", type=whole, help="an output of at most N tokens")
    parser.add_argument(
        "--map",
        metavar="NAME",
        help="draw this map only, or `all` (a sequence's looks at itself are drawn where they are asked for)",
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the picture")
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark; not given: light, a page as the reader's system asks"
    )
    add_json(parser)


def run(given: Given) -> None:
    if given.target is not None and given.beam is not None:
        raise UserError("--beam: no meaning with --target: nothing is searched for")
    if given.target is not None and given.max_length is not None:
        raise UserError("--max-length: no meaning with --target: nothing is searched for")
    if given.title is not None and given.out.suffix.lower() == ".json":
        raise UserError("--title: no meaning here: a .json file has no title")
    if given.theme is not None and given.out.suffix.lower() == ".json":
        raise UserError("--theme: no meaning here: a .json file has no colours")
    from seq2see.api import load
    from seq2see.seeing import save
    from seq2see.seeing.style import theme_named

    if given.theme is not None:
        theme_named(given.theme)

    model = load(given.model)
    said = model.look(_row(model, given), target=given.target, beam=given.beam, max_length=given.max_length)
    check_looks(said.looks)
    path = save(said.looks, given.out, map=given.map, title=given.title, theme=given.theme)
    if given.json:
        emit(said.to_dict() | {"file": str(path)})
    else:
        print(said.answer)
        say(f"where it looked: {path}")
        _further(said.looks, given)


def _row(model: Model, given: Given) -> dict[str, str] | None:
    """The input that is to be looked at; None for a language model that looks at what it has written."""
    if model.recipe.inputs:
        if given.input is None:
            raise UserError("INPUT is missing: give the input that is to be looked at")
        return argument(model, given.input)
    if model.recipe.decoder.kind != "transformer":
        raise UserError(
            f"{given.model}: a language model reads no input, so there is nothing to look at; "
            f"`{program()} explain {given.model}` works one step out, "
            f"`{program()} score {given.model} --data TABLE` gives the probability of texts"
        )
    if given.input is not None:
        raise UserError("INPUT: a language model reads no input; --target TEXT shows how it looks back in a text")
    return None


def _further(looks: Looks, given: Given) -> None:
    """Say what was not drawn, and how to see it."""
    from seq2see.seeing.panels import MAX_SYMBOLS, hidden_maps, truncated_length

    if given.map is not None or given.out.suffix.lower() == ".json":
        return
    if length := truncated_length(looks):
        names = ", ".join(name for name in looks.maps if name not in hidden_maps(looks))
        say(
            f"drawn: the first {MAX_SYMBOLS} of {length:,} symbols; --map NAME draws all of one map ({names}), "
            "--max-length N writes fewer symbols"
        )
    if rest := hidden_maps(looks):
        say(f"further maps, drawn with --map NAME or --map all: {', '.join(rest)}")
