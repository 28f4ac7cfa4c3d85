"""Hypotheses: one output with its probabilities and looks, and the history of a search as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.looks import Layout, NodeState
from seq2see.search.options import SearchOptions
from seq2see.search.top import Likeliest


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
class SearchTree:
    """The nodes of one input, step by step, those of a step best first; a parent comes before its children.

    ids: their symbols; parents: the nodes that they continue, -1 at the first step; log_probs: log P of each symbol;
    left_out: nodes of later steps, beyond `tree.MAX_NODES`.
    """

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    states: list[NodeState] = field(default_factory=list)
    left_out: int = 0


@dataclass
class Hypothesis:
    """One output of a search.

    ids: its symbols, the last one `<eos>` where it is finished (or the one label);
    log_probs: log P(y_t | y_<t, x) of each id; log_probability: their sum; score: what the search ranked by;
    added: what language models add to the log-probability in the score;
    likeliest, shares: the likeliest symbols of each step with their probabilities, best first, a row for each id;
    looks: {input name: (steps, places)}, a row for each id, a column for each real place;
    maps: the looks of each head, if asked for: (heads, steps, places) by input name, and those of the layers below the
    last one by `name.layer-1`;
    places: {input name: the symbols of these places}, where the encoder knows them; layouts: how they lie;
    inner: the encoder's own attention, which does not depend on the output;
    inward: the decoder's self-attention, by layer: (heads, steps, steps), a row for each symbol read, `<sos>` first;
    words: those of the ids outside the vocabulary, where words of the input can be copied;
    forced: how many of the ids the caller gave as a prefix;
    numbers: the output itself where it is numbers; there are no ids and no probability then;
    tree: of the search that found it, if asked for; all hypotheses of an input share it.
    """

    ids: list[int]
    log_probs: list[float]
    log_probability: float
    score: float
    finished: bool
    added: float = 0.0
    likeliest: list[list[int]] = field(default_factory=list)
    shares: list[list[float]] = field(default_factory=list)
    looks: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    maps: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)
    inner: dict[str, EncoderLook] = field(default_factory=dict)
    inward: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    forced: int = 0
    numbers: NDArray[np.floating] | None = None
    tree: SearchTree | None = None

    @property
    def runners_up(self) -> list[list[tuple[int, float]]]:
        """For each id the likeliest symbols of its step as (id, probability), best first."""
        return [list(zip(*step, strict=True)) for step in zip(self.likeliest, self.shares, strict=True)]


# --- Places of an input


@dataclass
class JointPlaces:
    """The places of an input for all models of an ensemble.

    mask: (batch, places), True where a place is real; agreed: (batch,), True where all models have the same places
    (with different tokens they may not), so that the mean of their looks has a meaning; layout, tokens: how the places
    lie and their symbols, as far as the encoder knows; parent: the larger place of each;
    lower: the looks of that name are those of a layer below the last one, which do not count as the decoder's.
    """

    mask: Bool[ndarray, "batch places"]
    agreed: Bool[ndarray, " batch"]
    layout: Layout
    tokens: list[list[str]] | None = None
    lower: bool = False
    parent: Int[ndarray, "batch places"] | None = None

    def layout_of(self, row: int) -> dict[str, Any]:
        """How the real places of a row lie; `parts`: how many of them each larger place has, where there are any."""
        real = self.mask[row]
        layout = self.layout.to_dict(int(real.sum()))
        return layout if self.parent is None else layout | {"parts": np.bincount(self.parent[row, real]).tolist()}


def self_attention_name(layer: int) -> str:
    """The name of the self-attention of a decoder's layer (from 1); no input has it, since `output` is reserved."""
    return f"output.self-{layer}"


# --- The history of a search, as arrays with back-pointers


@dataclass
class SearchStep:
    """One step of the inputs that were still searched.

    Candidates are the continuations that were considered, slots the hypotheses before and after the step:
    tokens, log_probs: (inputs, candidates); parents: (inputs, candidates), the slot that each continues;
    added: (inputs, candidates), what language models add to the log-probability, if there are any;
    carried: (inputs, slots), the candidate that each slot continues with;
    runners_up, chances: (inputs, slots, likeliest), ids and log-probabilities;
    looks: {name: (inputs, slots, places)}, with heads (inputs, slots, heads, places); in self-attention there is one
    place more at each step;
    position: (batch,), the row of each input of the whole batch in these tensors;
    inputs: (inputs,), the numbers of the inputs in the whole batch;
    totals: (inputs, candidates), what a beam ranks candidates by, -inf for those that cannot be.
    """

    tokens: Int[ndarray, "inputs candidates"]
    log_probs: Float[ndarray, "inputs candidates"]
    parents: Int[ndarray, "inputs candidates"]
    carried: Int[ndarray, "inputs slots"]
    runners_up: Int[ndarray, "inputs slots likeliest"]
    chances: Float[ndarray, "inputs slots likeliest"]
    looks: dict[str, ndarray]
    position: Int[ndarray, " batch"]
    inputs: Int[ndarray, " inputs"]
    added: Float[ndarray, "inputs candidates"] | None = None
    totals: Float[ndarray, "inputs candidates"] | None = None


@dataclass
class Endings:
    """Where outputs ended: their input, step and candidate, and whether with `<eos>`."""

    inputs: Int[ndarray, " outputs"]
    steps: Int[ndarray, " outputs"]
    candidates: Int[ndarray, " outputs"]
    finished: Bool[ndarray, " outputs"]

    @classmethod
    def joined(cls, parts: list[Endings]) -> Endings:
        return cls(
            np.concatenate([part.inputs for part in parts]),
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.candidates for part in parts]),
            np.concatenate([part.finished for part in parts]),
        )


@dataclass
class Paths:
    """Outputs with all that is known of their steps, zeros after their ends.

    tokens, log_probs, added: (outputs, steps); runners_up, chances: (outputs, steps, likeliest);
    looks: {name: (outputs, steps, places)}, with heads (outputs, steps, heads, places).
    """

    tokens: Int[ndarray, "outputs steps"]
    log_probs: Float[ndarray, "outputs steps"]
    added: Float[ndarray, "outputs steps"]
    runners_up: Int[ndarray, "outputs steps likeliest"]
    chances: Float[ndarray, "outputs steps likeliest"]
    looks: dict[str, Float[ndarray, "outputs steps *heads _"]] = field(default_factory=dict)


@dataclass
class History:
    """The steps of one search over `rows` inputs."""

    rows: int
    runners_up: int
    steps: list[SearchStep] = field(default_factory=list)

    def add(
        self,
        inputs: Int[ndarray, " inputs"],
        *,
        tokens: Int[ndarray, "inputs candidates"],
        parents: Int[ndarray, "inputs candidates"],
        carried: Int[ndarray, "inputs slots"],
        log_probs: Float[ndarray, "inputs candidates"],
        likeliest: Likeliest,
        looks: dict[str, Float[ndarray, "rows *heads _"]],
        added: Float[ndarray, "inputs candidates"] | None = None,
        totals: Float[ndarray, "inputs candidates"] | None = None,
    ) -> None:
        """Add a step; inputs: the numbers of those still searched; log_probs: the model's own of the tokens;
        likeliest: the `runners_up` likeliest symbols of each slot; added: by language models; totals: of a beam."""
        count, slots = carried.shape
        position = np.zeros(self.rows, dtype=np.int64)
        position[inputs] = np.arange(count)
        ids, chances = (part.reshape(count, slots, -1) for part in (likeliest.ids, likeliest.log_probs))
        maps = {name: weights.reshape(count, slots, *weights.shape[1:]) for name, weights in looks.items()}
        self.steps.append(
            SearchStep(tokens, log_probs, parents, carried, ids, chances, maps, position, inputs, added, totals)
        )

    def backtrack(self, endings: Endings) -> Paths:
        """Follow the back-pointers of all outputs together, from the last step to the first."""
        outputs, length = len(endings.inputs), len(self.steps)
        first = self.steps[0]
        paths = Paths(
            np.zeros((outputs, length), dtype=np.int64),
            np.zeros((outputs, length), dtype=first.log_probs.dtype),
            np.zeros((outputs, length), dtype=np.float64),
            np.zeros((outputs, length, first.runners_up.shape[-1]), dtype=np.int64),
            np.zeros((outputs, length, first.chances.shape[-1]), dtype=first.chances.dtype),
            {
                name: np.zeros((outputs, length, *look.shape[2:]), dtype=look.dtype)
                for name, look in self.steps[-1].looks.items()
            },
        )
        candidates = endings.candidates.copy()
        for step in reversed(range(length)):
            there = np.flatnonzero(endings.steps >= step)
            inputs, record = endings.inputs[there], self.steps[step]
            at = record.position[inputs]
            slots = record.parents[at, candidates[there]]
            paths.tokens[there, step] = record.tokens[at, candidates[there]]
            paths.log_probs[there, step] = record.log_probs[at, candidates[there]]
            if record.added is not None:
                paths.added[there, step] = record.added[at, candidates[there]]
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

Number = TypeVar("Number", float, ndarray)


def normalised(log_probability: Number, length: int, options: SearchOptions) -> Number:
    """log_probability / length ** penalty, the length counting `<eos>`."""
    return log_probability / float(length**options.length_penalty)


def best_attainable(log_probability: ndarray, options: SearchOptions) -> ndarray:
    """The highest score of any continuation: all further symbols have probability 1, up to the maximum length.

    The coverage penalty is at most 0, so it cannot raise a score above this; what the internal language model takes off
    may raise it without a limit.
    """
    if options.language_model_internal:
        return np.full_like(log_probability, np.inf)
    return normalised(log_probability, options.max_length, options)


def covered(total: Float[ndarray, "*rows places"], mask: Bool[ndarray, "*#rows places"]) -> Float[ndarray, "*rows"]:
    """sum_j log(min(sum_t a_tj, 1)) over real places: 0 where each got a total weight of 1, below 0 otherwise."""
    return np.asarray((np.log(total.clip(OVERLOOKED, 1.0)) * mask).sum(-1))


def coverage_penalty_of(totals: dict[str, ndarray], masks: dict[str, ndarray], options: SearchOptions) -> ndarray:
    """The coverage penalty over all inputs that are attended to, to be added to a score."""
    parts = [covered(total, masks[name]) for name, total in totals.items()]
    return np.asarray(options.coverage_penalty * np.sum(parts, axis=0))


class Coverage:
    """The sums of looks of every hypothesis of a beam; does nothing where the coverage penalty is 0."""

    def __init__(self, places: Mapping[str, JointPlaces], options: SearchOptions):
        self._options = options
        self._masks = {name: joint.mask for name, joint in places.items() if not joint.lower}
        self._sums: dict[str, ndarray] = {}

    def look(
        self, looks: Mapping[str, Float[ndarray, "rows *heads _"]], inputs: Int[ndarray, " inputs"]
    ) -> Float[ndarray, "inputs slots"] | None:
        """Add the looks of a step (the mean over heads) and return the penalty of each hypothesis, 0 or below; None:
        there is none."""
        if self._options.coverage_penalty == 0:
            return None
        for name in self._masks:
            weights = looks[name] if looks[name].ndim == 2 else looks[name].mean(1)
            now = weights.reshape(len(inputs), -1, weights.shape[-1])
            self._sums[name] = now + self._sums[name] if name in self._sums else now
        return coverage_penalty_of(
            self._sums, {name: mask[inputs][:, None] for name, mask in self._masks.items()}, self._options
        )

    def select(self, rows: Int[ndarray, " chosen"]) -> None:
        """Continue with these hypotheses."""
        for name, total in self._sums.items():
            _, slots, places = total.shape
            self._sums[name] = total.reshape(-1, places)[rows].reshape(-1, slots, places)


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
                f"the models of this ensemble cut input {int(joint.agreed.argmin())} differently: set it to 0"
            )
