"""Self-attention over texts of n words, forwards and backwards: weights that are kept for the way back, beside torch's
fused kernel, which computes them again there. Training keeps them in bfloat16 alone (`FEW` in self_attention.py).

About 4,000 words a batch, 4 heads of 64 numbers, the last tenth of every second row padding; processor seconds of one
thread, the fewest of seven.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from _timing import least
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from seq2see.attention.self_attention import kept_weights

WORDS, HEADS, PART = 4096, 4, 64
LENGTHS = (8, 12, 16, 24, 32, 48, 64, 128, 256, 384, 512)


def seconds(length: int, dtype: torch.dtype) -> dict[str, float]:
    """Of one pass forwards and backwards, by the way it takes."""
    rows = max(1, WORDS // length)
    projected = [torch.randn(rows, length, HEADS, PART, dtype=dtype, requires_grad=True) for _ in range(3)]
    leaves = [vectors.transpose(1, 2) for vectors in projected]
    visible = torch.ones(rows, 1, 1, length, dtype=torch.bool)
    visible[::2, ..., length - length // 10 :] = False
    upstream = torch.randn(rows, HEADS, length, PART, dtype=dtype)

    def passes(means: Callable[..., Tensor]) -> None:
        contexts = means(*leaves, visible)
        torch.autograd.grad(contexts, projected, upstream, retain_graph=True)

    return least({"kept": lambda: passes(kept_weights), "fused": lambda: passes(scaled_dot_product_attention)})


print("| words | kept, ms | fused, ms | fused takes | bfloat16: kept, ms | fused, ms | fused takes |")
print("|---|---|---|---|---|---|---|")
for length in LENGTHS:
    cells = []
    for dtype in (torch.float32, torch.bfloat16):
        found = seconds(length, dtype)
        cells += [f"{1e3 * found[way]:.1f}" for way in ("kept", "fused")] + [f"{found['fused'] / found['kept']:.2f} x"]
    print(f"| {length} | {' | '.join(cells)} |", flush=True)
