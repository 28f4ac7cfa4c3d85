"""One decoding step worked out with the numbers the model computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seq2see.attention import HeadNumbers, Look
from seq2see.data.vocabulary import SOS
from seq2see.decoders import CopyHead, Step
from seq2see.errors import UserError, counted
from seq2see.looks import Prediction
from seq2see.memory import Memory
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.five_answers import step_equations
from seq2see.pipeline.predictor import place_names
from seq2see.search import evaluating
from seq2see.search.constraints import Oracle
from seq2see.search.models import joint_places
from seq2see.search.options import Weights

LIKELIEST = 5
MAX_PLACE = 60
"""Characters of a place that are printed, which may be a sentence."""
BAR = 30
"""Characters of the longest bar."""
FIRST = 6
"""Numbers of a vector that are printed."""


@dataclass
class HeadLook:
    """What one head computed: its query, an energy and a weight for each place, and its context."""

    query: list[float]
    energies: list[float]
    weights: list[float]
    context: list[float]


@dataclass
class Looked:
    """One look at one input: an energy and a weight for each place, and the context.

    heads: each head by itself, where there are several; energies and weights are then the mean over them.
    """

    input: str
    places: list[str]
    energies: list[float]
    weights: list[float]
    context: list[float]
    heads: list[HeadLook] = field(default_factory=list)


@dataclass
class Layer:
    """One layer (from 1) of the decoder at the step: what it attended to, and its state afterwards.

    query: what its attention to the inputs was computed from; self_attention: over the symbols read so far.
    """

    layer: int
    query: list[float]
    looks: list[Looked]
    state: list[float]
    self_attention: Looked | None = None


@dataclass
class Explanation:
    """Step `step` (from 0) of `steps`; reads: the symbol before; looks: those of the last layer, if it has attention.

    query: what attention was computed from (none without attention); state: s_t after the step;
    layers: every layer by itself, where there are several or they have self-attention;
    likeliest: the best symbols with their probabilities; generating: g, the share of P that comes from the vocabulary,
    where words can be copied; start: s_0 of a recurrent decoder that starts from an input; equations: how each of these
    is computed.
    """

    step: int
    steps: int
    outputs: list[str]
    reads: str | None
    query: list[float]
    looks: list[Looked]
    state: list[float]
    writes: str
    probability: float
    likeliest: list[tuple[str, float]]
    equations: dict[str, str]
    generating: float | None = None
    start: list[float] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def text(self) -> str:
        """The step for a person to read: each number under its equation."""
        return "\n".join(_lines(self))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """In a notebook: the places with their energies and weights, and the likeliest symbols."""
        return _html(self)

    def to_dict(self) -> dict[str, Any]:
        """One JSON object, as `explain --json` prints it; without what this model does not have."""
        likeliest = [{"text": text, "probability": probability} for text, probability in self.likeliest]
        record = asdict(self) | {"likeliest": likeliest}
        if self.generating is None:
            del record["generating"]
        for name in ("start", "layers"):
            if not record[name]:
                del record[name]
        for look in [*record["looks"], *(look for layer in record.get("layers", []) for look in layer["looks"])]:
            if not look["heads"]:
                del look["heads"]
        for layer in record.get("layers", []):
            if layer["self_attention"] is None:
                del layer["self_attention"]
        return record


def explain(
    bundle: Bundle, row: Mapping[str, str], prediction: Prediction, step: int, *, oracle: Weights | None = None
) -> Explanation:
    """Repeat the decoding of a prediction (the model's own or a given output) up to a step, and keep its numbers.

    oracle: the attention weights that the caller handed in for some steps; energies stay the model's own.
    """
    outputs = [token.text for token in prediction.tokens]
    if not 0 <= step < len(outputs):
        known = f"0 to {len(outputs) - 1}" if len(outputs) > 1 else "0 alone"
        raise UserError(
            f"step {step}: the output has {counted(len(outputs), 'step')}, counted from 0: {known} "
            f"({' '.join(outputs)})"
        )
    with evaluating([bundle.network]):
        return _explain(bundle, row, outputs, step, oracle=oracle)


def _explain(
    bundle: Bundle, row: Mapping[str, str], outputs: list[str], step: int, *, oracle: Weights | None
) -> Explanation:
    network, recipe = bundle.network, bundle.recipe
    vocabulary, one_step = bundle.fields.output.vocabulary, network.decoder.one_step
    ready = network.ready(bundle.fields.batch([row]).to(bundle.device).inputs, 1)
    words = (network.head.words(ready) or [[]])[0]
    numbers = {symbol: i for i, symbol in enumerate([*vocabulary.symbols, *words])}  # special symbols too
    ids = [numbers[symbol] for symbol in outputs]
    reached = {number: weights for number, weights in (oracle or {}).items() if number < len(outputs)}
    forced = Oracle(reached, joint_places([ready]), rows=1, max_length=len(outputs))

    def weights_at(number: int) -> dict[str, torch.Tensor] | None:
        weights = forced.at(number, np.zeros(1, dtype=np.int64), width=1)
        return None if weights is None else {k: torch.from_numpy(v).to(bundle.device) for k, v in weights.items()}

    first = state = network.begin(ready)
    for number in range(step):
        before = torch.tensor([SOS if number == 0 else ids[number - 1]], device=bundle.device)
        state = network.step(ready, state, before, forced=weights_at(number)).state
    read = [] if one_step else [vocabulary.symbols[SOS], *outputs[:step]]
    token = torch.tensor([ids[step - 1] if step else SOS], device=bundle.device) if read else None
    last = network.step(replace(ready, maps=True), state, token, forced=weights_at(step))
    probabilities = network.log_probs(last, ready)[0].double().exp()
    best = probabilities.topk(min(LIKELIEST, len(probabilities)))
    texts = vocabulary.decode(best.indices.tolist(), words)
    equations = step_equations(recipe, network)
    if step in reached and "weights" in equations:
        equations["weights"] = f"given by you (oracle); without them {equations['weights']}"
    layers = _layers(last, ready.memory, read)
    return Explanation(
        step=step,
        steps=len(outputs),
        outputs=outputs,
        reads=read[-1] if read else None,
        query=layers[-1].query if layers else [],
        looks=[looked for name, look in last.looks.items() for looked in _looked(name, look, ready.memory)],
        state=_numbers((last.features if last.output is None else last.output)[0]),
        writes=outputs[step],
        probability=float(probabilities[ids[step]]),
        likeliest=list(zip(texts, best.values.tolist(), strict=True)),
        equations=equations,
        generating=float(network.head.generating(last)[0]) if isinstance(network.head, CopyHead) else None,
        start=_numbers(first.cells[-1][0][0]) if "start" in equations else [],
        layers=layers if len(layers) > 1 or any(layer.self_attention for layer in layers) else [],
    )


def _layers(step: Step, memory: Memory, read: list[str]) -> list[Layer]:
    """Every layer of the decoder, from the bottom; read: the symbols read so far."""
    looks = [*step.lower, step.looks]
    looks = [*[{}] * (len(step.layers) - len(looks)), *looks]
    return [
        Layer(
            number,
            [] if layer.query is None else _numbers(layer.query[0]),
            [looked for name, look in own.items() for looked in _looked(name, look, memory)],
            _numbers(layer.state[0]),
            None if layer.self_attention is None else _self_attention(layer.self_attention, read),
        )
        for number, (layer, own) in enumerate(zip(step.layers, looks, strict=False), start=1)
    ]


def _self_attention(numbers: HeadNumbers, read: list[str]) -> Looked:
    """Self-attention over the last symbols read, as many as the decoder's memory reaches back to."""
    query, energies, weights, context = (
        part[0, :, 0] for part in (numbers.query, numbers.energies, numbers.weights, numbers.context)
    )
    heads = [HeadLook(*map(_numbers, parts)) for parts in zip(query, energies, weights, context, strict=True)]
    places = read[-weights.shape[-1] :]
    return Looked(
        "output", places, _numbers(energies.mean(0)), _numbers(weights.mean(0)), _numbers(context.flatten()), heads
    )


def _looked(name: str, look: Look, memory: Memory) -> list[Looked]:
    """A look; of two-level attention after the look at the larger places, which has no context of its own."""
    record = []
    if look.larger is not None and look.larger_energies is not None:
        larger = name.partition(".")[0]
        energies, weights = _numbers(look.larger_energies[0]), _numbers(look.larger[0])
        record.append(Looked(larger, place_names(memory.places[larger]), energies, weights, []))
    energies, weights = _numbers(look.dense_energies()[0]), _numbers(look.dense()[0])
    return [
        *record,
        Looked(name, place_names(memory.places[name]), energies, weights, _numbers(look.context[0]), _heads(look)),
    ]


def _heads(look: Look) -> list[HeadLook]:
    """Each head by itself; none where there are no heads."""
    if not look.heads or look.query is None or look.head_contexts is None:
        return []
    parts = (look.query[0], look.energies_by_head()[0], look.by_head()[0], look.head_contexts[0])
    return [HeadLook(*map(_numbers, head)) for head in zip(*parts, strict=True)]


def _numbers(vector: Tensor) -> list[float]:
    numbers: list[float] = vector.double().tolist()
    return numbers


# ---------------------------------------------------------------- as text and as HTML


def _lines(explanation: Explanation) -> list[str]:
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
        lines += _place_lines(look)
        lines += _head_lines(look)
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
            lines += ["         self-attention to what was read", *_place_lines(layer.self_attention)]
            lines += _head_lines(layer.self_attention)
        for look in layer.looks:
            lines += [f"looks at {look.input}", *(f"         query: {_vector(layer.query)}" for _ in layer.query[:1])]
            lines += [*_place_lines(look), *_head_lines(look)]
            lines += [f"         context: {_vector(look.context)}"] if look.context else []
        lines += [f"         state after the layer: {_vector(layer.state)}"]
    return [*lines, "", "state    after the last layer"]


def _place_lines(look: Looked) -> list[str]:
    places = [place if len(place) <= MAX_PLACE else f"{place[: MAX_PLACE - 1]}…" for place in look.places]
    width = max([5, *map(len, places)])
    rows = [f"          j  {'place':<{width}}     energy e_j  weight a_j"]
    for j, (place, energy, weight) in enumerate(zip(places, look.energies, look.weights, strict=True)):
        rows.append(f"        {j:>3}  {place:<{width}}  {energy:>13.4f}  {weight:>10.4f}  {_bar(weight)}".rstrip())
    return rows


def _head_lines(look: Looked) -> list[str]:
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


def _html(explanation: Explanation) -> str:
    equations, parts = explanation.equations, list[str]()
    written = " ".join(explanation.outputs[: explanation.step]) or "nothing"
    parts.append(
        f"<p><b>Step {explanation.step}</b> of {explanation.steps} (0 to {explanation.steps - 1}); written so far: "
        f'<span dir="auto">{escape(written)}</span></p>'
    )
    for look in explanation.looks:
        formulas = "<br>".join(escape(equations[name]) for name in ("query", "energies", "weights", "context"))
        rows = zip(look.places, look.energies, look.weights, strict=True)
        numbers = [(place, f"{energy:.4f}", f"{weight:.4f}", weight) for place, energy, weight in rows]
        parts.append(f"<p>Looks at <b>{escape(look.input)}</b><br><code>{formulas}</code></p>")
        parts.append(_html_table(("place", "energy e_j", "weight a_j"), numbers))
    parts.append(f"<p>Output<br><code>{escape(equations['output'])}</code></p>")
    likeliest = dict(explanation.likeliest) | {explanation.writes: explanation.probability}
    cells = [
        (f"{text} (written)" if text == explanation.writes else text, f"{share:.4f}", share)
        for text, share in likeliest.items()
    ]
    return "\n".join([*parts, _html_table(("symbol", "P"), cells)])


def _html_table(head: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> str:
    """Rows of texts whose last item, from 0 to 1, is drawn as a bar."""
    cell = "padding: 0.1em 0.7em; border: 0"
    names = "".join(f'<th style="{cell}; text-align: left">{escape(name)}</th>' for name in head)
    lines = []
    for first, *numbers, share in rows:
        shown = "".join(f'<td style="{cell}; text-align: right">{number}</td>' for number in numbers)
        bar = f'<div style="height: 0.8em; width: {160 * share:.0f}px; background: #3b6fb6"></div>'
        name = f'<td style="{cell}; text-align: left" dir="auto">{escape(first)}</td>'
        lines.append(f"<tr>{name}{shown}<td>{bar}</td></tr>")
    return f"<table><thead><tr>{names}<th></th></tr></thead><tbody>{''.join(lines)}</tbody></table>"
