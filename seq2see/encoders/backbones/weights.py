"""Files of published weights, read without running anything in them, and fitted into a network by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError  # noqa: TID251 - what torch says of a file that is more than tensors
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from seq2see.errors import UserError

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
