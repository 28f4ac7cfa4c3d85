"""Hypotheses as answers: text, tokens with their probabilities, and looks, without torch and without a recipe."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from seq2see.data.vocabulary import EOS, SOS, SPECIALS, UNK, Vocabulary
from seq2see.looks import Alternative, BeamTree, Layout, Looks, Token, TreeNode
from seq2see.search.hypotheses import Hypothesis


@dataclass
class AnswerWriter:
    """Writes hypotheses of one model, or of an ensemble, as answers.

    text_of: symbols and their ids, `<eos>` included, as text; looked_at: the inputs that are attended to, the default
    first; heads: of that attention; hard: one place is chosen at each step; reason: why there are no looks, if there
    are none.
    """

    vocabulary: Vocabulary
    text_of: Callable[[Sequence[str], Sequence[int]], str]
    looked_at: Sequence[str]
    heads: int = 1
    hard: bool = False
    reason: str = ""

    def symbols(self, hypothesis: Hypothesis, *, replace_unknown: bool = False) -> list[str]:
        """The symbols of a hypothesis, without `<eos>`."""
        symbols = self.vocabulary.decode(hypothesis.ids, hypothesis.words)
        if replace_unknown and UNK in hypothesis.ids:
            self._put_in(symbols, hypothesis, looks_of(hypothesis, symbols, self.looked_at, self.reason))
        return [symbol for symbol, i in zip(symbols, hypothesis.ids, strict=True) if i != EOS]

    def alternative(self, hypothesis: Hypothesis, *, replace_unknown: bool = False, alone: bool = True) -> Alternative:
        """A hypothesis with its text, tokens and looks. replace_unknown: `<unk>` becomes the input's symbol that was
        most looked at; alone: it is of one model, not of an ensemble."""
        symbols = self.vocabulary.decode(hypothesis.ids, hypothesis.words)
        looks = looks_of(hypothesis, symbols, self.looked_at, self.reason)
        if replace_unknown:
            self._put_in(symbols, hypothesis, looks)
        if alone and self.hard:
            looks.chosen = self._chosen(looks)
        names = iter(self.vocabulary.decode([i for step in hypothesis.likeliest for i in step], hypothesis.words))
        tokens = [
            Token(symbol, math.exp(log_prob), [(next(names), share) for share in shares])
            for symbol, log_prob, shares in zip(symbols, hypothesis.log_probs, hypothesis.shares, strict=True)
        ]
        looks.probabilities = [token.probability for token in tokens]
        text = self.text_of(symbols, hypothesis.ids)
        return Alternative(text, hypothesis.score, hypothesis.log_probability, tokens, looks)

    def tree(self, hypotheses: Sequence[Hypothesis]) -> BeamTree | None:
        """The beam tree of an input with its symbols, if asked for; hypotheses: those returned, best first."""
        search_tree = hypotheses[0].tree
        if search_tree is None:
            return None
        symbols = self.vocabulary.decode(search_tree.ids, hypotheses[0].words)
        tree = BeamTree(left_out=search_tree.left_out)
        numbers: dict[tuple[int, int], int] = {}
        parts = zip(
            search_tree.ids, symbols, search_tree.parents, search_tree.log_probs, search_tree.states, strict=True
        )
        for number, (i, symbol, parent, log_prob, state) in enumerate(parts):
            total = log_prob + (tree.nodes[parent].log_probability if parent >= 0 else 0.0)
            tree.nodes.append(TreeNode(symbol, parent, math.exp(log_prob), total, state))
            numbers[parent, i] = number
        for rank, hypothesis in enumerate(hypotheses):
            node: int | None = -1
            for i in hypothesis.ids:
                node = None if node is None else numbers.get((node, i))
            if node is not None and node >= 0:
                tree.nodes[node].output = rank
        return tree

    def _put_in(self, symbols: list[str], hypothesis: Hypothesis, looks: Looks) -> None:
        """Replace unknown symbols by those of the input that were most looked at, in place."""
        if not looks.maps or looks.name not in looks.inputs or looks.name in looks.rows:
            return
        where = looks.weights
        for t, i in enumerate(hypothesis.ids):
            if i == UNK and where.shape[1]:
                symbols[t] = looks.inputs[looks.name][int(np.argmax(where[t]))]
        looks.outputs = symbols

    def _chosen(self, looks: Looks) -> dict[str, list[int]]:
        """The place that hard attention chose at each step, the likeliest; none with several heads, which choose
        apart."""
        if self.heads > 1:
            return {}
        layers = tuple(f"{name}.layer-" for name in self.looked_at)
        return {
            name: weights.argmax(1).tolist()
            for name, weights in looks.maps.items()
            if (name in self.looked_at or name.startswith(layers)) and weights.ndim == 2 and weights.shape[1]
        }


def looks_of(hypothesis: Hypothesis, outputs: list[str], looked_at: Sequence[str], reason: str) -> Looks:
    """The attention of a hypothesis, as a record that needs no model; reason: why there is none, if so."""
    if not (looked_at or hypothesis.inner or hypothesis.inward):
        return Looks(outputs=outputs, reason=reason)
    looks = Looks(
        {**hypothesis.looks, **hypothesis.maps}, dict(hypothesis.places), list(outputs), dict(hypothesis.layouts)
    )
    if not (looks.maps or hypothesis.inner or hypothesis.inward):
        looks.reason = "the models of this ensemble divide the input into different places: looks have no mean"
    looks.default = next(iter(looked_at), None)
    for name, layout in looks.layouts.items():
        looks.inputs.setdefault(name, grid_names(layout))
    for name, inner in hypothesis.inner.items():
        title = f"{name} (encoder)" if name in looks.maps else name
        looks.maps[title], looks.layouts[title] = inner.weights, inner.layout
        looks.inputs[title] = inner.inputs or [str(place + 1) for place in range(inner.weights.shape[-1])]
        looks.rows[title] = inner.asking or [str(row + 1) for row in range(inner.weights.shape[-2])]
    for name, weights in hypothesis.inward.items():
        read = [SPECIALS[SOS], *outputs[:-1]]
        looks.maps[name], looks.rows[name], looks.inputs[name] = weights, read, read
        looks.layouts[name] = Layout("tokens").to_dict(len(read))
    return looks


def grid_names(layout: Mapping[str, Any]) -> list[str]:
    """Names of places that are not symbols: cells by row and column, others by number, from 1.

    >>> grid_names({"kind": "grid", "shape": [2, 2]}), grid_names({"kind": "frames", "shape": [2]})
    (['1,1', '1,2', '2,1', '2,2'], ['1', '2'])
    """
    ranges = (range(1, size + 1) for size in layout["shape"])
    return [",".join(map(str, place)) for place in product(*ranges)]
