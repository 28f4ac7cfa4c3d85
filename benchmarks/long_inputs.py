"""Reading long inputs of unequal length in training: padding read along, beside torch's layer on packed rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from _timing import medians
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seq2see.cells import CellSettings, build_cell

ROWS, STEPS, SIZE = 24, 150, 192

torch.manual_seed(1)
inputs = torch.randn(ROWS, STEPS, SIZE)
mask = torch.arange(STEPS) < torch.randint(3 * STEPS // 4, STEPS + 1, (ROWS, 1))


def read_along(kind: str) -> Callable[[], None]:
    cell = build_cell(CellSettings.model_validate({"cell": kind, "size": SIZE}), {"x": SIZE})

    def run() -> None:
        cell.zero_grad()
        cell.read({"x": inputs}, mask)[0].square().sum().backward()

    return run


def packed(kind: str) -> Callable[[], None]:
    layer = {"gru": nn.GRU, "lstm": nn.LSTM}[kind](SIZE, SIZE, batch_first=True)

    def run() -> None:
        layer.zero_grad()
        rows = pack_padded_sequence(inputs, mask.sum(1), batch_first=True, enforce_sorted=False)
        pad_packed_sequence(layer(rows)[0], batch_first=True)[0].square().sum().backward()

    return run


for kind in ("gru", "lstm"):
    seconds = medians({"packed": packed(kind), "read along": read_along(kind)})
    for name, value in seconds.items():
        print(f"{kind:5} {name:12} {1000 * value:7.1f} ms  {seconds['packed'] / value:5.2f} x")
