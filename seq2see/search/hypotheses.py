"""Hypotheses: one output with its probabilities and looks, and the history of a search as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from seq2see.decoders import Ready
from seq2see.errors import UserError
from seq2see.memory import EncoderMap, Layout, Memory, Places
from seq2see.search.options import SearchOptions


@dataclass
class EncoderLook:
    """An encoder's own attention for one input: weights (rows, places), or (heads, rows, places).

    inputs: the symbols of the places; asking: those of the rows, as far as they are known; layout: how the places lie.
    """

    weights: NDArray[np.float32]
    layout: dict[str, Any]
    inputs: list[str]
    asking: list[str]


@dataclass
class Hypothesis:
    """One output of a search.

    ids: its symbols, the last one `<eos>` where it is finished (or the one label);
    log_probs: log P(y_t | y_<t, x) of each id; log_probability: their sum; score: what the search ranked by;
    runners_up: for each id the likeliest symbols of its step as (id, probability), best first;
    looks: {input name: (steps, places)}, a row for each id, a column for each real place;
    maps: the looks of each head, if asked for: (heads, steps, places) by input name, and those of the layers below the
    last one by `name.layer-1`;
    places: {input name: the symbols of these places}, where the encoder knows them; layouts: how they lie;
    inner: the encoder's own attention, which does not depend on the output;
    inward: the decoder's self-attention, by layer: (heads, steps, steps), a row for each symbol read, `<sos>` first;
    words: those of the ids outside the vocabulary, where words of the input can be copied;
    forced: how many of the ids the caller gave as a prefix;
    numbers: the output itself where it is numbers; there are no ids and no probability then.
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


# --- Looks of an ensemble


@dataclass
class JointPlaces:
    """The places of an input for all models of an ensemble.

    mask: (batch, places), True where a place is real; agreed: (batch,), True where all models have the same places
    (with different tokens they may not), so that the mean of their looks has a meaning; layout, tokens: how the places
    lie and their symbols, as far as the encoder knows; parent: the larger place of each;
    lower: the looks of that name are those of a layer below the last one, which do not count as the decoder's.
    """

    mask: Bool[Tensor, "batch places"]
    agreed: Bool[Tensor, " batch"]
    layout: Layout
    tokens: list[list[str]] | None = None
    lower: bool = False
    parent: Int[Tensor, "batch places"] | None = None

    def layout_of(self, row: int) -> dict[str, Any]:
        """How the real places of a row lie; `parts`: how many of them each larger place has, where there are any."""
        real = self.mask[row]
        layout = self.layout.to_dict(int(real.sum()))
        return layout if self.parent is None else layout | {"parts": self.parent[row, real].bincount().tolist()}


def joint_places(readies: Sequence[Ready]) -> dict[str, JointPlaces]:
    """The places of every input that any of the models attends to; `agreed` is decided for each row alone."""
    layers = [ready.by_layer() for ready in readies]
    names = dict.fromkeys(name for looks in layers for name in looks)
    joint = {name: _join([looks[name].places for looks in layers if name in looks]) for name in names}
    for name, places in joint.items():
        places.lower = not any(name in ready.looks for ready in readies)
    return joint


def _join(models: Sequence[Places]) -> JointPlaces:
    masks = _same_width([places.mask for places in models])
    agreed = torch.stack([(mask == masks[0]).all(-1) for mask in masks]).all(0)
    tokens = [places.tokens for places in models if places.tokens is not None]
    if len(tokens) > 1:
        same = [all(row == other for other in rest) for row, *rest in zip(*tokens, strict=True)]
        agreed = agreed & torch.tensor(same, device=agreed.device)
    return JointPlaces(masks[0], agreed, models[0].layout, tokens[0] if tokens else None, parent=models[0].parent)


def mean_looks(looks: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, "rows *heads places"]]:
    """{name: (rows, places)}: the mean over the models that attend to that input."""
    if len(looks) == 1:
        return dict(looks[0])
    names = dict.fromkeys(name for model in looks for name in model)
    return {name: torch.stack(_same_width([model[name] for model in looks if name in model])).mean(0) for name in names}


def resized(weights: Float[Tensor, "rows _"], places: int) -> Float[Tensor, "rows places"]:
    """The same weights for so many places: padding is added or removed at the end."""
    return pad(weights, (0, places - weights.shape[-1]))


def _same_width(parts: list[Tensor]) -> list[Tensor]:
    width = max(part.shape[-1] for part in parts)
    return [part if part.shape[-1] == width else pad(part, (0, width - part.shape[-1])) for part in parts]


# --- Self-attention of encoders and decoders


def encoder_looks(readies: Sequence[Ready]) -> list[dict[str, EncoderLook]]:
    """For each input {name: its encoder's own attention}; nothing for an ensemble, whose encoders differ."""
    rows = readies[0].rows
    if len(readies) > 1:
        return [{} for _ in range(rows)]
    memory = readies[0].memory
    return [{name: _encoder_look(name, each, memory, row) for name, each in memory.maps.items()} for row in range(rows)]


def self_attention_name(layer: int) -> str:
    """The name of the self-attention of a decoder's layer (from 1); no input has it, since `output` is reserved."""
    return f"output.self-{layer}"


def _encoder_look(name: str, maps: EncoderMap, memory: Memory, row: int) -> EncoderLook:
    """The real rows and places of a map.

    Its rows are the places it is named after (`document`, of a map `document.words` or `document.self-1`), its columns
    the further places of the map's own name, or the same places.
    """
    weights = maps.weights[row][..., maps.rows[row], :][..., maps.places[row]].float().cpu().numpy()
    asking = memory.places[name.rpartition(".")[0]]
    over = memory.places.get(name, asking)
    layout = JointPlaces(over.mask, over.mask.any(-1), maps.layout, parent=over.parent).layout_of(row)
    return EncoderLook(weights, layout, _tokens(over, row), _tokens(asking, row))


def _tokens(places: Places, row: int) -> list[str]:
    return [] if places.tokens is None else places.tokens[row]


# --- The history of a search, as tensors with back-pointers


@dataclass
class SearchStep:
    """One step of the inputs that were still searched.

    Candidates are the continuations that were considered, slots the hypotheses before and after the step:
    tokens, log_probs: (inputs, candidates); parents: (inputs, candidates), the slot that each continues;
    carried: (inputs, slots), the candidate that each slot continues with;
    runners_up, chances: (inputs, slots, likeliest), ids and log-probabilities;
    looks: {name: (inputs, slots, places)}, with heads (inputs, slots, heads, places); in self-attention there is one
    place more at each step;
    position: (batch,), the row of each input of the whole batch in these tensors.
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
    """Where outputs ended: their input, step and candidate, and whether with `<eos>`."""

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
    """Outputs with all that is known of their steps, zeros after their ends.

    tokens, log_probs: (outputs, steps); runners_up, chances: (outputs, steps, likeliest);
    looks: {name: (outputs, steps, places)}, with heads (outputs, steps, heads, places).
    """

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
    steps: list[SearchStep] = field(default_factory=list)

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
        """Add a step; inputs: the numbers of those still searched; log_probs: the model's own."""
        count, slots, symbols = log_probs.shape
        likeliest = log_probs.topk(min(self.runners_up, symbols), dim=-1)
        position = torch.zeros(self.rows, dtype=torch.long, device=inputs.device)
        position[inputs] = torch.arange(count, device=inputs.device)
        chosen = log_probs.flatten(1).gather(1, parents * symbols + tokens)
        maps = {name: weights.unflatten(0, (count, slots)) for name, weights in looks.items()}
        self.steps.append(
            SearchStep(tokens, chosen, parents, carried, likeliest.indices, likeliest.values, maps, position)
        )

    def backtrack(self, endings: Endings) -> Paths:
        """Follow the back-pointers of all outputs together, from the last step to the first."""
        outputs, length = len(endings.inputs), len(self.steps)
        first = self.steps[0]
        paths = Paths(
            first.tokens.new_zeros(outputs, length),
            first.log_probs.new_zeros(outputs, length),
            first.runners_up.new_zeros(outputs, length, first.runners_up.shape[-1]),
            first.chances.new_zeros(outputs, length, first.chances.shape[-1]),
            {name: look.new_zeros(outputs, length, *look.shape[2:]) for name, look in self.steps[-1].looks.items()},
        )
        candidates = endings.candidates.clone()
        for step in reversed(range(length)):
            there = endings.steps >= step
            inputs, record = endings.inputs[there], self.steps[step]
            at = record.position[inputs]
            slots = record.parents[at, candidates[there]]
            paths.tokens[there, step] = record.tokens[at, candidates[there]]
            paths.log_probs[there, step] = record.log_probs[at, candidates[there]]
            paths.runners_up[there, step] = record.runners_up[at, slots]
            paths.chances[there, step] = record.chances[at, slots]
            for name, look in record.looks.items():
                paths.looks[name][there, step, ..., : look.shape[-1]] = look[at, slots]
            if step:
                before = self.steps[step - 1]
                candidates[there] = before.carried[before.position[inputs], slots]
        return paths


# --- Scores: log-probability with length normalisation, and the coverage penalty

OVERLOOKED = 1e-6
"""The least total weight of a place: one that got none (with oracle weights) costs much, but not infinitely much."""

Number = TypeVar("Number", float, Tensor)


def normalised(log_probability: Number, length: int, options: SearchOptions) -> Number:
    """log_probability / length ** penalty, the length counting `<eos>`."""
    return log_probability / float(length**options.length_penalty)


def best_attainable(log_probability: Tensor, options: SearchOptions) -> Tensor:
    """The highest score of any continuation: all further symbols have probability 1, up to the maximum length.

    The coverage penalty is at most 0, so it cannot raise a score above this.
    """
    return normalised(log_probability, options.max_length, options)


def covered(total: Float[Tensor, "*rows places"], mask: Bool[Tensor, "*#rows places"]) -> Float[Tensor, "*rows"]:
    """sum_j log(min(sum_t a_tj, 1)) over real places: 0 where each got a total weight of 1, below 0 otherwise."""
    return (total.clamp(OVERLOOKED, 1.0).log() * mask).sum(-1)


def coverage_penalty_of(totals: dict[str, Tensor], masks: dict[str, Tensor], options: SearchOptions) -> Tensor:
    """The coverage penalty over all inputs that are attended to, to be added to a score."""
    parts = [covered(total, masks[name]) for name, total in totals.items()]
    return options.coverage_penalty * torch.stack(parts).sum(0)


class Coverage:
    """The sums of looks of every hypothesis of a beam; does nothing where the coverage penalty is 0."""

    def __init__(self, places: Mapping[str, JointPlaces], options: SearchOptions):
        self._options = options
        self._masks = {name: joint.mask for name, joint in places.items() if not joint.lower}
        self._sums: dict[str, Tensor] = {}

    def look(
        self, looks: Mapping[str, Float[Tensor, "rows *heads _"]], inputs: Int[Tensor, " inputs"]
    ) -> Float[Tensor, "inputs slots"] | Float[Tensor, ""]:
        """Add the looks of a step (the mean over heads) and return the penalty of each hypothesis, 0 or below."""
        if self._options.coverage_penalty == 0:
            return torch.zeros((), device=inputs.device)
        for name in self._masks:
            weights = looks[name] if looks[name].dim() == 2 else looks[name].mean(1)
            now = weights.view(len(inputs), -1, weights.shape[-1])
            self._sums[name] = now + self._sums[name] if name in self._sums else now
        return coverage_penalty_of(
            self._sums, {name: mask[inputs, None] for name, mask in self._masks.items()}, self._options
        )

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Continue with these hypotheses."""
        for name, total in self._sums.items():
            self._sums[name] = total.flatten(0, 1)[rows].view(-1, total.shape[1], total.shape[2])


def check_coverage(places: Mapping[str, JointPlaces], options: SearchOptions) -> None:
    """Refuse a coverage penalty for a model without attention, or for an ensemble with different places."""
    if options.coverage_penalty == 0:
        return
    if not places:
        raise UserError(
            f"coverage_penalty {options.coverage_penalty} needs a model with attention; this one has none: set it to 0"
        )
    for name, joint in places.items():
        if not joint.agreed.all():
            raise UserError(
                f"coverage_penalty {options.coverage_penalty} needs models that see the same places in '{name}'; "
                f"the models of this ensemble cut input {int(joint.agreed.long().argmin())} differently: set it to 0"
            )
