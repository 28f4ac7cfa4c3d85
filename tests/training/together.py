"""What one of several processes of `test_distributed.py` does: the jobs of a file, one after the other.

As torchrun would, the test sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

import seq2see
from seq2see.data.batches import Batch
from seq2see.data.vocabulary import EOS
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.training import losses
from seq2see.training.losses import Loss, Objective
from seq2see.training.rewards import Symbols
from seq2see.training.trainer import Trainer
from tests.system.small import RecordingListener

RANK = int(os.environ.get("RANK", "0"))


@contextmanager
def signalled(job: dict[str, Any]) -> Iterator[None]:
    """Send this process SIGTERM in an update, or in the report after it, if it is the one that the job names."""
    method = job.get("signal_in", "_update")
    usual = getattr(Trainer, method)

    def signalling(self: Trainer, *given: Any) -> Any:
        result = usual(self, *given)
        if self.state.updates == job["signal_update"]:
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    with patch.object(Trainer, method, signalling) if job.get("signal_rank") == RANK else nullcontext():
        yield


@contextmanager
def spoiled(job: dict[str, Any]) -> Iterator[None]:
    """Let this process's part of the loss of one update be no number, if it is the one that the job names."""
    usual, calls = Objective.__call__, [0]

    def loss(self: Objective, *given: Any, **named: Any) -> Any:
        calls[0] += 1
        found = usual(self, *given, **named)
        if calls[0] == job["spoil_update"]:
            found.total = found.total * float("nan")
        return found

    with patch.object(Objective, "__call__", loss) if job.get("spoil_rank") == RANK else nullcontext():
        yield


@contextmanager
def drawn_by_row() -> Iterator[None]:
    """Let the outputs drawn for a row depend on nothing but the row, so that any number of processes draws the same;
    what a process without rows draws is different, and must not count."""
    usual = Objective.expected_reward

    def expected_reward(self: Objective, model: EncoderDecoder, batch: Batch, *, idle: bool = False) -> Loss:
        def draw(model: EncoderDecoder, batch: Batch, *, samples: int, longest: int) -> list[Symbols]:
            pairs = [(sample, row) for sample in range(samples) for row in batch.rows]
            chosen = [random.Random(f"{sample} {row} {idle}") for sample, row in pairs]
            return [(*each.choices(range(EOS + 1, model.head.symbols), k=each.randint(1, 3)), EOS) for each in chosen]

        with patch.object(losses, "draw_outputs", draw):
            return usual(self, model, batch, idle=idle)

    with patch.object(Objective, "expected_reward", expected_reward):
        yield


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Train as the job says. Returns how it ended."""
    listener = RecordingListener()
    given = {
        name: value[RANK] if name == "out" and isinstance(value, list) else value
        for name, value in job["given"].items()
    }
    try:
        with signalled(job), spoiled(job), drawn_by_row():
            model = seq2see.train(job["recipe"], listeners=[listener], **given)
    except UserError as error:
        return {"ended": type(error).__name__, "says": str(error), "notes": listener.notes}
    except SystemExit as stopped:
        return {"ended": stopped.code, "notes": listener.notes}
    weights = {name: tensor.tolist() for name, tensor in model.bundle.network.state_dict().items()}
    return {"ended": "done", "notes": listener.notes, "weights": weights}


def main() -> None:
    torch.set_num_threads(1)
    file = Path(sys.argv[1])
    results = []
    for job in json.loads(file.read_text("utf-8")):
        results.append(run(job))
        Path(f"{file}.{RANK}").write_text(json.dumps(results), "utf-8")


if __name__ == "__main__":
    main()
