"""`seq2see explain`: Work out one decoding step with the model's numbers, next to its equations."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from seq2see.cli.inputs import load_single_model, parse_input
from seq2see.cli.parser import Arguments, Parser, add_beam, add_input, add_json, add_model, integer, print_json
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.pipeline.explain import Explanation, Looked

EXAMPLES = ("seq2see explain runs/transliteration india --step 2",)
MAX_PLACE = 60
"""Characters lines of a place, which may be a sentence."""
BAR = 30
FIRST = 6


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_input(parser)
    parser.add_argument(
        "--step", metavar="T", type=integer, default=0, help="decoding step, counted from 0 (default: 0)"
    )
    parser.add_argument("--target", metavar="TEXT", help="explain this output instead of the model's own")
    add_beam(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    if args.target is not None and args.beam is not None:
        raise UserError("--beam cannot be used with --target: there is no search")
    model = load_single_model(args.model, "explain")
    if model.recipe.inputs and args.input is None:
        raise UserError("INPUT is missing")
    if not model.recipe.inputs and args.input is not None:
        raise UserError("this model is a language model and takes no INPUT")
    row = parse_input(model, args.input) if model.recipe.inputs else {}
    explanation = model.explain(row, step=args.step, target=args.target, beam=args.beam)
    if args.json:
        print_json(explanation.to_dict())
    else:
        print("\n".join(lines(explanation)))


def lines(explanation: Explanation) -> list[str]:
    """The step for a person to read: each number under its equation."""
    equations = explanation.equations
    written = " ".join(explanation.outputs[: explanation.step]) or "nothing"
    lines = [
        f"step {explanation.step} of {explanation.steps} (0 to {explanation.steps - 1}); written so far: {written}",
        "",
    ]
    if explanation.start:
        lines += [f"start    {equations['start']}", f"         {_vector(explanation.start)}"]
    if explanation.reads is not None:
        lines += [f"reads    y_{{t-1}} = {explanation.reads}"]
    by_layer = any(layer.self_attention for layer in explanation.layers) or any(
        layer.looks for layer in explanation.layers[:-1]
    )
    lines += _by_layer(explanation) if by_layer else _at_once(explanation)
    lines += [f"         {_vector(explanation.state)}", "", f"output   {equations['output']}"]
    if explanation.generating is not None:
        lines.append(
            f"         g = {explanation.generating:.4f} from the vocabulary, {1 - explanation.generating:.4f} copied"
        )
    width = max(len(text) for text, _ in explanation.likeliest)
    for text, probability in explanation.likeliest:
        mark = "  <- written" if text == explanation.writes else ""
        lines.append(f"         {text:<{width}}  {probability:.4f}  {_bar(probability)}{mark}".rstrip())
    if explanation.writes not in [text for text, _ in explanation.likeliest]:
        lines.append(f"         {explanation.writes:<{width}}  {explanation.probability:.4f}  <- written")
    return lines


def _at_once(explanation: Explanation) -> list[str]:
    """Of a decoder with one attention: query, looks, and the equation of the state."""
    equations, lines = explanation.equations, list[str]()
    if explanation.looks:
        lines += [
            f"query    {equations['query']}",
            *(f"         {_vector(explanation.query)}" for _ in explanation.query[:1]),
        ]
    for look in explanation.looks:
        lines += ["", f"looks at {look.input}", f"         {equations['energies']}", f"         {equations['weights']}"]
        lines += _places(look)
        lines += _heads(look)
        lines += [f"context  {equations['context']}", f"         {_vector(look.context)}"] if look.context else []
    lines += ["", f"state    {equations['state']}"]
    lines += [f"         {equations['cell']}"] if "cell" in equations else []
    return lines + [f"         layer {layer.layer}: {_vector(layer.state)}" for layer in explanation.layers[:-1]]


def _by_layer(explanation: Explanation) -> list[str]:
    """Of a decoder whose layers have attention each: the equations first, then the numbers of every layer."""
    equations, lines = explanation.equations, list[str]()
    if explanation.looks:
        lines += [
            f"query    {equations['query']}",
            f"looks    {equations['energies']}",
            f"         {equations['weights']}",
        ]
        lines += [f"context  {equations['context']}"]
    lines += [f"state    {equations['state']}"]
    for layer in explanation.layers:
        lines += ["", f"layer {layer.layer}"]
        if layer.self_attention is not None:
            lines += ["         self-attention to what was read", *_places(layer.self_attention)]
            lines += _heads(layer.self_attention)
        for look in layer.looks:
            lines += [f"looks at {look.input}", *(f"         query: {_vector(layer.query)}" for _ in layer.query[:1])]
            lines += [*_places(look), *_heads(look)]
            lines += [f"         context: {_vector(look.context)}"] if look.context else []
        lines += [f"         state after the layer: {_vector(layer.state)}"]
    return [*lines, "", "state    after the last layer"]


def _places(look: Looked) -> list[str]:
    places = [place if len(place) <= MAX_PLACE else f"{place[: MAX_PLACE - 1]}…" for place in look.places]
    width = max([5, *map(len, places)])
    rows = [f"          j  {'place':<{width}}     energy e_j  weight a_j"]
    for j, (place, energy, weight) in enumerate(zip(places, look.energies, look.weights, strict=True)):
        rows.append(f"        {j:>3}  {place:<{width}}  {energy:>13.4f}  {weight:>10.4f}  {_bar(weight)}".rstrip())
    return rows


def _heads(look: Looked) -> list[str]:
    """Each head by itself: its query, the energies and weights of the places, and its context."""
    lines = []
    for number, head in enumerate(look.heads, start=1):
        pairs = [f"{e:.3f} {a:.3f}" for e, a in zip(head.energies, head.weights, strict=True)]
        lines += [f"         head {number}  query: {_vector(head.query)}"]
        lines += [f"                 energy and weight of each place: {'; '.join(pairs)}"]
        lines += [f"                 context: {_vector(head.context)}"]
    return lines


def _vector(numbers: list[float]) -> str:
    norm = sqrt(sum(number * number for number in numbers))
    first = " ".join(f"{number:.3f}" for number in numbers[:FIRST])
    more = " ..." if len(numbers) > FIRST else ""
    return f"{len(numbers)} numbers, norm {norm:.4f}: [{first}{more}]"


def _bar(share: float) -> str:
    return "█" * round(share * BAR)
