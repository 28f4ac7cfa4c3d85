"""What checkpoints cost: at the default intervals, and in a run that writes them as often as the limit lets it."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from _models import batch, model
from _timing import medians

import seq2see
from seq2see.pipeline.weights import tensors_of
from seq2see.recipe import load_recipe
from seq2see.training import run as runs
from seq2see.training import trainer
from seq2see.training.checkpoints import LARGEST_SHARE, Checkpoint, TrainingState, save_checkpoint
from seq2see.training.optimizer import build_optimizer, optimizer_tensors

LIMIT, MINUTES = LARGEST_SHARE, 1.0
settings = load_recipe("grapheme-to-phoneme").training
network, rows = model(), batch()
optimizer = build_optimizer(settings, network)


def update() -> None:
    step, ready = network.forward_batch(rows)
    assert rows.target is not None
    loss = network.head.loss(step, ready, rows.target.ids, mask=rows.target.mask)  # type: ignore[union-attr]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class Timed(trainer.Trainer):
    """Counts its checkpoints and their seconds."""

    seconds: list[float]

    def checkpoint(self) -> None:
        start = time.perf_counter()
        super().checkpoint()
        self.seconds.append(time.perf_counter() - start)


def share_of_a_run(folder: Path) -> tuple[float, int]:
    """(share of its seconds that a run spent on checkpoints, how many they were), the clock asking for them always.

    The one that ends every run is not counted."""
    draw, table = random.Random(1), folder / "words.tsv"
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 10))) for _ in range(2000)]
    table.write_text("word\tphonemes\n" + "".join(f"{word}\t{' '.join(word)}\n" for word in words), encoding="utf-8")
    Timed.seconds = []
    runs.Trainer = Timed  # type: ignore[attr-defined]
    how = ["training.checkpoint_seconds=0.001", "training.checkpoint_every=1000000", "training.threads=1"]
    how += ["training.report_every=1000000", "training.film=0", "training.dev_rows=1", "training.average=1"]
    start = time.perf_counter()
    seq2see.train("grapheme-to-phoneme", table, out=folder / "run", overrides=how, minutes=MINUTES, listeners=[])
    *before, _ = Timed.seconds
    return sum(before) / (time.perf_counter() - start), len(before)


with tempfile.TemporaryDirectory() as place:

    def checkpoint() -> None:
        made = Checkpoint(TrainingState(), tensors_of(network), optimizer_tensors(optimizer))
        save_checkpoint(Path(place) / "checkpoints", made)

    update()
    seconds = medians({"update": update, "checkpoint": checkpoint})
    measured, written = share_of_a_run(Path(place))

cost = seconds["checkpoint"]
by_updates = cost / (cost + settings.checkpoint_every * seconds["update"])
by_clock = min(LIMIT, cost / (cost + settings.checkpoint_seconds))
print(f"an update {1000 * seconds['update']:.0f} ms, a checkpoint {1000 * cost:.0f} ms")
print(f"checkpoints every {settings.checkpoint_every:,} updates take {by_updates:.2%} of the time (limit: {LIMIT:.0%})")
print(f"... every {settings.checkpoint_seconds:g} s {by_clock:.2%}")
print(f"... as often as the limit allows: {written} in {60 * MINUTES:.0f} s of training, {measured:.2%} measured")
