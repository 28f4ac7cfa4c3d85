"""What the faster ways of training bring, each beside the plain one in the same run.

- weight gradients of the loop over time taken in one product instead of one per step;
- the fused loop over time, which common decoders take by default;
- bfloat16 products (where the processor has them);
- no context in the recurrence (query current, no input feeding): the decoder runs over time in one call.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from _models import batch, model
from _timing import medians

import seq2see.cells
import seq2see.decoders.recurrent
from seq2see.decoders import RecurrentDecoder
from seq2see.deferred_gradients import DeferredProduct, plain_product
from seq2see.model import EncoderDecoder
from seq2see.training.optimizer import autocast, bfloat16_is_fast

rows = batch()


def training_pass(
    network: EncoderDecoder, *, fused: bool = True, hoisted: bool = True, precision: str = "float32"
) -> Callable[[], None]:
    if not fused:
        assert isinstance(network.decoder, RecurrentDecoder)
        network.decoder.loop = None

    def run() -> None:
        for module in (seq2see.cells, seq2see.decoders.recurrent):
            module.DeferredProduct = DeferredProduct if hoisted else (lambda steps: plain_product)  # type: ignore[attr-defined]
        with autocast(precision, torch.device("cpu")):
            step, ready = network.forward_batch(rows)
            loss = network.head.loss(step, ready, rows.target.ids, mask=rows.target.mask)  # type: ignore[union-attr]
        network.zero_grad()
        loss.backward()

    return run


ways = {
    "step by step": training_pass(model(), fused=False, hoisted=False),
    "one product for all steps": training_pass(model(), fused=False),
    "fused loop": training_pass(model()),
    "without input feeding": training_pass(model("attention.query=current", "attention.input_feeding=false")),
}
if bfloat16_is_fast(torch.device("cpu")):
    ways["fused loop, bfloat16"] = training_pass(model(), precision="bfloat16")
seconds = medians(ways)
for name, value in seconds.items():
    print(f"{name:28} {1000 * value:7.1f} ms  {seconds['step by step'] / value:5.2f} x")
