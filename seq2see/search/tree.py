"""The tree of a beam search: every continuation that was considered for an input, and what became of it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from seq2see.data.vocabulary import EOS
from seq2see.looks import NodeState
from seq2see.search.hypotheses import History, SearchTree

MAX_NODES = 4096
"""Nodes of one tree. Of a larger one the first steps are kept, each with all its nodes."""


def search_trees(history: History) -> list[SearchTree]:
    """The tree of each input, from the history of its beam search."""
    lengths = np.zeros(history.rows, dtype=np.int64)
    for number, step in enumerate(history.steps, start=1):
        lengths[step.inputs] = number
    return [_tree(history, row, int(length)) for row, length in enumerate(lengths)]


def _tree(history: History, row: int, length: int) -> SearchTree:
    tree = SearchTree()
    slots: Int[ndarray, " slots"] = np.full(history.steps[0].carried.shape[1], -1)
    """The node of each hypothesis before the step."""
    full = False
    for number, step in enumerate(history.steps[:length]):
        at = int(step.position[row])
        assert step.totals is not None, "only a beam search has a tree"
        possible = np.flatnonzero(step.totals[at] > -np.inf)
        full = full or len(tree.ids) + len(possible) > MAX_NODES
        if full:
            tree.left_out += len(possible)
            continue
        carried = step.carried[at]
        numbers = np.full(step.tokens.shape[1], -1)
        numbers[possible] = len(tree.ids) + np.arange(len(possible))
        going: NodeState = "kept" if number + 1 < length else "stopped"
        for candidate in possible.tolist():
            token = int(step.tokens[at, candidate])
            ends = token == EOS
            tree.ids.append(token)
            tree.parents.append(int(slots[step.parents[at, candidate]]))
            tree.log_probs.append(float(step.log_probs[at, candidate]))
            if ends:
                tree.states.append("finished" if candidate < len(carried) else "pruned")
            else:
                tree.states.append(going if candidate in carried else "pruned")
        slots = numbers[carried]
    return tree
