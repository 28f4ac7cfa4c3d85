"""Where a model computes: named by the user, so checked before anything is built on it."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from seq2see.errors import UserError


def usable(name: str, *, key: str) -> torch.device:
    """The device of that name, if this machine has it; key: where the name stands, for the message."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError, ValueError, NotImplementedError) as error:
        said = str(error).splitlines()[0]
        raise UserError(f"{key}: '{name}' cannot be used here: {said}; allowed: {', '.join(there())}") from None
    return device


def there() -> list[str]:
    """Names of the devices of this machine."""
    cuda = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *cuda, *mps]


def machine_memory() -> int | None:
    """Bytes of physical memory, None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def random_state(device: torch.device) -> Tensor | None:
    """The state of the device's own random numbers; None for the processor, whose state torch keeps for all."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.type == "mps" else None


def restore_random_state(device: torch.device, state: Tensor | None) -> None:
    """Put back what `random_state` gave, where the run goes on on a device of that kind."""
    if state is None:
        return
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state)
