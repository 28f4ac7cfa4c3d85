"""Backbones turn images into feature maps: settings, the base class, files of weights, and a small network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError  # noqa: TID251 - what torch says of a file that is more than tensors
from typing import Annotated, Any, Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import pad, relu
from torch.nn.modules.batchnorm import _BatchNorm

from seq2see.data.image_files import ImageInput
from seq2see.data.video_files import VideoInput
from seq2see.encoders.layers import MOST_GROUPS, norm_groups
from seq2see.errors import UserError, nearest
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Settings, Size, no_effect
from seq2see.symbols import Symbol, Symbols

# --- Names and settings

SMALL = "small"
"""The one of our own, which is trained with the rest."""

CARRIED = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
"""Whose weights a package brings along."""

FILED = ("resnet18", "resnet34", "resnet50", "vgg16")
"""Whose weights lie in a file of the user's; without one they begin at random."""

PACKAGES = ("timm", "torchvision")
"""Packages that know networks by name, PACKAGE:NAME, and where their weights are to be had."""

NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Of a network in its package. Names with a scheme (hf-hub:, local-dir:) would have files fetched when a model's folder
is loaded, which somebody else may have written."""

LEAST = 32
"""Pixels on a side that a pre-trained network needs: it halves them five times."""


def unknown_backbone(name: str) -> str | None:
    """What is wrong with the name of a backbone; None where nothing is.

    >>> unknown_backbone("timm:convnext_tiny"), unknown_backbone("resnet-50")
    (None, "unknown backbone 'resnet-50' (did you mean 'resnet50'?); allowed: small, efficientnet-lite0, \
efficientnet-lite1, efficientnet-lite2, resnet18, resnet34, resnet50, vgg16, timm:NAME, torchvision:NAME")
    """
    known = (SMALL, *CARRIED, *FILED)
    package, _, its = name.partition(":")
    if name in known or (package in PACKAGES and NAME.fullmatch(its)):
        return None
    allowed = ", ".join([*known, *(f"{one}:NAME" for one in PACKAGES)])
    return f"unknown backbone '{name}'{nearest(name, known)}; allowed: {allowed}"


class BackboneSettings(Settings):
    """A convolutional network that makes a map of a picture."""

    backbone: Annotated[str, Field(min_length=1)] = Field(
        "small",
        description="small (trained with the rest), efficientnet-lite0, -lite1 and -lite2 (pre-trained, extra "
        "`images`), resnet18, resnet34, resnet50, vgg16 (with `weights`), timm:NAME or torchvision:NAME (extras of "
        "these names)",
    )
    weights: str | None = Field(
        None,
        description="file of the backbone's weights, a state-dict as torch saves it or .safetensors; not given: those "
        "it was published with, and for resnet and vgg16 none: it starts from random weights",
    )
    tuned: bool = Field(
        False,
        description="all but small: train it further (the means and deviations of its pre-training stay); false: "
        "frozen, its maps are kept on disk",
    )
    channels: list[Size] = Field(
        [32, 64, 128, 256],
        min_length=1,
        max_length=MOST_LAYERS,
        description="small: maps of each level; a level halves height and width",
    )
    pooled: list[Literal["both", "height"]] = Field(
        [],
        max_length=MOST_LAYERS,
        description="small: what each level halves; not given: both; height keeps the places of a line apart",
    )

    @property
    def frozen(self) -> bool:
        """Whether its backbone's maps never change, so that they need to be computed once only."""
        return self.backbone != SMALL and not self.tuned

    @property
    def pretrained(self) -> bool:
        """Whether its backbone has learned something before."""
        return self.weights is not None or self.backbone not in (SMALL, *FILED)

    def check_backbone(self, name: str, image: ImageInput | VideoInput, path: str) -> Iterator[Problem]:
        """What a network of that name demands of the pictures of an input; path: of these settings."""
        unknown = unknown_backbone(self.backbone)
        if unknown is not None:
            yield Problem(f"{path}.backbone", unknown, "backbone")
            return
        if self.backbone == SMALL:
            return
        if image.height < LEAST or 0 < image.width < LEAST:
            message = f"{image.height} x {image.width} pixels; allowed: at least {LEAST} each"
            yield Problem(f"inputs.{name}.height", message, "backbone")
        if image.colour == "grey":
            message = f"{self.backbone} was trained in colour; allowed: rgb"
            yield Problem(f"inputs.{name}.colour", message, "backbone")
        if self.backbone in FILED and self.weights is None and not self.tuned:
            message = f"{self.backbone} is frozen and has no weights"
            allowed = f"a file of weights, or {path}.tuned: true"
            yield Problem(f"{path}.weights", f"{message}; allowed: {allowed}", "backbone")

    def check_pooled(self, path: str) -> Iterator[Problem]:
        """`pooled` has an item for each level."""
        if self.pooled and len(self.pooled) != len(self.channels):
            message = f"{len(self.pooled)} given for {len(self.channels)} levels of {path}.channels"
            yield Problem(f"{path}.pooled", f"{message}; allowed: one for each, or none", "pooled")

    def unused_backbone(self, path: str) -> Iterator[Problem]:
        """Settings of networks of another name."""
        if self.backbone == SMALL:
            yield from no_effect(self, path, ["tuned", "weights"], "backbone small is trained with the rest")
        else:
            yield from no_effect(self, path, ["channels", "pooled"], f"backbone {self.backbone} is built as it is")

    def check_shrinking(self, name: str, image: ImageInput | VideoInput, path: str) -> Iterator[Problem]:
        """The levels of the small network leave something to tell apart."""
        if self.backbone == SMALL:
            pooled = self.pooled or ["both"] * len(self.channels)
            sizes = halved(image.height, image.width or 1, pooled)[:-1]
            yield from check_levels(self.channels, sizes, name, image, f"{path}.channels")


Sizes = list[tuple[int, int]]
"""(rows, columns) that each level normalises."""
SMALLEST = 4
"""Pixels on a side without which there is nothing to see."""


def halved(rows: int, columns: int, pooled: Sequence[str]) -> Sizes:
    """The size before the first level, and after each.

    >>> halved(5, 4, ["both", "height"])
    [(5, 4), (3, 2), (2, 2)]
    """
    sizes = [(rows, columns)]
    for how in pooled:
        rows, columns = -(-rows // 2), -(-columns // 2) if how == "both" else columns
        sizes.append((rows, columns))
    return sizes


def check_levels(
    maps: Sequence[int], sizes: Sizes, name: str, image: ImageInput | VideoInput, path: str
) -> Iterator[Problem]:
    """Levels of convolutions halve a picture or a frame only while something of it is left to tell apart.

    Normalising a single cell by itself always gives 0. Where widths differ
    the narrowest picture counts, which is one cell wide. maps, sizes: of each level; path: of the key with the maps.
    """
    levels = enumerate(zip(maps, sizes, strict=False))  # a wrong number of `pooled` has a rule of its own
    level = next((number for number, (count, size) in levels if size == (1, 1) and norm_groups(count) == count), None)
    if level is not None:
        few = f"at most {level} levels, or more than {MOST_GROUPS} maps" if level else f"more than {MOST_GROUPS} maps"
        message = f"level {level + 1} of {len(maps)} has one cell left of the {image.size_text} pixels of '{name}'"
        message += f", and each of its {maps[level]} maps is normalised separately: only zeros come out"
        message += f"; allowed: {few} there"
        yield Problem(path, message, "shrinking")


# --- Networks

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


# --- The small network, which is trained with the rest of a model


class MaxPool(torch.autograd.Function):
    """The larger of two rows, then of two columns (`across`), as whole-tensor operations.

    On a processor torch's own pooling of maps that lie one after the other takes about twice as long, forwards and
    backwards together. Of equal numbers the upper, then the left one gets the gradient.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, across: int) -> Tensor:
        upper, lower = states[:, :, 0::2], states[:, :, 1::2]
        chosen, pooled = [upper >= lower], torch.maximum(upper, lower)
        if across == 2:
            left, right = pooled[..., 0::2], pooled[..., 1::2]
            chosen, pooled = [*chosen, left >= right], torch.maximum(left, right)
        ctx.save_for_backward(*chosen)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,), (upper, *left) = gradients, ctx.saved_tensors
        if left:
            kept = gradient * left[0]
            gradient = torch.stack([kept, gradient - kept], -1).flatten(-2)
        kept = gradient * upper
        return torch.stack([kept, gradient - kept], 3).flatten(2, 3), None


def max_pool(states: Float[Tensor, "batch maps rows columns"], across: int) -> Float[Tensor, "batch maps half less"]:
    """Maximum of every two rows and `across` (1 or 2) columns; the last of an odd number stands alone.

    >>> max_pool(torch.tensor([[[[1.0, 2.0, 5.0], [4.0, 3.0, 0.0], [6.0, 8.0, 7.0]]]]), 2)
    tensor([[[[4., 5.],
              [8., 7.]]]])
    """
    rows, columns = states.shape[-2:]
    if rows % 2 or columns % across:
        states = pad(states, (0, columns % across, 0, rows % 2), value=-torch.inf)
    pooled: Tensor = MaxPool.apply(states, across)
    return pooled


class Level(nn.Sequential):
    """Convolution, normalisation, relu and pooling, of the height alone or of both sides.

    Normalised over groups of maps, not over the batch, so that an image does not depend on the others of its batch.
    """

    def __init__(self, below: int, above: int, *, halved: str):
        self.across = 2 if halved == "both" else 1
        super().__init__(
            nn.Conv2d(below, above, 3, padding=1, bias=False),
            nn.GroupNorm(norm_groups(above), above),
            nn.ReLU(),
            nn.MaxPool2d((2, self.across), ceil_mode=True),
        )

    def forward(self, states: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            return self[3](relu(self[1](self[0](states))))  # type: ignore[no-any-return]
        return relu(max_pool(self[1](self[0](states)), self.across))  # of fewer numbers than relu first, and the same

    def padded(self, states: Tensor, widths: list[int]) -> tuple[Tensor, list[int]]:
        """The level's output for images of these widths, with zeros beyond them; and the widths after it."""
        convolved, normalise, most = self[0](states), self[1], states.shape[-1]
        masked = [
            pad(normalise(image[None, ..., :width]), (0, most - width))
            for image, width in zip(convolved, widths, strict=True)
        ]
        return relu(max_pool(torch.cat(masked), self.across)), [-(-width // self.across) for width in widths]

    def traced(self, states: Tensor, widths: Int[Tensor, " batch"]) -> tuple[Tensor, Int[Tensor, " batch"]]:
        """`padded` without a loop over images, for a graph that is exported."""
        convolved: Tensor = self[0](states)
        normalise = cast(nn.GroupNorm, self[1])
        real = (torch.arange(states.shape[-1], device=states.device) < widths[:, None])[:, None, None, None]
        grouped = convolved.unflatten(1, (normalise.num_groups, -1)) * real
        count = widths.view(-1, 1, 1, 1, 1) * (grouped.shape[2] * grouped.shape[3])
        mean = grouped.sum((2, 3, 4), keepdim=True) / count
        apart = (grouped - mean) * real
        deviation = (apart.square().sum((2, 3, 4), keepdim=True) / count + normalise.eps).sqrt()
        weight, bias = normalise.weight[:, None, None], normalise.bias[:, None, None]
        normal = ((apart / deviation).flatten(1, 2) * weight + bias) * real[:, 0]
        return self[3](relu(normal)), -(-widths // self.across)


class Small(Backbone):
    """Levels one after the other."""

    def __init__(self, channels: int, settings: BackboneSettings):
        super().__init__()
        widths = [channels, *settings.channels]
        pooled = settings.pooled or ["both"] * len(settings.channels)
        self.levels = nn.ModuleList(
            Level(below, above, halved=halved) for below, above, halved in zip(widths, widths[1:], pooled, strict=False)
        )
        self.size = widths[-1]

    def forward(self, pixels: Tensor) -> Tensor:
        states = pixels / 127.5 - 1
        for level in self.levels:
            states = level(states)
        return states

    def padded(
        self, pixels: Float[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch size rows columns"], Int[Tensor, " batch"]]:
        """The map of each image exactly as if it were alone in its batch."""
        real = torch.arange(pixels.shape[-1], device=pixels.device) < widths[:, None]
        states = (pixels / 127.5 - 1) * real[:, None, None]
        if torch.compiler.is_exporting():
            for level in self.levels:
                states, widths = cast(Level, level).traced(states, widths)
            return states, widths
        left = widths.tolist()
        for level in self.levels:
            states, left = cast(Level, level).padded(states, left)
        return states, torch.tensor(left, device=widths.device)
