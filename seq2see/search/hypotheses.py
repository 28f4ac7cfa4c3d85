"""Hypotheses: one output with its probabilities and looks, and the history of a search as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from seq2see.decoders import Ready
from seq2see.memory import EncoderMap, Layout, Memory, Places

# ---------------- One output a search has found, with all that can be told of it


@dataclass
class EncoderLook:
    """Where an encoder itself looked: weights (rows, places), or (heads, rows, places).

    inputs: the symbols of the places, asking: those of the rows, as far as they are known; layout: how the places lie.
    """

    weights: NDArray[np.float32]
    layout: dict[str, Any]
    inputs: list[str]
    asking: list[str]


@dataclass
class Hypothesis:
    """ids: the output's symbols, the last one `<eos>` where it is finished (or the one label).

    log_probs: one per id, log P(y_t | y_<t, x); log_probability: their sum; score: what the search ranked by;
    runners_up: for each id the likeliest symbols of its step as (id, probability), best first;
    looks: {input name: (steps, places)}, a row for each id, a column for each real place;
    maps: the same looks told apart, where that was asked for: (heads, steps, places) by input, and by `name.layer-1`
    those of the layers below the last;
    places: {input name: the symbols that stand at those places}, where the encoder knows them; layouts: how they lie;
    inner: where the encoder looked while it read, whatever the output;
    inward: where the decoder looked at what it had read of this very output, by layer: (heads, steps, steps), a row for
    each symbol it read, `<sos>` first;
    words: what the ids beyond the vocabulary stand for, where words of the input can be copied;
    forced: how many of the ids were given by the caller;
    numbers: the output itself where it is made of numbers: it has no ids and no probability then.
    """

    ids: list[int]
    log_probs: list[float]
    log_probability: float
    score: float
    finished: bool
    runners_up: list[list[tuple[int, float]]] = field(default_factory=list)
    looks: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    maps: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    inner: dict[str, EncoderLook] = field(default_factory=dict)
    inward: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    forced: int = 0
    numbers: NDArray[np.floating] | None = None


# ---------------- Where an ensemble looked


@dataclass
class JointPlaces:
    """What can be looked at under one input name, by all models together.

    mask: (batch, places), True where a place is real; agreed: (batch,), True where all models that look at the input
    see the same places in it (models with tokens of their own may not), so that a mean of their looks has a meaning;
    layout, tokens: how the places lie, and what stands there, as far as the encoder knows; parent: the larger place
    that holds each;
    lower: the looks of that name are those of a layer below the last one, which tell how an output came about but do
    not count as where the decoder looked.
    """

    mask: Bool[Tensor, "batch places"]
    agreed: Bool[Tensor, " batch"]
    layout: Layout
    tokens: list[list[str]] | None = None
    lower: bool = False
    parent: Int[Tensor, "batch places"] | None = None

    def layout_of(self, row: int) -> dict[str, Any]:
        """How the real places of a row lie; `parts`: how many of them each larger place holds, where there are any."""
        real = self.mask[row]
        told = self.layout.to_dict(int(real.sum()))
        return told if self.parent is None else told | {"parts": self.parent[row, real].bincount().tolist()}


def joint_places(readies: Sequence[Ready]) -> dict[str, JointPlaces]:
    """The places of every input that any of the models looks at. Decided row by row: the rest of a batch has no say."""
    every = [ready.by_layer() for ready in readies]
    names = dict.fromkeys(name for looks in every for name in looks)
    found = {name: _one_input([looks[name].places for looks in every if name in looks]) for name in names}
    for name, joint in found.items():
        joint.lower = not any(name in ready.looks for ready in readies)
    return found


def _one_input(seen: Sequence[Places]) -> JointPlaces:
    masks = _same_width([places.mask for places in seen])
    agreed = torch.stack([(mask == masks[0]).all(-1) for mask in masks]).all(0)
    told = [places.tokens for places in seen if places.tokens is not None]
    if len(told) > 1:
        same = [all(row == other for other in rest) for row, *rest in zip(*told, strict=True)]
        agreed = agreed & torch.tensor(same, device=agreed.device)
    return JointPlaces(masks[0], agreed, seen[0].layout, told[0] if told else None, parent=seen[0].parent)


def mean_looks(looks: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, "rows *heads places"]]:
    """{name: (rows, places)}: the mean over the models that look at that input."""
    if len(looks) == 1:
        return dict(looks[0])
    names = dict.fromkeys(name for one in looks for name in one)
    return {name: torch.stack(_same_width([one[name] for one in looks if name in one])).mean(0) for name in names}


def fitted(weights: Float[Tensor, "rows _"], places: int) -> Float[Tensor, "rows places"]:
    """The same weights for so many places: padding added or taken away behind the real ones."""
    return pad(weights, (0, places - weights.shape[-1]))


def _same_width(parts: list[Tensor]) -> list[Tensor]:
    width = max(part.shape[-1] for part in parts)
    return [part if part.shape[-1] == width else pad(part, (0, width - part.shape[-1])) for part in parts]


# ---------------- Sequences that look at themselves


def encoder_looks(readies: Sequence[Ready]) -> list[dict[str, EncoderLook]]:
    """For each input of the batch {name: where its encoder looked}.

    An ensemble's encoders look each for itself, at what they alone compute: of them nothing is told together.
    """
    rows = readies[0].rows
    if len(readies) > 1:
        return [{} for _ in range(rows)]
    memory = readies[0].memory
    return [{name: _of_row(name, one, memory, row) for name, one in memory.maps.items()} for row in range(rows)]


def self_attention_name(layer: int) -> str:
    """What the looks of a decoder's layer (from 1) at what it has read of its own output are called.

    No input can have this name: `output` is reserved.
    """
    return f"output.self-{layer}"


def _of_row(name: str, one: EncoderMap, memory: Memory, row: int) -> EncoderLook:
    """The real rows and places of a map: what asks are the places it is named after (`document`, of a map
    `document.words` or `document.self-1`), what is looked at further places of the map's own name, or the same."""
    weights = one.weights[row][..., one.rows[row], :][..., one.places[row]].float().cpu().numpy()
    asking = memory.places[name.rpartition(".")[0]]
    over = memory.places.get(name, asking)
    layout = JointPlaces(over.mask, over.mask.any(-1), one.layout, parent=over.parent).layout_of(row)
    return EncoderLook(weights, layout, _tokens(over, row), _tokens(asking, row))


def _tokens(places: Places, row: int) -> list[str]:
    return [] if places.tokens is None else places.tokens[row]


# ---------------- What happened at each step, kept as tensors with back-pointers; outputs are read off ...


@dataclass
class SearchStep:
    """One step of the inputs that were still searched.

    Candidates are the continuations that were considered, slots the hypotheses that were continued or go on:
    tokens, log_probs: (inputs, candidates); parents: (inputs, candidates), the slot each continues;
    carried: (inputs, slots), the candidate that went on in each slot;
    runners_up, chances: (inputs, slots, likeliest), ids and log-probabilities;
    looks: {name: (inputs, slots, places)}, with heads (inputs, slots, heads, places); places may become more from step
    to step, where they are the symbols of the hypothesis itself;
    position: (batch,), where each input of the whole batch is in this step's tensors.
    """

    tokens: Int[Tensor, "inputs candidates"]
    log_probs: Float[Tensor, "inputs candidates"]
    parents: Int[Tensor, "inputs candidates"]
    carried: Int[Tensor, "inputs slots"]
    runners_up: Int[Tensor, "inputs slots likeliest"]
    chances: Float[Tensor, "inputs slots likeliest"]
    looks: dict[str, Tensor]
    position: Int[Tensor, " batch"]


@dataclass
class Endings:
    """Where outputs ended: of which input, at which step, in which candidate, and whether with `<eos>`."""

    inputs: Int[Tensor, " outputs"]
    steps: Int[Tensor, " outputs"]
    candidates: Int[Tensor, " outputs"]
    finished: Bool[Tensor, " outputs"]

    @classmethod
    def joined(cls, parts: list[Endings]) -> Endings:
        return cls(
            torch.cat([part.inputs for part in parts]),
            torch.cat([part.steps for part in parts]),
            torch.cat([part.candidates for part in parts]),
            torch.cat([part.finished for part in parts]),
        )


@dataclass
class Paths:
    """Outputs read off: tokens, log_probs (outputs, steps); runners_up, chances (outputs, steps, likeliest);
    looks {name: (outputs, steps, places)}, with heads (outputs, steps, heads, places). What lies behind an output's end
    is zero."""

    tokens: Int[Tensor, "outputs steps"]
    log_probs: Float[Tensor, "outputs steps"]
    runners_up: Int[Tensor, "outputs steps likeliest"]
    chances: Float[Tensor, "outputs steps likeliest"]
    looks: dict[str, Float[Tensor, "outputs steps *heads _"]] = field(default_factory=dict)


@dataclass
class History:
    """The steps of one search over `rows` inputs."""

    rows: int
    runners_up: int
    moments: list[SearchStep] = field(default_factory=list)

    def add(
        self,
        inputs: Int[Tensor, " inputs"],
        *,
        tokens: Int[Tensor, "inputs candidates"],
        parents: Int[Tensor, "inputs candidates"],
        carried: Int[Tensor, "inputs slots"],
        log_probs: Float[Tensor, "inputs slots symbols"],
        looks: dict[str, Float[Tensor, "rows *heads _"]],
    ) -> None:
        """Keep a step; `inputs` are the numbers of the inputs still searched, `log_probs` the model's own."""
        count, slots, symbols = log_probs.shape
        likeliest = log_probs.topk(min(self.runners_up, symbols), dim=-1)
        position = torch.zeros(self.rows, dtype=torch.long, device=inputs.device)
        position[inputs] = torch.arange(count, device=inputs.device)
        chosen = log_probs.flatten(1).gather(1, parents * symbols + tokens)
        maps = {name: weights.unflatten(0, (count, slots)) for name, weights in looks.items()}
        self.moments.append(
            SearchStep(tokens, chosen, parents, carried, likeliest.indices, likeliest.values, maps, position)
        )

    def read_off(self, endings: Endings) -> Paths:
        """Follow the back-pointers of all outputs together, from the last step to the first."""
        outputs, steps = len(endings.inputs), len(self.moments)
        first = self.moments[0]
        paths = Paths(
            first.tokens.new_zeros(outputs, steps),
            first.log_probs.new_zeros(outputs, steps),
            first.runners_up.new_zeros(outputs, steps, first.runners_up.shape[-1]),
            first.chances.new_zeros(outputs, steps, first.chances.shape[-1]),
            {name: look.new_zeros(outputs, steps, *look.shape[2:]) for name, look in self.moments[-1].looks.items()},
        )
        candidates = endings.candidates.clone()
        for step in reversed(range(steps)):
            there = endings.steps >= step
            inputs, moment = endings.inputs[there], self.moments[step]
            at = moment.position[inputs]
            slots = moment.parents[at, candidates[there]]
            paths.tokens[there, step] = moment.tokens[at, candidates[there]]
            paths.log_probs[there, step] = moment.log_probs[at, candidates[there]]
            paths.runners_up[there, step] = moment.runners_up[at, slots]
            paths.chances[there, step] = moment.chances[at, slots]
            for name, look in moment.looks.items():
                paths.looks[name][there, step, ..., : look.shape[-1]] = look[at, slots]
            if step:
                before = self.moments[step - 1]
                candidates[there] = before.carried[before.position[inputs], slots]
        return paths
