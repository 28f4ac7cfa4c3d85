"""Reading long inputs of unequal length in training: padding read along, beside packed rows, in one run."""

from __future__ import annotations

from collections.abc import Callable

import torch
from _timing import medians

from seq2see.cells import build_cell
from seq2see.recipe.schema import CellSettings

ROWS, STEPS, SIZE = 24, 150, 192

torch.manual_seed(1)
inputs = torch.randn(ROWS, STEPS, SIZE)
mask = torch.arange(STEPS) < torch.randint(3 * STEPS // 4, STEPS + 1, (ROWS, 1))


def training_pass(kind: str, *, packed: bool) -> Callable[[], None]:
    cell = build_cell(CellSettings.model_validate({"cell": kind, "size": SIZE}), {"x": SIZE})

    def run() -> None:
        outputs = cell.run({"x": inputs}, mask=mask)[0] if packed else cell.read({"x": inputs}, mask)[0]
        cell.zero_grad()
        outputs.square().sum().backward()

    return run


for kind in ("gru", "lstm"):
    seconds = medians({"packed": training_pass(kind, packed=True), "read along": training_pass(kind, packed=False)})
    for name, value in seconds.items():
        print(f"{kind:5} {name:12} {1000 * value:7.1f} ms  {seconds['packed'] / value:5.2f} x")
