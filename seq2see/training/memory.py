"""Whether a training fits into memory: the weights before they are allocated, the largest batch before the first
update."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from seq2see.cells import CellSettings
from seq2see.data.batches import Batch, release
from seq2see.data.columns import OUTPUT
from seq2see.data.vocabulary import EOS
from seq2see.decoders.base import WrittenSettings
from seq2see.errors import UserError, counted
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import Bundle, meta_network, vocabulary_sizes
from seq2see.pipeline.dataset import ROWS_AT_ONCE
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.weights import machine_memory
from seq2see.recipe import Recipe
from seq2see.recipe.schema import flatten
from seq2see.training.checkpoints import random_state, restore_random_state
from seq2see.training.feeds import Feed, RowFeed
from seq2see.training.losses import Loss, Objective
from seq2see.training.optimizer import autocast
from seq2see.training.rewards import most_drawn, without_dropout

# ---------------------------------------------------------------- the weights

BYTES = 4
GIGABYTE = 1e9
SIZES = ("size", "layers", "readout", "positions", "filters", "feedforward", "longest", "pooling_size")
MOST_LISTED = 3
HUGE = 1 << 31


def check_fits(recipe: Recipe, fields: Fields, network: nn.Module | None = None) -> None:
    """Refuse a model whose weights, gradients and optimiser state exceed the machine's memory.

    network: the model, if it is built already. Without it, parameters are counted on the meta device, which takes
    milliseconds and no memory, so that a model that is too large is refused before anything is allocated. Activations
    are not counted, as they depend on the batch: a model that passes may still be too large.
    """
    memory = machine_memory()
    if memory is None:
        return
    each = BYTES * _copies(recipe)
    needed = _lower_bound(recipe) * each
    if needed <= memory:
        network = meta_network(recipe, vocabulary_sizes(recipe, fields)) if network is None else network
        needed = sum(parameter.numel() for parameter in network.parameters()) * each
    if needed > memory:
        raise UserError(
            f"the model is too large for this machine: training it takes at least {needed / GIGABYTE:,.0f} GB (weights,"
            f" gradients and what the optimizer keeps), and there are {memory / GIGABYTE:,.1f} GB; what makes it so"
            f" large: {', '.join(_largest(recipe, fields))}"
        )


def _lower_bound(recipe: Recipe) -> int:
    """A lower bound of the number of parameters, for sizes beyond what torch can represent.

    A recurrent layer has at least size * size parameters; a size of billions counts at least itself.
    """
    readers = [recipe.encoder_of(name) for name in recipe.inputs if recipe.reader_of(name) == name]
    cells: list[CellSettings | WrittenSettings] = [reader for reader in readers if isinstance(reader, CellSettings)]
    if isinstance(recipe.decoder, WrittenSettings) and not recipe.decoder.own and not recipe.output.one_step:
        cells.append(recipe.decoder)
    huge = sum(size for size in _sizes(recipe).values() if size > HUGE)
    return huge + sum(cell.layers * cell.size**2 for cell in cells)


def _copies(recipe: Recipe) -> int:
    """Numbers held for each parameter: weight, gradient, optimiser state. On another device only weights are held
    here."""
    settings = recipe.training
    if settings.device.partition(":")[0] != "cpu":
        return 1
    if settings.optimizer == "sgd":
        return 3 if settings.momentum else 2
    return 4


def _largest(recipe: Recipe, fields: Fields) -> list[str]:
    """The keys with the largest numbers, as 'encoder.size 4,096'."""
    sizes = _sizes(recipe)
    for name, field in fields.all.items():
        key = name if name == OUTPUT else f"inputs.{name}"
        sizes[f"{key}.vocabulary"] = field.size
    ordered = sorted(sizes, key=lambda key: -sizes[key])
    least = sizes[ordered[0]] // 10
    return [f"{key} {sizes[key]:,}" for key in ordered[:MOST_LISTED] if sizes[key] >= least]


def _sizes(recipe: Recipe) -> dict[str, int]:
    """{path: value} of the settings that are sizes."""
    settings = flatten(recipe.to_dict())
    return {path: value for path, value in settings if path.rpartition(".")[2] in SIZES and isinstance(value, int)}


# ---------------------------------------------------------------- the largest batch

LONGEST_MEASURED = 1000
"""Symbols of a row that is measured; a longer one takes at least as much more as it is longer."""
FEW = 2
"""Rows that are measured, and twice as many."""
SMALL = 1 << 28
"""Batches below so many bytes are not looked at more closely: any machine has as much."""
MARGIN = 1.2
"""What is allowed for what the allocator takes beyond the tensors themselves."""


def check_batch(
    bundle: Bundle, feed: Feed, processes: int = 1, *, teachers: Sequence[EncoderDecoder] = ()
) -> str | None:
    """Refuse a batch that cannot fit into this machine or container, with the setting that would make it fit. Returns a
    note where it fits, but not beside what other programs use now; None where it fits, or that is not known.

    processes: that share each batch. The memory of a few rows and of twice as many is measured, by updates without a
    step; each further row takes as much. teachers: of `loss.distillation`.
    """
    if not isinstance(feed, RowFeed) or not len(feed.data) or bundle.device.type != "cpu":
        return None
    limit, free = memory_limit(), free_memory()
    if limit is None or free is None:
        return None
    settings = bundle.recipe.training
    longest, row, measured = _longest_rows(feed.data.widths)
    rows = max(1, min(settings.batch_rows, settings.batch_tokens // max(longest, 1), len(feed.data)))
    own = -(-rows // processes)
    longer = max(longest / max(measured, 1), 1.0)
    needed = int(batch_bytes(bundle, feed, row, own, teachers=teachers) * MARGIN * longer)
    if needed < min(SMALL, limit) or needed <= free:
        return None
    largest = f"a batch of {counted(rows, 'row')} of {counted(longest, 'symbol')}"
    takes = f"{largest} takes about {needed / GIGABYTE:,.1f} GB"
    if needed > limit:
        fitting = _smaller(bundle.recipe, rows, longest, limit / needed)
        raise UserError(f"{takes}, and there are {limit / GIGABYTE:,.1f} GB; {fitting}")
    return (
        f"{takes}, and {free / GIGABYTE:,.1f} GB are free now: the system may end the run; "
        f"{_smaller(bundle.recipe, rows, longest, free / needed)}"
    )


def _longest_rows(widths: NDArray[np.integer]) -> tuple[int, int, int]:
    """(symbols of the longest row; the longest row that is measured, or the shortest where all are too long; its
    symbols). The widths of a large table are mapped, and looked at in pieces."""
    longest = row = measured = 0
    best: int | None = None
    for start in range(0, len(widths), ROWS_AT_ONCE):
        symbols = np.zeros(len(widths[start : start + ROWS_AT_ONCE]), dtype=np.int64)
        for column in widths[start : start + ROWS_AT_ONCE].T:
            symbols += column
        longest = max(longest, int(symbols.max()))
        keys = np.where(symbols <= LONGEST_MEASURED, symbols, -symbols)
        place = int(keys.argmax())
        if best is None or keys[place] > best:
            best, row, measured = int(keys[place]), start + place, int(symbols[place])
    release(widths)
    return longest, row, measured


def _smaller(recipe: Recipe, rows: int, longest: int, share: float) -> str:
    """The setting that makes a batch take this share of its memory, and a little less."""
    fitting = int(rows * share * 0.9)
    if fitting < 1:
        keys = [f"inputs.{name}.max_length" for name in recipe.texts]
        keys += ["output.max_length"] if hasattr(recipe.output, "max_length") else []
        return f"a single row is too long: set {' or '.join(keys) or 'a smaller input'}, or leave such rows out"
    if rows >= recipe.training.batch_rows:
        return f"set training.batch_rows={fitting}"
    return f"set training.batch_tokens={fitting * longest}"


def batch_bytes(bundle: Bundle, feed: RowFeed, row: int, times: int, *, teachers: Sequence[EncoderDecoder] = ()) -> int:
    """Bytes of an update of this row, so many times; of more than a few it is extrapolated."""
    if times <= 2 * FEW:
        return update_bytes(bundle, feed, [row] * times, teachers=teachers)
    few, more = (update_bytes(bundle, feed, [row] * rows, teachers=teachers) for rows in (FEW, 2 * FEW))
    return few + (more - few) * (times - FEW) // FEW


def update_bytes(bundle: Bundle, feed: RowFeed, rows: list[int], *, teachers: Sequence[EncoderDecoder] = ()) -> int:
    """The most bytes of tensors that an update of these rows holds at once, beside the weights, in the part of the run
    that takes most. It changes nothing: neither weights, nor random numbers."""
    objective = Objective(bundle.recipe.loss, bundle.fields, teachers=teachers)
    network, random, reward = bundle.network, random_state(bundle.device), bundle.recipe.loss.reward
    network.train()

    def batch_of(passes: int) -> Batch:
        return feed.data.batch(np.tile(np.array(rows), passes)).to(bundle.device)

    peaks = []
    try:
        with torch.random.fork_rng(devices=[]), autocast(bundle.recipe.training.precision, bundle.device):
            if not reward.always:
                batch = batch_of(objective.passes)
                peaks.append(_peak(network, lambda: objective(network, batch)))
            if reward.metric != "none":
                batch = batch_of(1)
                peaks.append(_peak(network, lambda: _longest_draws(objective, network, batch)))
    finally:
        restore_random_state(bundle.device, random)
    return max(peaks)


def _peak(network: EncoderDecoder, compute: Callable[[], Loss]) -> int:
    """The most bytes that a loss and its gradient hold at once."""
    with Allocations() as allocated:
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        torch.autograd.grad(compute().total, parameters, allow_unused=True)
    return int(allocated.most)


def _longest_draws(objective: Objective, network: EncoderDecoder, batch: Batch) -> Loss:
    """The loss of rewarded outputs, none of which ends before it is cut off. That they are drawn takes less."""
    outputs = [(EOS,) * most_drawn(network, batch)] * (objective.settings.reward.samples * len(batch.rows))
    with without_dropout(network):
        return objective.rewarded(network, batch, outputs, torch.zeros(len(outputs)))


class Allocations(TorchDispatchMode):
    """Counts the bytes of all tensors that operations give while it is active. most: at any one time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: dict[int, int] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and not tensor.is_sparse and tensor.layout == torch.strided:
                self._add(tensor.untyped_storage())
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = storage.nbytes()
        self.now += storage.nbytes()
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.now -= self._known.pop(key, 0)


# ---------------------------------------------------------------- the machine's memory


def memory_limit(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that this process may use at most: of the machine, and of its container. root: where the kernel shows the
    limits of the container."""
    known = [size for size in (machine_memory(), _container_limit(root)) if size is not None]
    return min(known) if known else None


def free_memory(root: Path = Path("/sys/fs/cgroup"), system: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes that this process can still take, of the machine and of its container; None where it is not known."""
    free = []
    if (available := _entry(system, "MemAvailable:")) is not None:
        free.append(1024 * available)
    limit = _container_limit(root)
    used = _number(root / "memory.current") or _number(root / "memory" / "memory.usage_in_bytes")
    if limit is not None and used is not None:
        cached = _entry(root / "memory.stat", "inactive_file") or 0  # given back where it is needed
        free.append(max(limit - used + cached, 0))
    return min(free) if free else machine_memory()


def _container_limit(root: Path) -> int | None:
    return _number(root / "memory.max") or _number(root / "memory" / "memory.limit_in_bytes")


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None


def _entry(path: Path, name: str) -> int | None:
    """The number behind a name, in a file of lines."""
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, ValueError):
        return None
    found = [line.split() for line in lines if line.startswith(name)]
    return int(found[0][1]) if found and len(found[0]) > 1 and found[0][1].isdecimal() else None
