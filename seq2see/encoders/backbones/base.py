"""What every backbone is: pixels in, a map out; and how pixels are scaled before a pre-trained one reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError  # noqa: TID251 - what torch says of a file that is more than tensors
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from seq2see.errors import UserError
from seq2see.settings.encoders import BackboneSettings

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's red, green and blue, from 0 to 1: what networks trained on it have been shown."""


class Backbone(nn.Module):
    """Pixels from 0 to 255 to a map: (batch, channels, height, width) -> (batch, size, rows, columns).

    least: pixels on a side below which nothing would be left of a picture; narrower ones are continued to the right.
    """

    size: int
    least: int = 1

    def fetch(self) -> None:
        """Take the weights it was trained with before, where it was."""

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch size rows columns"]:
        raise NotImplementedError

    def padded(
        self, pixels: Float[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch size rows columns"], Int[Tensor, " batch"]]:
        """Maps of pictures of which so many columns of pixels are real, and how many of their own are: those in which
        any real pixel lies."""
        found: Tensor = self(pixels)
        share = widths / pixels.shape[-1]
        return found, torch.ceil(share * found.shape[-1] - 1e-4).clamp(min=1).long()


class Scaling(nn.Module):
    """(x / 255 - mean) / deviation, channel by channel. Kept with the weights, of which it is a part: they mean nothing
    to pixels scaled otherwise, and what is kept of pictures on disk goes by both.

    >>> Scaling([0.5], [0.25])(torch.tensor([[[[0.0, 255.0]]]])).flatten().tolist()
    [-2.0, 2.0]
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("deviation", torch.tensor(deviation))

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Tensor:
        scaled = (pixels / 255 - self.mean[:, None, None]) / self.deviation[:, None, None]
        return scaled.contiguous(memory_format=torch.channels_last)


class BatchNorm(nn.BatchNorm2d):
    """Normalisation over the batch; where that is a single number for each map, by what it has seen before."""

    def forward(self, states: Tensor) -> Tensor:
        if self.training and states.numel() == states.shape[1]:
            return nn.functional.batch_norm(
                states, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(states)


def hold(backbone: Backbone, settings: BackboneSettings) -> None:
    """To be called while a model learns. Normalisation must not go by the batch it happens to see, and soon forget what
    it was trained with: a frozen backbone stays as it is, one that is tuned keeps the means and deviations of its
    pre-trained weights."""
    if settings.frozen:
        backbone.eval()
    elif settings.pretrained:
        for module in backbone.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def maps_last(network: Any) -> Any:
    """The network with its convolutions laid out as they are fastest on most machines; what it gives is the same."""
    return network.to(memory_format=torch.channels_last)


# ---------------- Files of published weights, read without running anything in them, and fitted into a ...

WRAPPED = ("state_dict", "model", "model_state_dict")
"""Under which training scripts keep the weights, beside other things."""

PREFIX = "module."
"""What networks that were trained on several devices have before every name."""

COUNTERS = ".num_batches_tracked"
"""What files written before torch counted batches lack; nothing goes by it."""

SHOWN = 3


def take(network: nn.Module, path: Path, *, head: tuple[str, ...]) -> None:
    """Copy the weights of a file into a network. What begins like `head` (a classifier) is left in the file."""
    found = {name: one for name, one in read_weights(path).items() if not name.startswith(head)}
    own = network.state_dict()
    missing = [name for name in own if name not in found and not name.endswith(COUNTERS)]
    foreign = [name for name in found if name not in own]
    if missing or foreign:
        raise UserError(f"{path}: weights of another network; {_apart(missing, foreign)}")
    for name, tensor in found.items():
        if tensor.shape != own[name].shape:
            raise UserError(f"{path}: {name} is {_shape(tensor)}, and the backbone's is {_shape(own[name])}")
    network.load_state_dict(found, strict=False)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, of a .safetensors file or a state-dict as torch saves it; nothing but tensors is read."""
    if not path.is_file():
        raise UserError(f"{path}: no such file (encoder.weights)")
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(f"{path}: damaged or cut short, not a whole safetensors file ({error})") from None
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")  # noqa: TID251 - tensors alone are read
    except UnpicklingError:
        raise UserError(
            f"{path}: not a file of weights, or one that holds more than tensors, which is not read; allowed: a "
            "state-dict (torch.save(network.state_dict(), ...)) or .safetensors"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: damaged or cut short, not a whole state-dict ({said})") from None
    return _tensors(held, path)


def _tensors(held: Any, path: Path) -> dict[str, Tensor]:
    """Names and tensors out of what a file holds, which may keep them under a word of its own."""
    for word in WRAPPED:
        if isinstance(held, Mapping) and isinstance(held.get(word), Mapping):
            held = held[word]
    if not isinstance(held, Mapping) or not held:
        raise UserError(f"{path}: holds {type(held).__name__}, not weights by name")
    wrong = [str(name) for name, one in held.items() if not (isinstance(name, str) and isinstance(one, Tensor))]
    if wrong:
        raise UserError(f"{path}: {_list(wrong)}: no weights; allowed: a state-dict, tensors by name")
    return {name.removeprefix(PREFIX): one for name, one in held.items()}


def _apart(missing: list[str], foreign: list[str]) -> str:
    parts = [f"{word} {_list(names)}" for word, names in (("lacks", missing), ("has", foreign)) if names]
    return ", and ".join(parts)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _shape(tensor: Tensor) -> str:
    return " x ".join(str(size) for size in tensor.shape) or "a single number"
