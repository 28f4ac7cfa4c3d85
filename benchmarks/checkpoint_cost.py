"""What checkpoints cost: seconds of one checkpoint over seconds of the updates between two, at the default interval."""

from __future__ import annotations

import tempfile
from pathlib import Path

from _models import batch, model
from _timing import medians

from seq2see.pipeline.weights import tensors_of
from seq2see.recipe import load_recipe
from seq2see.training.checkpoints import Checkpoint, Standing, save_checkpoint
from seq2see.training.optimizer import build_optimizer, optimizer_tensors

settings = load_recipe("grapheme-to-phoneme").training
network, rows = model(), batch()
optimizer = build_optimizer(settings, network)


def update() -> None:
    step, ready = network.taught(rows)
    assert rows.target is not None
    loss = network.head.loss(step, ready, rows.target.ids, mask=rows.target.mask)  # type: ignore[union-attr]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


with tempfile.TemporaryDirectory() as folder:

    def checkpoint() -> None:
        made = Checkpoint(Standing(), tensors_of(network), optimizer_tensors(optimizer))
        save_checkpoint(Path(folder), made)

    update()
    seconds = medians({"update": update, "checkpoint": checkpoint})

share = seconds["checkpoint"] / (seconds["checkpoint"] + settings.checkpoint_every * seconds["update"])
print(f"an update {1000 * seconds['update']:.0f} ms, a checkpoint {1000 * seconds['checkpoint']:.0f} ms")
print(f"checkpoints every {settings.checkpoint_every:,} updates take {share:.2%} of training time (limit: 2 %)")
