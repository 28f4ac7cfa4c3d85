"""One decoding step worked out with the numbers the model uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from seq2see.attention import Look
from seq2see.data.batches import SOS
from seq2see.decoders import CopyHead, State, Step
from seq2see.errors import UserError, counted
from seq2see.looks import Prediction
from seq2see.memory import Memory
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.equations import (
    cell_equation,
    context_equation,
    heads_equations,
    layer_equations,
    output_equation,
    query_of,
    score_equation,
    start_equation,
    step_equation,
    weights_equations,
)
from seq2see.pipeline.predictor import places_named
from seq2see.recipe import Recipe
from seq2see.search.hypotheses import joint_places
from seq2see.search.options import Weights
from seq2see.search.oracle import Oracle

LIKELIEST = 5
CELLS = ("recurrent", "label")
"""Decoders whose state is that of cells; of others the features are told."""


@dataclass
class Looked:
    """One look at one input: a row for each place."""

    input: str
    places: list[str]
    energies: list[float]
    weights: list[float]
    context: list[float]


@dataclass
class Explanation:
    """Step `step` (from 0) of `steps`; reads: the symbol before; looks: none without attention.

    query: the state that asked (none without attention, none of a transformer); state: s_t after the step;
    likeliest: the best symbols with their probabilities; generating: g, the share of P that comes from the vocabulary,
    where words can be copied; start: s_0, where a recurrent decoder starts from what was read; equations: how each
    number comes from the ones before.
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

    def to_dict(self) -> dict[str, Any]:
        likeliest = [{"text": text, "probability": probability} for text, probability in self.likeliest]
        found = asdict(self) | {"likeliest": likeliest}
        if self.generating is None:
            del found["generating"]
        if not self.start:
            del found["start"]
        return found


@torch.inference_mode()
def explain(
    bundle: Bundle, row: Mapping[str, str], said: Prediction, step: int, *, oracle: Weights | None = None
) -> Explanation:
    """Repeat the decoding of `said` (the model's own words or given ones) up to a step, and tell what happens in it.

    oracle: the attention that the caller handed in for some steps while it was said; energies stay the model's own.
    """
    outputs = [token.text for token in said.tokens]
    if not 0 <= step < len(outputs):
        known = f"0 to {len(outputs) - 1}" if len(outputs) > 1 else "0 alone"
        raise UserError(
            f"step {step}: the output has {counted(len(outputs), 'step')}, counted from 0: {known} "
            f"({' '.join(outputs)})"
        )
    network, recipe = bundle.network, bundle.recipe
    vocabulary = bundle.fields.output.vocabulary
    batch = bundle.fields.batch([row]).to(bundle.device)
    ready = network.ready(batch.inputs, 1)
    label = recipe.output.one_step
    words = (network.head.words(ready) or [[]])[0]
    numbers = {symbol: i for i, symbol in enumerate([*vocabulary.symbols, *words])}  # special symbols too
    ids = [numbers[symbol] for symbol in outputs]
    reached = {number: weights for number, weights in (oracle or {}).items() if number < len(outputs)}
    forced = Oracle(reached, joint_places([ready]), rows=1, max_length=len(outputs))
    whose = torch.zeros(1, dtype=torch.long, device=bundle.device)
    before = state = first = network.begin(ready)
    made: Step | None = None
    for number in range(step + 1):
        token = None if label else torch.tensor([SOS if number == 0 else ids[number - 1]], device=bundle.device)
        before, made = state, network.step(ready, state, token, forced=forced.at(number, whose, width=1))
        state = made.state
    if made is None:
        raise ValueError("no step was made")
    probabilities = network.log_probs(made, ready)[0].double().exp()
    best = probabilities.topk(min(LIKELIEST, len(probabilities)))
    texts = vocabulary.decode(best.indices.tolist(), words)
    return Explanation(
        step=step,
        steps=len(outputs),
        outputs=outputs,
        reads=None if label else (outputs[step - 1] if step else vocabulary.symbols[SOS]),
        query=_query(recipe, before, state),
        looks=[looked for name, look in made.looks.items() for looked in _looked(name, look, ready.memory)],
        state=_numbers(_top(state) if recipe.decoder.kind in CELLS else made.features[0]),
        writes=outputs[step],
        probability=float(probabilities[ids[step]]),
        likeliest=list(zip(texts, best.values.tolist(), strict=True)),
        equations=_equations(bundle),
        generating=float(network.head.generating(made)[0]) if isinstance(network.head, CopyHead) else None,
        start=_numbers(_top(first)) if recipe.decoder.kind == "recurrent" and recipe.started_by else [],
    )


def _looked(name: str, look: Look, memory: Memory) -> list[Looked]:
    """A look; before it, where it went through larger places, the look at these, which has no context of its own."""
    found = []
    if look.larger is not None and look.larger_energies is not None:
        above = name.partition(".")[0]
        found.append(
            Looked(above, _tokens(memory, above), _numbers(look.larger_energies[0]), _numbers(look.larger[0]), [])
        )
    energies, weights = _numbers(look.dense_energies()[0]), _numbers(look.dense()[0])
    return [*found, Looked(name, _tokens(memory, name), energies, weights, _numbers(look.context[0]))]


def _tokens(memory: Memory, name: str) -> list[str]:
    """What stands at the places of the one input; cells and the like are named by where they lie."""
    places = memory.places[name]
    return places.tokens[0] if places.tokens else places_named(places.layout.to_dict(int(places.mask.sum())))


def _equations(bundle: Bundle) -> dict[str, str]:
    recipe = bundle.recipe
    found: dict[str, str] = {}
    if recipe.looked_at:
        found |= {"query": f"q = {query_of(recipe)}"}
        found |= {"energies": ";  ".join([score_equation(recipe), *heads_equations(recipe)])}
        found |= {"weights": ";  ".join(weights_equations(recipe)), "context": context_equation(recipe)}
    if recipe.output.one_step and recipe.decoder.own is None:
        layers = layer_equations(recipe) if recipe.decoder.kind == "transformer" else []
        found["state"] = ";  ".join([start_equation(recipe), *layers])
    elif recipe.decoder.kind != "recurrent":
        found["state"] = ";  ".join(layer_equations(recipe))
    else:
        found |= {"start": start_equation(recipe)} if recipe.started_by else {}
        found["state"] = step_equation(recipe)
        found["cell"] = cell_equation(recipe.decoder)
    return found | {"output": output_equation(recipe)}


def _query(recipe: Recipe, before: State, after: State) -> list[float]:
    """The state that asked; a transformer asks in each layer anew, and keeps none of these states."""
    if not recipe.looked_at or recipe.decoder.kind not in CELLS:
        return []
    return _numbers(_top(after if recipe.attention.query == "current" else before))


def _top(state: State) -> Tensor:
    """s_t: what the top layer gives."""
    return state.cells[-1][0][0]


def _numbers(vector: Tensor) -> list[float]:
    numbers: list[float] = vector.double().tolist()
    return numbers
