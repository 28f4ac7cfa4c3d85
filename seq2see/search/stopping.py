"""When an input's beam is over.

With length normalisation an output that finishes first need not be the best: a longer one may have the higher
score, though never the higher log-probability. So the first `<eos>` does not end a search. Two things do:

- nothing left can win: the outputs found fill the n-best list, and even the likeliest live hypothesis, were all its
  further symbols certain and its length the longest allowed, would not enter it. This never costs a result;
- enough was found: beam * patience outputs have finished. Every one of them was among the best of its step, so what
  is still going has fallen behind `beam` others; a patience of math.inf leaves this rule out, and the search is
  then exact over what the beam keeps, at the cost of steps up to max_length where the model is unsure.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.search.options import SearchOptions
from seq2see.search.scoring import best_attainable


def over(
    live: Float[Tensor, " inputs"],
    worst_kept: Float[Tensor, " inputs"],
    count: Int[Tensor, " inputs"],
    options: SearchOptions,
) -> Bool[Tensor, " inputs"]:
    """live: log-probability of the likeliest live hypothesis, -inf where none is left; worst_kept: the lowest score of
    the n-best list so far, -inf where it is not full; count: outputs that have finished."""
    hopeless = worst_kept >= best_attainable(live, options)
    return hopeless | (count >= options.beam * options.patience) | (live == -torch.inf)
