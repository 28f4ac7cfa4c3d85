"""What happened at each step, kept as tensors with back-pointers; outputs are read off once, at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class Moment:
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
    moments: list[Moment] = field(default_factory=list)

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
            Moment(tokens, chosen, parents, carried, likeliest.indices, likeliest.values, maps, position)
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
