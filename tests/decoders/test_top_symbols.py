"""The likeliest symbols are those of the whole distribution, in one pass over V and in two."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see import packed_weights
from seq2see.decoders import Ready, SoftmaxHead, Step
from seq2see.decoders.records import State
from seq2see.decoders.top_symbols import FEW_ROWS, largest, top_symbols
from seq2see.packed_weights import PackedWeights, Rounded, is_packable

SIZE = 64
pytestmark = pytest.mark.skipif(
    torch.backends.quantized.engine not in ("x86", "fbgemm") or not is_packable(torch.randn(64, 64)),
    reason="this torch cannot round weights",
)


def build(symbols: int, *, scale: float = 1.0, readout: int = 0) -> SoftmaxHead:
    torch.manual_seed(symbols)
    head = SoftmaxHead(SIZE, symbols, readout=readout)
    torch.nn.init.normal_(head.V, std=scale)
    torch.nn.init.normal_(head.c)
    return head.eval()


def whole(head: SoftmaxHead, features: Tensor) -> Tensor:
    """log P of all symbols, from logits in double precision."""
    step = Step(State(len(features)), features.double())
    return head.double().log_probs(step, Ready(len(features)))


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small weights are rounded too."""
    monkeypatch.setattr(packed_weights, "LARGE", 0)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("rows", [1, FEW_ROWS, FEW_ROWS + 1])
@pytest.mark.parametrize("symbols", [5, 20, 100, 500, 3001])
@pytest.mark.parametrize("scale", [0.05, 0.5])
def test_they_are_those_of_the_whole_distribution(rows: int, symbols: int, scale: float) -> None:
    with torch.inference_mode(False), torch.no_grad():
        head, features = build(symbols, scale=scale, readout=SIZE), torch.randn(rows, SIZE)
        ids, log_probs = top_symbols(head, head.read_out(features), Ready(rows, packed=PackedWeights()), 12)
        every = whole(head, features)
        wanted = every.topk(min(12, symbols))
    assert ids.tolist() == wanted.indices.tolist()
    torch.testing.assert_close(log_probs, wanted.values, atol=5e-5, rtol=0)


@pytest.mark.usefixtures("_small")
def test_where_rounding_could_decide_the_whole_product_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """All symbols are nearly equal: no number of candidates is enough."""
    products: list[str] = []
    linear = PackedWeights.linear

    def counted(self: PackedWeights, *arguments: Any) -> Tensor:
        products.append("exact")
        return linear(self, *arguments)

    with torch.no_grad():
        head = build(500)
        head.V.copy_(head.V[:1] + 1e-6 * torch.randn(500, SIZE))
        head.c.zero_()
        features, packed = torch.randn(2, SIZE), PackedWeights()
        monkeypatch.setattr(PackedWeights, "linear", counted)
        _, log_probs = top_symbols(head, head.read_out(features), Ready(2, packed=packed), 3)
        assert products == ["exact"]
        torch.testing.assert_close(log_probs, whole(head, features).topk(3).values)
        sharp = build(500)
        top_symbols(sharp, sharp.read_out(features), Ready(2, packed=packed), 3)
        assert products == ["exact"], "an ordinary distribution takes two passes"


@pytest.mark.usefixtures("_small")
def test_the_error_of_rounding_is_bounded() -> None:
    with torch.no_grad():
        weight, bias, x = 3 * torch.randn(300, SIZE), torch.randn(300), torch.randn(50, SIZE)
        rounded = PackedWeights().rounded(weight)
        assert isinstance(rounded, Rounded)
        exact = x.double() @ weight.double().t() + bias.double()
        off = (rounded.linear(x, bias) - exact).abs()
        assert (off <= rounded.error * x.norm(dim=1, keepdim=True)).all()
        assert off.max() > 0


@pytest.mark.usefixtures("_small")
def test_numbers_beyond_half_precision_are_not_rounded() -> None:
    with torch.no_grad():
        assert PackedWeights().rounded(torch.full((100, SIZE), 1e6)) is None


@pytest.mark.parametrize("symbols", [12, 100, 700, 3001])
@pytest.mark.parametrize("rows", [FEW_ROWS, FEW_ROWS + 5])
def test_the_largest_are_those_of_a_sort(symbols: int, rows: int) -> None:
    values = torch.randn(rows, symbols)
    values[3, ::2] = -torch.inf
    ids, found = largest(values, 5)
    torch.testing.assert_close(found, values.topk(5).values)
    torch.testing.assert_close(values.gather(1, ids), found)


def test_small_weights_are_not_rounded() -> None:
    with torch.no_grad():
        assert PackedWeights().rounded(torch.randn(100, SIZE)) is None
