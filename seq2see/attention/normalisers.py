"""Normalisers: a_t = normalise(e_t) over real places, exactly zero at padding, all zeros where no place is real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.registry import Registry
from seq2see.settings.base import first_line
from seq2see.settings.plugins import part_registry

HIDDEN = -1e9
"""The energy of padding: far below any real one, and its square is still finite in single precision."""


normalisers: Registry[type[Normaliser]] = part_registry("normaliser", lambda: Normaliser, methods=["forward"])


class Normaliser(nn.Module):
    """Turns energies into weights that are not negative and sum to one; a kind writes `forward`.

    The arguments of a kind's constructor are its settings. sparse: it gives some places exactly zero.
    """

    sparse: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()

    def forward(self, energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        raise NotImplementedError

    def equation(self, *, weight: str = "a_tj", energy: str = "e_tj", other: str = "e_ti", divisor: str = "") -> str:
        """For `show`; other: the energy that a sum runs over; divisor: ' / 2' where energies have a temperature."""
        return f"{weight} = {first_line(type(self)) or type(self).__name__} of {energy}{divisor}"


@normalisers.register("softmax")
class Softmax(Normaliser):
    """a_j = exp(e_j) / sum_i exp(e_i)"""

    sparse = False

    def forward(self, energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        return softmax(energies)

    def equation(self, *, weight: str = "a_tj", energy: str = "e_tj", other: str = "e_ti", divisor: str = "") -> str:
        return f"{weight} = exp({energy}{divisor}) / sum_{other[-1]} exp({other}{divisor})"


@normalisers.register("sparsemax")
class Sparsemax(Normaliser):
    """a_j = max(e_j - tau, 0), tau such that they sum to one: most places get exactly zero"""

    def forward(self, energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        return sparsemax(energies)

    def equation(self, *, weight: str = "a_tj", energy: str = "e_tj", other: str = "e_ti", divisor: str = "") -> str:
        return f"{weight} = max({energy}{divisor} - tau_t, 0), tau_t such that they sum to one"


@normalisers.register("entmax15")
class Entmax15(Normaliser):
    """a_j = max(e_j / 2 - tau, 0) ** 2, tau such that they sum to one: between softmax and sparsemax"""

    def forward(self, energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
        return entmax15(energies)

    def equation(self, *, weight: str = "a_tj", energy: str = "e_tj", other: str = "e_ti", divisor: str = "") -> str:
        return f"{weight} = max({energy}{divisor} / 2 - tau_t, 0) ** 2, tau_t such that they sum to one"


def masked(
    normalise: Callable[[Tensor], Tensor], energies: Float[Tensor, "*rows places"], mask: Bool[Tensor, "... places"]
) -> Float[Tensor, "*rows places"]:
    """Weights over real places, in single precision or better; mask: broadcast over rows.

    They stay in that precision: at half precision the weights of many places are too coarse to sample from, or to take
    logarithms of.
    """
    hidden = precise(energies).masked_fill(~mask, HIDDEN)
    weights: Any = normalise(hidden)
    if not isinstance(weights, Tensor) or weights.shape != hidden.shape:
        got = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        name = getattr(normalise, "__name__", type(normalise).__name__)
        raise UserError(f"normaliser {name}: a weight for each energy expected, {tuple(hidden.shape)}, got {got}")
    return weights * mask


def precise(numbers: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The same numbers, in single precision or better."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def masked_softmax(
    energies: Float[Tensor, "batch queries places"], mask: Bool[Tensor, "batch places"]
) -> Float[Tensor, "batch queries places"]:
    """softmax over real places.

    >>> masked_softmax(torch.zeros(1, 1, 3), torch.tensor([[True, True, False]]))
    tensor([[[0.5000, 0.5000, 0.0000]]])
    """
    return masked(softmax, energies, mask[:, None])


def softmax(energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
    """a_j = exp(e_j) / sum_i exp(e_i)"""
    return torch.softmax(energies, dim=-1)


def sparsemax(energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
    """a_j = max(e_j - tau, 0): the nearest point of the simplex (Martins and Astudillo 2016).

    >>> sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    weights: Tensor = _Sparsemax.apply(energies)
    return weights


def entmax15(energies: Float[Tensor, "*rows places"]) -> Float[Tensor, "*rows places"]:
    """a_j = max(e_j / 2 - tau, 0) ** 2: between softmax and sparsemax (Peters, Niculae and Martins 2019).

    >>> entmax15(torch.tensor([1.0, 1.0, -9.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    weights: Tensor = _Entmax15.apply(energies)
    return weights


def _sorted_prefixes(energies: Tensor) -> tuple[Tensor, Tensor]:
    """Energies in descending order, and the length of the prefix up to each."""
    falling = energies.sort(dim=-1, descending=True).values
    count = torch.arange(1, energies.shape[-1] + 1, device=energies.device, dtype=energies.dtype)
    return falling, count


def _at_last(values: Tensor, support: Tensor) -> Tensor:
    """The value at the last place of the support, which is a prefix and never empty."""
    return values.gather(-1, support.sum(-1, keepdim=True) - 1)


class _Sparsemax(torch.autograd.Function):
    """tau is that of the largest prefix whose own tau leaves its smallest energy positive; exact."""

    @staticmethod
    def forward(ctx: Any, energies: Tensor) -> Tensor:
        energies = energies - energies.amax(-1, keepdim=True)
        falling, count = _sorted_prefixes(energies)
        tau = (falling.cumsum(-1) - 1) / count
        weights = (energies - _at_last(tau, falling > tau)).clamp(min=0)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors
        support = (weights > 0).to(grad.dtype)
        mean = (grad * support).sum(-1, keepdim=True) / support.sum(-1, keepdim=True)
        back: Tensor = support * (grad - mean)
        return back


class _Entmax15(torch.autograd.Function):
    """With z = e / 2, the sum over the support of (z - tau) ** 2 = 1 is quadratic in tau; its smaller root, exactly."""

    @staticmethod
    def forward(ctx: Any, energies: Tensor) -> Tensor:
        halves = (energies - energies.amax(-1, keepdim=True)) / 2
        falling, count = _sorted_prefixes(halves)
        mean = falling.cumsum(-1) / count
        spread = falling.square().cumsum(-1) / count - mean.square()
        tau = mean - (1 / count - spread).clamp(min=0).sqrt()
        weights = (halves - _at_last(tau, falling >= tau)).clamp(min=0).square()
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors
        roots = weights.sqrt()
        inner = grad * roots
        back: Tensor = inner - roots * inner.sum(-1, keepdim=True) / roots.sum(-1, keepdim=True)
        return back
