"""Packed weights multiply as plain ones do, and follow what happens to the weights."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import linear

from seq2see.packed_weights import FEWEST, PackedWeights, fixed_product, is_packable, product

torch_packs = pytest.mark.skipif(not is_packable(torch.randn(64, 64)), reason="this torch cannot pack weights")


@pytest.mark.parametrize("rows", [(1,), (5,), (64,), (3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_the_usual_ones(rows: tuple[int, ...], bias: bool) -> None:
    weight, added = torch.randn(101, 64), torch.randn(101) if bias else None
    x = torch.randn(*rows, 64)
    with torch.inference_mode():
        torch.testing.assert_close(PackedWeights().linear(x, weight, added), linear(x, weight, added))


@torch_packs
def test_a_weight_that_was_trained_on_is_packed_anew() -> None:
    packed, x = PackedWeights(), torch.randn(2, 64)
    weight = torch.nn.Parameter(torch.randn(64, 64))
    with torch.no_grad():
        before = packed(x, weight)
    (x @ weight.t()).sum().backward()
    torch.optim.SGD([weight], lr=0.5).step()
    with torch.no_grad():
        after = packed(x, weight)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, linear(x, weight))


@torch_packs
def test_a_weight_that_was_changed_behind_autograds_back_is_packed_anew_by_the_next_search() -> None:
    packed, x, weight = PackedWeights(), torch.randn(2, 64), torch.nn.Parameter(torch.randn(64, 64))
    with torch.no_grad():
        packed(x, weight)
        weight.data.mul_(2)
        packed.refresh()
        torch.testing.assert_close(packed(x, weight), linear(x, weight))


@torch_packs
def test_a_slice_is_not_taken_for_the_whole() -> None:
    packed, weight, x = PackedWeights(), torch.randn(128, 64), torch.randn(2, 64)
    with torch.no_grad():
        assert packed(x, weight).shape == (2, 128)
        torch.testing.assert_close(packed(x, weight[:96]), linear(x, weight[:96]))


def test_what_cannot_be_packed_is_multiplied_all_the_same() -> None:
    packed, small = PackedWeights(), torch.randn(3, 5)
    assert small.numel() < FEWEST
    with torch.no_grad():
        torch.testing.assert_close(packed(torch.ones(2, 5), small), linear(torch.ones(2, 5), small))
        wide = torch.randn(64, 64, dtype=torch.float64)
        torch.testing.assert_close(packed(torch.ones(2, 64).double(), wide), linear(torch.ones(2, 64).double(), wide))
    x = torch.ones(2, 64, requires_grad=True)
    packed(x, torch.randn(64, 64)).sum().backward()
    assert x.grad is not None


def test_where_torch_cannot_pack_products_are_the_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2see.packed_weights.is_packable", lambda weight: False)
    weight, x = torch.randn(64, 64), torch.randn(2, 64)
    with torch.no_grad():
        torch.testing.assert_close(PackedWeights()(x, weight), linear(x, weight), rtol=0, atol=0)
    torch.testing.assert_close(fixed_product(weight)(x), linear(x, weight))
    torch.testing.assert_close(product(x, weight), linear(x, weight))


@pytest.mark.parametrize("width", [8, 64])
def test_several_weights_are_one_product(width: int) -> None:
    """Weights that are large enough to be packed, and smaller ones."""
    packed, x = PackedWeights(), torch.randn(3, width)
    weights = [torch.nn.Parameter(torch.randn(rows, width)) for rows in (96, 64)]
    with torch.no_grad():
        torch.testing.assert_close(packed.joint(x, weights), torch.cat([linear(x, weight) for weight in weights], 1))
        weights[1].mul_(2)
        torch.testing.assert_close(packed.joint(x, weights), torch.cat([linear(x, weight) for weight in weights], 1))
        weights[0].data.mul_(2)
        packed.refresh()
        torch.testing.assert_close(packed.joint(x, weights), torch.cat([linear(x, weight) for weight in weights], 1))


@torch_packs
def test_columns_and_transposes_are_weights_of_their_own() -> None:
    packed, weight, x = PackedWeights(), torch.randn(128, 128), torch.randn(2, 128)
    with torch.no_grad():
        for part in (weight, weight.t(), weight[:, :64]):
            torch.testing.assert_close(packed(x[:, : part.shape[1]], part), linear(x[:, : part.shape[1]], part))


def test_a_table_of_products_follows_its_weights() -> None:
    packed, vectors, weights = PackedWeights(), torch.randn(7, 64), [torch.randn(rows, 64) for rows in (96, 5)]
    biases = [torch.randn(96), torch.randn(5)]
    with torch.no_grad():
        for change in (lambda: None, lambda: biases[0].mul_(2), lambda: vectors.add_(1), lambda: weights[1].zero_()):
            change()
            table = packed.table(vectors, weights, biases)
            assert table is not None
            torch.testing.assert_close(table, linear(vectors, torch.cat(weights), torch.cat(biases)))
        assert packed.table(vectors, weights, biases) is table


@pytest.mark.parametrize("precision", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("size", [5, 96])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_a_fixed_weight_are_the_usual_ones(precision: torch.dtype, size: int, transposed: bool) -> None:
    """Also those of a weight that lies in columns, and of one too small to be packed."""
    weight = torch.randn(size, 64 if size > 5 else 3).to(precision)
    weight = weight.t() if transposed else weight
    x = torch.randn(7, weight.shape[1], dtype=torch.promote_types(precision, torch.float32))
    multiplied = fixed_product(weight)(x)
    assert multiplied.dtype == x.dtype
    torch.testing.assert_close(multiplied, linear(x.to(precision), weight).to(x.dtype))
    bias = torch.randn(len(weight)).to(precision)
    with_bias = fixed_product(weight, bias)(x)
    torch.testing.assert_close(with_bias, linear(x.to(precision), weight, bias).to(x.dtype))
    torch.testing.assert_close(product(x.to(precision), weight), linear(x.to(precision), weight))
