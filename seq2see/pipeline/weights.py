"""Weights on disk: safetensors, written whole or not at all, checked against the model they are read into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from seq2see.data.output import write_bytes
from seq2see.errors import UserError
from seq2see.pipeline.checksums import KEY, UNSIGNED, check_signed, signed


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter once (tied ones under their first name), and what else a network keeps (of normalisations the
    means they have seen)."""
    kept = network.state_dict().keys()
    buffers = {name: buffer for name, buffer in network.named_buffers() if name in kept}
    return {name: parameter.detach() for name, parameter in network.named_parameters()} | buffers


def write_tensors(path: Path, tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None) -> None:
    """Tensors by name as one file with its checksum, which appears whole or leaves the old one in its place."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, *signed(save(whole, {**(metadata or {}), KEY: UNSIGNED})))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors by name; a missing or damaged file is the user's to mend."""
    if not path.is_file():
        raise UserError(f"{path}: missing; a model's folder holds recipe.yaml, model.safetensors and its vocabularies")
    check_signed(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: damaged or cut short, not a whole safetensors file ({error})") from None


def fill(network: nn.Module, tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Copy tensors into a network after checking that each fits."""
    own = tensors_of(network)
    missing = [name for name in own if name not in tensors]
    extra = [name for name in tensors if name not in own]
    if missing or extra:
        said = "; ".join(
            part
            for part in (
                f"missing: {', '.join(missing[:5])}" if missing else "",
                f"not of this recipe: {', '.join(extra[:5])}" if extra else "",
            )
            if part
        )
        raise UserError(f"{path}: these weights do not belong to the recipe beside them; {said}")
    for name, parameter in own.items():
        if parameter.shape != tensors[name].shape:
            raise UserError(
                f"{path}: {name} is {_shape(tensors[name])}, but recipe.yaml and the vocabularies beside it ask for "
                f"{_shape(parameter)}: the vocabulary does not fit the weights"
            )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def _shape(tensor: Tensor) -> str:
    return " x ".join(str(size) for size in tensor.shape) or "a single number"
