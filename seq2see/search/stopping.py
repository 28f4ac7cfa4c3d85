"""When an input's beam is over.

With length normalisation an output that finishes first need not be the best: a longer one may have the higher
score, though never the higher log-probability. So the first `<eos>` does not end a search. Two things do:

- nothing left can win: the outputs found fill the n-best list, and even the likeliest live hypothesis, were all its
  further symbols certain and its length the longest allowed, would not enter it. This never costs a result;
- enough was found: beam * patience outputs have finished, and the best of them scores at least what the likeliest live
  hypothesis would if it ended here. (A confident model has few real candidates at a step, and outputs that break off
  fill the rest: their number alone says nothing.) A patience of math.inf leaves this rule out, and the search is then
  exact over what the beam keeps, at the cost of steps up to max_length where the model is unsure.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.search.options import SearchOptions
from seq2see.search.scoring import best_attainable, normalised


def over(
    live: Float[Tensor, " inputs"],
    kept: Float[Tensor, "inputs n_best"],
    count: Int[Tensor, " inputs"],
    options: SearchOptions,
    *,
    length: int,
) -> Bool[Tensor, " inputs"]:
    """live: log-probability of the likeliest live hypothesis of so many symbols, -inf where none is left; kept: scores
    of the n-best list so far, best first, -inf where it is not full; count: outputs that have finished."""
    hopeless = kept[:, -1] >= best_attainable(live, options)
    behind = kept[:, 0] >= normalised(live, length, options)
    return hopeless | (behind & (count >= options.beam * options.patience)) | (live == -torch.inf)
