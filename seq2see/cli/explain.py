"""`seq2see explain`: One decoding step worked out with the numbers the model uses, equations beside them."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from seq2see.cli.inputs import argument, one_model
from seq2see.cli.parser import Given, Parser, add_beam, add_input, add_json, add_model, whole
from seq2see.cli.terminal import emit
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.pipeline.explain import Explanation, Looked

EXAMPLES = ("seq2see explain runs/transliteration india --step 2",)
WIDEST = 60
"""Letters shown of a place: a sentence may be one."""
BAR = 30
FIRST = 6


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_input(parser)
    parser.add_argument("--step", metavar="T", type=whole, default=0, help="the step, counted from 0 (default: 0)")
    parser.add_argument("--target", metavar="TEXT", help="while writing this instead of the model's own output")
    add_beam(parser)
    add_json(parser)


def run(given: Given) -> None:
    if given.target is not None and given.beam is not None:
        raise UserError("--beam: no meaning with --target: nothing is searched for")
    model = one_model(given.model, "explain")
    if model.recipe.inputs and given.input is None:
        raise UserError("INPUT is missing: give the input whose output is to be explained")
    if not model.recipe.inputs and given.input is not None:
        raise UserError("this model is a language model and reads no INPUT")
    row = argument(model, given.input) if model.recipe.inputs else {}
    explanation = model.explain(row, step=given.step, target=given.target, beam=given.beam)
    if given.json:
        emit(explanation.to_dict())
    else:
        print("\n".join(lines(explanation)))


def lines(made: Explanation) -> list[str]:
    """The step for a person to read: each number under its equation."""
    how = made.equations
    written = " ".join(made.outputs[: made.step]) or "nothing"
    shown = [f"step {made.step} of {made.steps} (0 to {made.steps - 1}); written so far: {written}", ""]
    if made.start:
        shown += [f"start    {how['start']}", f"         {_vector(made.start)}"]
    if made.reads is not None:
        shown += [f"reads    y_{{t-1}} = {made.reads}"]
    if made.looks:
        shown += [f"query    {how['query']}", *(f"         {_vector(made.query)}" for _ in made.query[:1])]
    for look in made.looks:
        shown += ["", f"looks at {look.input}", f"         {how['energies']}", f"         {how['weights']}"]
        shown += _places(look)
        shown += [f"context  {how['context']}", f"         {_vector(look.context)}"] if look.context else []
    shown += ["", f"state    {how['state']}"]
    shown += [f"         {how['cell']}"] if "cell" in how else []
    shown += [f"         {_vector(made.state)}", "", f"output   {how['output']}"]
    if made.generating is not None:
        shown.append(f"         g = {made.generating:.4f} from the vocabulary, {1 - made.generating:.4f} copied")
    width = max(len(text) for text, _ in made.likeliest)
    for text, probability in made.likeliest:
        mark = "  <- written" if text == made.writes else ""
        shown.append(f"         {text:<{width}}  {probability:.4f}  {_bar(probability)}{mark}".rstrip())
    if made.writes not in [text for text, _ in made.likeliest]:
        shown.append(f"         {made.writes:<{width}}  {made.probability:.4f}  <- written")
    return shown


def _places(look: Looked) -> list[str]:
    places = [place if len(place) <= WIDEST else f"{place[: WIDEST - 1]}…" for place in look.places]
    width = max([5, *map(len, places)])
    rows = [f"          j  {'place':<{width}}     energy e_j  weight a_j"]
    for j, (place, energy, weight) in enumerate(zip(places, look.energies, look.weights, strict=True)):
        rows.append(f"        {j:>3}  {place:<{width}}  {energy:>13.4f}  {weight:>10.4f}  {_bar(weight)}".rstrip())
    return rows


def _vector(numbers: list[float]) -> str:
    norm = sqrt(sum(number * number for number in numbers))
    first = " ".join(f"{number:.3f}" for number in numbers[:FIRST])
    more = " ..." if len(numbers) > FIRST else ""
    return f"{len(numbers)} numbers, norm {norm:.4f}: [{first}{more}]"


def _bar(share: float) -> str:
    return "█" * round(share * BAR)
