"""Feeds of batches: rows of a table, or a contiguous stream. Batches are addressed by (epoch, index)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from seq2see.data.batches import BatchPlan, Rows
from seq2see.decoders import State
from seq2see.model import EncoderDecoder
from seq2see.pipeline.dataset import Dataset, Stream, digest_arrays
from seq2see.pipeline.table_stream import TableStream, Window
from seq2see.recipe.schema import TrainingSettings
from seq2see.training.distributed import World
from seq2see.training.losses import Loss, Objective


class Feed(Protocol):
    """Computes the loss of any batch of any epoch.

    fingerprint: describes the data, so that a resumed run can tell whether it has changed.
    """

    fingerprint: str

    def batches(self, epoch: int) -> int:
        """The number of batches of an epoch; it may be an estimate until the last of them is taken."""
        ...

    def loss(
        self,
        model: EncoderDecoder,
        objective: Objective,
        epoch: int,
        index: int,
        *,
        own_share: float,
        device: torch.device,
    ) -> Loss: ...

    def rows(self, epoch: int, index: int) -> list[int]:
        """The rows of a batch, counted from 0 among those that are trained on (of a table that is read as it is needed,
        among those of the window); of a stream its lanes."""
        ...

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        """The recurrent state that a stream carries to its next batch, for a checkpoint. before: the one that its
        latest batch began with."""
        ...

    def restore(self, carried: dict[str, Tensor]) -> None:
        """Load the state of `carried`; an empty one starts anew."""
        ...


def plan_batches(data: Dataset, settings: TrainingSettings) -> BatchPlan:
    """The batches of all rows of some data."""
    return BatchPlan(
        data.widths, batch_tokens=settings.batch_tokens, batch_rows=settings.batch_rows, seed=settings.seed
    )


class RowFeed:
    """Batches of rows of about equal length. world: the processes that share each of them."""

    def __init__(self, data: Dataset, settings: TrainingSettings, world: World | None = None):
        self.data = data
        self.world = World() if world is None else world
        self.plan = plan_batches(data, settings)
        self.fingerprint = f"{len(data)} rows, {self.plan.symbols} symbols, hash {data.digest}"

    def batches(self, epoch: int) -> int:
        return len(self.plan.epoch(epoch))

    def _batch(self, epoch: int, index: int) -> Rows:
        return self.plan.epoch(epoch)[index]

    def loss(
        self,
        model: EncoderDecoder,
        objective: Objective,
        epoch: int,
        index: int,
        *,
        own_share: float,
        device: torch.device,
    ) -> Loss:
        rows, idle = self.world.part(self._batch(epoch, index))
        batch = self.data.batch(np.tile(rows, objective.passes)).to(device)
        return objective(model, batch, own_share=own_share, idle=idle)

    def rows(self, epoch: int, index: int) -> list[int]:
        rows: list[int] = self._batch(epoch, index).tolist()
        return rows

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        return {}

    def restore(self, carried: dict[str, Tensor]) -> None:
        pass


class TableStreamFeed(RowFeed):
    """Batches of rows that are read as they are needed, window by window (`TableStream`).

    Where training is, is in the checkpoint: the window is read again, and its batches are the same. data: the rows of
    the window. Every process of the world reads all rows.
    """

    def __init__(self, stream: TableStream, settings: TrainingSettings, world: World | None = None):
        self.stream, self.settings = stream, settings
        self.world = World() if world is None else world
        self.fingerprint = stream.fingerprint
        self._epoch = self._next = self._first = 0
        self._batches: Sequence[Rows] = []
        self._window: Window
        self._windows = stream.windows()
        self._load()
        self._batches_per_row = len(self._batches) / self._window.rows

    def _load(self) -> None:
        """Read the next window with rows to train on; there may be none before the table ends."""
        self._window = next(self._windows)
        while not len(data := self.stream.encode(self._window)) and not self._window.last:
            self._window = next(self._windows)
        self.data, self._batches = data, []
        if len(data):
            self._batches = plan_batches(data, self.settings).epoch((self._epoch << 32) + self._window.number)

    def _seek(self, epoch: int, index: int) -> None:
        """Go to the window with a batch: forwards, or to the start of an epoch."""
        if epoch != self._epoch or index < self._first:
            self._epoch, self._first = epoch, 0
            self._windows = self.stream.windows()
            self._load()
        while index >= self._first + len(self._batches) and not self._window.last:
            self._first += len(self._batches)
            self._load()
        self._next = index

    def batches(self, epoch: int) -> int:
        """Exact once the last window is read, which is so after the last batch; before, an estimate from the first
        window that is above what was read so far."""
        self._seek(epoch, self._next if epoch == self._epoch else 0)
        known = self._first + len(self._batches)
        return known if self._window.last else max(known + 1, round(self._batches_per_row * len(self.stream)))

    def _batch(self, epoch: int, index: int) -> Rows:
        self._seek(epoch, index)
        self._next = index + 1
        return self._batches[index - self._first]

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        window, index = self._window, self._next - before
        return {"stream": torch.tensor([self._epoch, index, self._first, window.number, window.before])}

    def restore(self, carried: dict[str, Tensor]) -> None:
        if "stream" not in carried:  # after a batch that could not be used: reading goes on
            return
        self._epoch, self._next, self._first, number, before = carried["stream"].tolist()
        self._windows = self.stream.windows(number=number, before=before)
        self._load()


class StreamFeed:
    """Truncated backpropagation through one long text, cut into parallel lanes: the recurrent state goes on from chunk
    to chunk, the gradient does not. world: the processes that share the lanes."""

    def __init__(self, stream: Stream, settings: TrainingSettings, world: World | None = None):
        self.stream = stream
        self.bptt, self.lanes = settings.bptt, settings.lanes
        self.world = World() if world is None else world
        self.own, self.idle = self.world.part(np.arange(stream.lanes(self.lanes)))
        self.state: State | None = None
        self.fingerprint = f"{len(stream)} symbols, hash {digest_arrays(stream.ids)}"
        self._before: State | None = None

    def batches(self, epoch: int) -> int:
        return self.stream.steps(bptt=self.bptt, lanes=self.lanes)

    def loss(
        self,
        model: EncoderDecoder,
        objective: Objective,
        epoch: int,
        index: int,
        *,
        own_share: float,
        device: torch.device,
    ) -> Loss:
        chunk = next(self.stream.chunks(bptt=self.bptt, lanes=self.lanes, start=index))
        inputs, targets = chunk.inputs[self.own].to(device), chunk.targets[self.own].to(device)
        ready = model.ready({}, len(inputs))
        self._before = None if index == 0 else self.state
        state = model.begin(ready) if self._before is None else self._before
        step = model.read_on(ready, inputs, state)
        self.state = step.state.detach()
        everywhere = torch.ones_like(targets, dtype=torch.bool)
        total = model.head.loss(step, ready, targets, mask=everywhere, smoothing=objective.smoothing)
        loss = Loss(total, float(targets.numel()), targets.numel())
        return loss.nothing() if self.idle else loss

    def rows(self, epoch: int, index: int) -> list[int]:
        return list(range(self.stream.lanes(self.lanes)))

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        state = self._before if before else self.state
        tensors = {} if state is None else state.tensors()
        parts = self.world.gathered((self.own, tensors))
        if len(parts) == 1:
            return tensors
        lanes = np.concatenate([own for own, _ in parts])
        _, first = np.unique(lanes, return_index=True)  # one without lanes of its own has read the first lane too
        return {name: torch.cat([each[name].cpu() for _, each in parts])[first] for name in tensors}

    def restore(self, carried: dict[str, Tensor]) -> None:
        own = torch.from_numpy(self.own)
        self.state = State.from_tensors({name: part[own] for name, part in carried.items()}) if carried else None
