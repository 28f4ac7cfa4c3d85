"""The part of the loss that reads the output off the encoder's places (CTC), and the rows it has no place for."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.data.batches import EOS
from seq2see.decoders import Ready
from seq2see.model import EncoderDecoder

LEFT_OUT, READ = "ctc_left_out", "ctc_rows"


def along(
    model: EncoderDecoder,
    ready: Ready,
    targets: Int[Tensor, "rows steps"],
    mask: Bool[Tensor, "rows steps"],
    state: dict[str, float],
) -> Float[Tensor, ""]:
    """-sum log P of the targets along the places; `state` counts the rows, and those that are too long for theirs."""
    assert model.ctc is not None
    assert model.read_along is not None
    symbols = mask & (targets != EOS)
    found = model.ctc.loss(ready.memory.places[model.read_along], model.head.readable(targets), mask=symbols)
    state[READ] = state.get(READ, 0) + len(targets)
    state[LEFT_OUT] = state.get(LEFT_OUT, 0) + found.left_out
    return found.total


def left_out(state: dict[str, float]) -> str | None:
    """What is to be said at the end of a run; nothing where every row had places enough."""
    if not state.get(LEFT_OUT):
        return None
    share = state[LEFT_OUT] / state[READ]
    return f"{share:.1%} of the rows read had fewer places than their output takes, and no part in loss.ctc"
