"""The equations of a model, collected from its parts: printed by `show`, filled with numbers by `explain`."""

from __future__ import annotations

from collections.abc import Sequence

from seq2see.decoders import Decoder, DecoderEquations
from seq2see.model import EncoderDecoder
from seq2see.recipe.schema import Recipe


def decoder_equations(recipe: Recipe, network: EncoderDecoder) -> DecoderEquations:
    """Those of the decoder, which knows how it is conditioned.

    A user's own subclass of a decoder may compute something else: it has the general ones unless it writes its own.
    """
    decoder = network.decoder
    inherited = not type(decoder).__module__.startswith("seq2see.") and "equations" not in vars(type(decoder))
    return (Decoder.equations if inherited else type(decoder).equations)(decoder, output=recipe.output.said)


def attention_lines(equations: DecoderEquations, over: Sequence[str]) -> list[str]:
    """How the decoder attends to the inputs of these names, line by line."""
    attention = equations.attention
    if attention is None or not over:
        return []
    larger = f";  {attention.larger}" if attention.larger else ""
    keys = f"with q = {equations.query} and k_j = {attention.place} of {', '.join(over)}{larger}"
    lines = [f"{attention.score}, {keys}", *attention.heads, *attention.window, *attention.weights, attention.context]
    if attention.given:
        lines.append(f"P is given {attention.given}: it is not summed over all that could have been")
    lines += equations.notes
    if len(over) > 1:
        lines.append("one attention for each of these inputs; c_t joins their contexts")
    return lines


def output_equation(recipe: Recipe, network: EncoderDecoder) -> str:
    """The output layer, V being E where they are tied."""
    return network.head.equation(decoder_equations(recipe, network).features, probability(recipe, network))


def probability(recipe: Recipe, network: EncoderDecoder) -> str:
    """What the model gives: P(y | x) of a label, P(y_t | y_<t, x) of a symbol."""
    if network.decoder.one_step:
        return "P(y | x)"
    return "P(y_t | y_<t, x)" if recipe.inputs else "P(y_t | y_<t)"


def step_equations(recipe: Recipe, network: EncoderDecoder) -> dict[str, str]:
    """The equations of one decoding step, by what they give: query, energies, weights, context, state, output."""
    equations = decoder_equations(recipe, network)
    lines: dict[str, str] = {}
    if recipe.looked_at and equations.attention is not None:
        attention = equations.attention
        lines["query"] = f"q = {equations.query}"
        lines["energies"] = ";  ".join([attention.score, *attention.heads])
        lines["weights"] = ";  ".join([*attention.window, *attention.weights])
        lines["context"] = attention.context
    if recipe.started_by and equations.cell:
        lines["start"] = equations.start
    lines["state"] = ";  ".join([*[equations.start] * equations.from_start, *equations.step])
    if equations.cell:
        lines["cell"] = equations.cell
    return lines | {"output": output_equation(recipe, network)}
