"""Predictions read both directions at once, with packed weights: the places and summaries are those of `read`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see import packed_weights
from seq2see.data.batches import Sequences
from seq2see.encoders import RecurrentEncoder, layers
from seq2see.encoders.recurrent import RecurrentEncoderSettings
from seq2see.packed_weights import PackedWeights

SYMBOLS = 30


def build(**settings: Any) -> RecurrentEncoder:
    torch.manual_seed(3)
    given = {"size": 64, "embedding": {"size": 64}, **settings}
    return RecurrentEncoder(RecurrentEncoderSettings(**given), symbols=SYMBOLS).eval()


def column(*lengths: int) -> Sequences:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Sequences(torch.randint(4, SYMBOLS, mask.shape) * mask, mask)


def compare(encoder: RecurrentEncoder, packed: PackedWeights) -> None:
    for lengths in ((5,), (4, 4, 4), (2, 7, 0, 1, 7, 3), (0,)):
        read = column(*lengths)
        with torch.inference_mode():
            plain, fast = encoder.read(read), encoder.predict(read, packed)
        torch.testing.assert_close(fast.places.states, plain.places.states, atol=1e-5, rtol=0)
        torch.testing.assert_close(fast.summary, plain.summary, atol=1e-5, rtol=0)
        assert fast.places.mask is read.mask


@pytest.mark.parametrize("stacked", [1, 3])
@pytest.mark.parametrize("largest", [0, 1 << 25])
def test_it_gives_what_reading_gives(stacked: int, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a table of the symbols' products, and without; again when weights were changed."""
    monkeypatch.setattr(packed_weights, "LARGEST_TABLE", largest)
    encoder, packed = build(layers=stacked), PackedWeights()
    compare(encoder, packed)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1)
    compare(encoder, packed)


@pytest.mark.parametrize(
    "settings",
    [{"cell": "lstm"}, {"bidirectional": False}, {"reset": "before"}, {"embedding": {"kind": "one-hot"}}],
    ids=str,
)
def test_others_are_read_by_their_cells(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "read_both_ways", None)
    compare(build(**settings), PackedWeights())


def test_an_encoder_that_reads_in_its_own_way_predicts_in_it() -> None:
    """A plug-in that extends the class and replaces `forward`: a prediction must not go past it."""

    class Doubled(RecurrentEncoder):
        def forward(self, *inputs: Any, **options: Any) -> Any:
            read = super().forward(*inputs, **options)
            return replace(read, summary=2 * read.summary)

    torch.manual_seed(3)
    encoder = Doubled(RecurrentEncoderSettings(size=64, embedding={"size": 64}), symbols=SYMBOLS).eval()
    compare(encoder, PackedWeights())
