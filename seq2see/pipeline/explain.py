"""One decoding step worked out with the numbers the model computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
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
