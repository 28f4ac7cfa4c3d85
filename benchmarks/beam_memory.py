"""Beams share their input's memory: attention of 5 beams over memory as it is, beside memory repeated for each beam."""

from __future__ import annotations

import torch
from _timing import medians

from seq2see.attention import Attention, build_score
from seq2see.memory import Places

BATCH, BEAMS, PLACES, SIZE = 32, 5, 40, 512
torch.manual_seed(1)
attention = Attention(build_score("general", SIZE, SIZE))
states, mask = torch.randn(BATCH, PLACES, SIZE), torch.ones(BATCH, PLACES, dtype=torch.bool)
queries = torch.randn(BATCH, BEAMS, SIZE)
shared = attention.prepare(Places(states, mask))
flat = queries.view(BATCH * BEAMS, 1, SIZE)


@torch.inference_mode()
def as_it_is() -> None:
    attention(queries, shared)


@torch.inference_mode()
def repeated() -> None:
    rows = torch.arange(BATCH).repeat_interleave(BEAMS)
    attention(flat, shared.select(rows))


seconds = medians({"repeated": repeated, "shared": as_it_is}, rounds=50)
print(f"one look of {BEAMS} beams over {PLACES} places: shared {1e3 * seconds['shared']:.2f} ms")
print(f"memory repeated per beam takes {seconds['repeated'] / seconds['shared']:.1f} times as long")
