"""The base class of backbones, which turn images into feature maps, and files of published weights."""

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
from seq2see.symbols import Symbol, Symbols

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of ImageNet's red, green and blue, from 0 to 1."""


class Backbone(nn.Module):
    """Pixels from 0 to 255 to a feature map: (batch, channels, height, width) -> (batch, size, rows, columns).

    least: the smallest side in pixels that gives a map; narrower images are extended to the right.
    """

    size: int
    least: int = 1

    def fetch(self) -> None:
        """Load its published weights, if it has any."""

    def forward(self, pixels: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch size rows columns"]:
        raise NotImplementedError

    def padded(
        self, pixels: Float[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch size rows columns"], Int[Tensor, " batch"]]:
        """The maps of images with `widths` real columns of pixels, and how many columns of each map are real."""
        maps: Tensor = self(pixels)
        share = widths / pixels.shape[-1]
        return maps, torch.ceil(share * maps.shape[-1] - 1e-4).clamp(min=1).long()


class Scaling(nn.Module):
    """(x / 255 - mean) / deviation, channel by channel.

    Mean and deviation are buffers, saved with the weights that expect them, and part of the key of stored features.

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
    """Batch normalisation that uses the running statistics where a batch has a single number for each map."""

    def forward(self, states: Tensor) -> Tensor:
        if self.training and states.numel() == states.shape[1]:
            return nn.functional.batch_norm(
                states, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(states)


def keep_statistics(backbone: Backbone, settings: BackboneSettings) -> None:
    """Put a frozen backbone, or the batch normalisation of a pre-trained one, back into evaluation mode.

    For `train()`: the statistics of its pre-training must not be replaced by those of small batches.
    """
    if settings.frozen:
        backbone.eval()
    elif settings.pretrained:
        for module in backbone.modules():
            if isinstance(module, _BatchNorm):
                module.eval()


def maps_last(network: Any) -> Any:
    """The network in torch's channels-last memory format, which is faster on most machines."""
    return network.to(memory_format=torch.channels_last)


def backbone_symbols(backbone: Backbone) -> Symbols:
    """No equation names the parameters of a backbone: they are counted as one."""
    return {f"backbone.{key}": Symbol("backbone", merged=True) for key, _ in backbone.named_parameters()}


# --- Files of published weights

WRAPPED = ("state_dict", "model", "model_state_dict")
"""The keys under which training scripts save the weights, beside other things."""

PREFIX = "module."
"""The prefix of every name in a network that was trained on several devices."""

COUNTERS = ".num_batches_tracked"
"""Buffers that files of older versions of torch lack; nothing depends on them."""

SHOWN = 3


def load_weights(network: nn.Module, path: Path, *, head: tuple[str, ...]) -> None:
    """Load the weights of a file into a network; names that begin with `head` (a classifier) are skipped."""
    weights = {name: tensor for name, tensor in read_weights(path).items() if not name.startswith(head)}
    own = network.state_dict()
    missing = [name for name in own if name not in weights and not name.endswith(COUNTERS)]
    unknown = [name for name in weights if name not in own]
    if missing or unknown:
        raise UserError(f"{path}: weights of another network; {_difference(missing, unknown)}")
    for name, tensor in weights.items():
        if tensor.shape != own[name].shape:
            raise UserError(f"{path}: {name} is {_shape(tensor)}, and the backbone's is {_shape(own[name])}")
    network.load_state_dict(weights, strict=False)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors by name of a .safetensors file or of a state-dict saved by torch; nothing else is read or run."""
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
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: damaged or cut short, not a whole state-dict ({message})") from None
    return _tensors(held, path)


def _tensors(held: Any, path: Path) -> dict[str, Tensor]:
    """The tensors by name in the content of a file, which may have them under one of the `WRAPPED` keys."""
    for key in WRAPPED:
        if isinstance(held, Mapping) and isinstance(held.get(key), Mapping):
            held = held[key]
    if not isinstance(held, Mapping) or not held:
        raise UserError(f"{path}: holds {type(held).__name__}, not weights by name")
    wrong = [str(name) for name, value in held.items() if not (isinstance(name, str) and isinstance(value, Tensor))]
    if wrong:
        raise UserError(f"{path}: {_list(wrong)}: no weights; allowed: a state-dict, tensors by name")
    return {name.removeprefix(PREFIX): tensor for name, tensor in held.items()}


def _difference(missing: list[str], unknown: list[str]) -> str:
    parts = [f"{word} {_list(names)}" for word, names in (("lacks", missing), ("has", unknown)) if names]
    return ", and ".join(parts)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _shape(tensor: Tensor) -> str:
    return " x ".join(str(size) for size in tensor.shape) or "a single number"
