"""How near a training step comes to its matrix products alone: python benchmarks/roofline.py --threads 2

The model is that of benchmarks/peers (embeddings 256, bidirectional GRU 256, GRU 512, additive attention, 8,050 words),
a batch has 80 sentences as long as those of multi30k. The roofline is the time of the step's products, forward and
backward, each once and as large as it can be computed: what does not depend on the recurrence is one product for all
steps, and so is the gradient of every weight; only what the loop over time needs is one product per step. Each is made
by whichever is faster on this machine, torch's own product or oneDNN's with a packed weight. Nothing else of a step
(gates, tanh and softmax, the loss, dropout, Adam) is in the roofline.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from _timing import medians
from torch import Tensor, nn

from seq2see.data.batches import Batch, Sequences
from seq2see.model import EncoderDecoder, Sizes
from seq2see.packed_weights import fixed_product
from seq2see.packed_weights import product as packed_product
from seq2see.recipe import load_recipe
from seq2see.training.optimizer import autocast, bfloat16_is_fast, build_optimizer

ROWS, PLACES, STEPS = 80, 13, 14
"""Sentences of a batch; mean words of multi30k, the target's with its end."""
SOURCE_WORDS, TARGET_WORDS = 6198, 8050
EMBEDDING, ENCODER, DECODER = 256, 256, 512
STATES = 2 * ENCODER
DROPOUT = 0.3

Call = Callable[[], Tensor]


def recipe_overrides() -> list[str]:
    parts = ["encoder", "encoder.embedding", "decoder", "decoder.embedding"]
    return [
        *(f"{part}.dropout={DROPOUT}" for part in parts),
        f"attention.size={DECODER}",
        "decoder.tied=false",
        f"decoder.readout={DECODER}",
        "loss.label_smoothing=0",
    ]


def whole_step(precision: str) -> Callable[[], None]:
    """An update as the trainer makes it: loss, gradients, clipping, Adam."""
    torch.manual_seed(1)
    recipe = load_recipe("translation", overrides=recipe_overrides())
    network = EncoderDecoder(recipe, Sizes({"source": SOURCE_WORDS}, TARGET_WORDS)).train()
    optimizer = build_optimizer(recipe.training, network)
    source, target = words(SOURCE_WORDS, PLACES), words(TARGET_WORDS, STEPS)
    batch = Batch({"source": source}, target, list(range(ROWS)))

    def run() -> None:
        with autocast(precision, torch.device("cpu")):
            step, ready = network.forward_batch(batch)
            loss = network.head.loss(step, ready, target.ids, mask=target.mask)
        optimizer.zero_grad(set_to_none=True)
        (loss / target.ids.numel()).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()

    return run


def words(size: int, length: int) -> Sequences:
    ids = torch.randint(4, size, (ROWS, length))
    return Sequences(ids, torch.ones_like(ids, dtype=torch.bool))


# ---------------------------------------------------------------- the products


def product(dtype: torch.dtype, rows: int, width: int, out: int, *, loop: int = 1) -> list[Call]:
    """y = x W', dx = dy W and dW = dy' x of one weight (out, width).

    loop: how many times forward and dx are computed with these rows, where each waits for the one before; dW is always
    one product of all of them.
    """
    x, dy = torch.randn(rows, width).to(dtype), torch.randn(rows, out).to(dtype)
    weight = torch.randn(out, width).to(dtype)
    all_x, all_dy = torch.randn(rows * loop, width).to(dtype), torch.randn(rows * loop, out).to(dtype)
    multiply, multiply_back = fixed_product(weight), fixed_product(weight.t())
    forward = faster(lambda: torch.mm(x, weight.t()), lambda: multiply(x))
    backward = faster(lambda: torch.mm(dy, weight), lambda: multiply_back(dy))
    by_weight = faster(lambda: torch.mm(all_dy.t(), all_x), lambda: packed_product(all_x.t(), all_dy.t()))
    return [*[forward, backward] * loop, by_weight]


def faster(*calls: Call) -> Call:
    """The one that takes the least time, the best of four."""

    def seconds(call: Call) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return min(calls, key=lambda call: min(seconds(call) for _ in range(4)))


def weighted_means(dtype: torch.dtype) -> list[Call]:
    """The context of every step and the gradient of its weights; the gradient of the places in one product."""
    weights, places = torch.rand(ROWS, 1, PLACES).to(dtype), torch.randn(ROWS, PLACES, STATES).to(dtype)
    context = torch.randn(ROWS, 1, STATES).to(dtype)
    all_weights, contexts = torch.rand(ROWS, STEPS, PLACES).to(dtype), torch.randn(ROWS, STEPS, STATES).to(dtype)
    each: list[Call] = [
        lambda: torch.bmm(weights, places),
        lambda: torch.bmm(context, places.transpose(1, 2)),
    ]
    return [*each * STEPS, lambda: torch.bmm(all_weights.transpose(1, 2), contexts)]


def products(dtype: torch.dtype) -> Callable[[], None]:
    """All products of a step, in no particular order."""
    gates = 3
    encoder = [
        *product(dtype, ROWS * PLACES, EMBEDDING, gates * ENCODER),
        *product(dtype, ROWS, ENCODER, gates * ENCODER, loop=PLACES),
    ]
    calls = [
        *encoder,
        *encoder,  # the other direction
        *product(dtype, ROWS, STATES, DECODER),  # s_0
        *product(dtype, ROWS * PLACES, STATES, DECODER),  # keys of the places
        *product(dtype, ROWS, DECODER, DECODER, loop=STEPS),  # queries
        *product(dtype, ROWS * PLACES, DECODER, 1, loop=STEPS),  # energies
        *weighted_means(dtype),
        *product(dtype, ROWS * STEPS, EMBEDDING, gates * DECODER),  # embeddings into the gates
        *product(dtype, ROWS, STATES, gates * DECODER, loop=STEPS),  # contexts into the gates
        *product(dtype, ROWS, DECODER, gates * DECODER, loop=STEPS),  # states into the gates
        *product(dtype, ROWS * STEPS, DECODER + STATES + EMBEDDING, DECODER),  # readout
        *product(dtype, ROWS * STEPS, DECODER, TARGET_WORDS),  # output layer
    ]

    def run() -> None:
        for call in calls:
            call()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options, _ = parser.parse_known_args()  # `make bench ARGS=...` tells all scripts the same
    torch.set_num_threads(options.threads)
    precisions = {"float32": torch.float32}
    if bfloat16_is_fast(torch.device("cpu")):
        precisions["bfloat16"] = torch.bfloat16
    ways: dict[str, Callable[[], None]] = {}
    for precision, dtype in precisions.items():
        ways |= {f"{precision}: products alone": products(dtype), f"{precision}: whole step": whole_step(precision)}
    seconds = medians(ways, rounds=options.rounds)
    print(f"{options.threads} threads, {ROWS} sentences, {PLACES} places, {STEPS} steps (goal: 85 % of the roofline)")
    for precision in precisions:
        alone, step = seconds[f"{precision}: products alone"], seconds[f"{precision}: whole step"]
        tokens = ROWS * STEPS / step
        print(
            f"{precision:9} products alone {1000 * alone:7.1f} ms   whole step {1000 * step:7.1f} ms   "
            f"{alone / step:5.1%} of the roofline   {tokens:,.0f} target tokens/s"
        )


if __name__ == "__main__":
    main()
