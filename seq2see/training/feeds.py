"""Feeds of batches: rows of a table, or a contiguous stream. Batches are addressed by (epoch, index)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from seq2see.data.batches import BatchPlan
from seq2see.decoders import State
from seq2see.model import EncoderDecoder
from seq2see.pipeline.dataset import Dataset, Stream, digest_arrays
from seq2see.recipe.schema import TrainingSettings
from seq2see.training.losses import Loss, Objective


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

    def carried(self) -> dict[str, Tensor]:
        """The recurrent state that a stream carries to its next batch, for a checkpoint."""
        ...

    def restore(self, carried: dict[str, Tensor]) -> None:
        """Load the state of `carried`; an empty one starts anew."""
        ...


class RowFeed:
    """Batches of rows of about equal length."""

    def __init__(self, data: Dataset, settings: TrainingSettings):
        self.data = data
        self.plan = BatchPlan(
            data.widths, batch_tokens=settings.batch_tokens, batch_rows=settings.batch_rows, seed=settings.seed
        )
        self.fingerprint = f"{len(data)} rows, {self.plan.symbols} symbols, hash {data.digest}"

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
        rows = self.plan.epoch(epoch)[index]
        batch = self.data.batch(np.tile(rows, objective.passes)).to(device)
        return objective(model, batch, own_share=own_share)

    def carried(self) -> dict[str, Tensor]:
        return {}

    def restore(self, carried: dict[str, Tensor]) -> None:
        pass


class StreamFeed:
    """Truncated backpropagation through one long text, cut into parallel lanes: the recurrent state goes on from chunk
    to chunk, the gradient does not."""

    def __init__(self, stream: Stream, settings: TrainingSettings):
        self.stream = stream
        self.bptt, self.lanes = settings.bptt, settings.lanes
        self.state: State | None = None
        self.fingerprint = f"{len(stream)} symbols, hash {digest_arrays(stream.ids)}"

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
        inputs, targets = chunk.inputs.to(device), chunk.targets.to(device)
        ready = model.ready({}, len(inputs))
        state = model.begin(ready) if index == 0 or self.state is None else self.state
        step = model.read_on(ready, inputs, state)
        self.state = step.state.detach()
        everywhere = torch.ones_like(targets, dtype=torch.bool)
        total = model.head.loss(step, ready, targets, mask=everywhere, smoothing=objective.smoothing)
        return Loss(total, float(targets.numel()), targets.numel())

    def carried(self) -> dict[str, Tensor]:
        return {} if self.state is None else self.state.tensors()

    def restore(self, carried: dict[str, Tensor]) -> None:
        self.state = State.from_tensors(carried) if carried else None
