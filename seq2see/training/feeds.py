"""Feeds of batches: rows of a table, or a contiguous stream. Batches are addressed by (epoch, index)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seq2see.data.batches import BatchPlan
from seq2see.decoders import State
from seq2see.model import EncoderDecoder
from seq2see.pipeline.dataset import Dataset, Stream
from seq2see.recipe.schema import TrainingSettings
from seq2see.training.distributed import World
from seq2see.training.losses import Loss, Objective

HASHED_AT_ONCE = 1 << 22


class Feed(Protocol):
    """Computes the loss of any batch of any epoch.

    fingerprint: describes the data, so that a resumed run can tell whether it has changed.
    """

    fingerprint: str

    def batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""
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
        """The rows of a batch, counted from 0 among those that are trained on; of a stream its lanes."""
        ...

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        """The recurrent state that a stream carries to its next batch, for a checkpoint. before: the one that its
        latest batch began with."""
        ...

    def restore(self, carried: dict[str, Tensor]) -> None:
        """Load the state of `carried`; an empty one starts anew."""
        ...


def digest(*arrays: NDArray[np.integer]) -> str:
    """A short hash of all ids, read in blocks, as they may be mapped files."""
    hashed = blake2b(digest_size=8)
    for array in arrays:
        for start in range(0, len(array), HASHED_AT_ONCE):
            hashed.update(np.ascontiguousarray(array[start : start + HASHED_AT_ONCE]).data)
    return hashed.hexdigest()


class RowFeed:
    """Batches of rows of about equal length. world: the processes that share each of them."""

    def __init__(self, data: Dataset, settings: TrainingSettings, world: World | None = None):
        self.data = data
        self.world = World() if world is None else world
        self.plan = BatchPlan(
            data.widths, batch_tokens=settings.batch_tokens, batch_rows=settings.batch_rows, seed=settings.seed
        )
        ids = [part for store in data.stores.values() for part in (store.flat, store.offsets)]
        self.fingerprint = f"{len(data)} rows, {int(data.lengths.sum())} symbols, hash {digest(*ids)}"

    def batches(self, epoch: int) -> int:
        return len(self.plan.epoch(epoch))

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
        rows, idle = self.world.part(self.plan.epoch(epoch)[index])
        batch = self.data.batch(np.tile(rows, objective.passes)).to(device)
        return objective(model, batch, own_share=own_share, idle=idle)

    def rows(self, epoch: int, index: int) -> list[int]:
        rows: list[int] = self.plan.epoch(epoch)[index].tolist()
        return rows

    def carried(self, *, before: bool = False) -> dict[str, Tensor]:
        return {}

    def restore(self, carried: dict[str, Tensor]) -> None:
        pass


class StreamFeed:
    """Truncated backpropagation through one long text, cut into parallel lanes: the recurrent state goes on from chunk
    to chunk, the gradient does not. world: the processes that share the lanes."""

    def __init__(self, stream: Stream, settings: TrainingSettings, world: World | None = None):
        self.stream = stream
        self.bptt, self.lanes = settings.bptt, settings.lanes
        self.world = World() if world is None else world
        self.own, self.idle = self.world.part(np.arange(stream.lanes(self.lanes)))
        self.state: State | None = None
        self._before: State | None = None
        self.fingerprint = f"{len(stream)} symbols, hash {digest(stream.ids)}"

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
