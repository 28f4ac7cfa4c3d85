"""Half the bits for the large products, where the processor is faster with them; states and losses stay whole."""

from __future__ import annotations

import torch


def working_precision(setting: str, device: torch.device) -> torch.autocast:
    """The context a loss is computed in."""
    wanted = setting == "bfloat16" or (setting == "auto" and bfloat16_is_fast(device))
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted)


def bfloat16_is_fast(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu":
        return False
    features = torch.backends.cpu.get_cpu_capability()
    return features.startswith("AVX512") and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and _has_bf16_units()


def _has_bf16_units() -> bool:
    """avx512_bf16 or amx_bf16 among the processor's flags; mkldnn also says yes to processors that only emulate it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a device file, read to the first match
            return any("_bf16" in line for line in file if line.startswith("flags"))
    except OSError:
        return False
