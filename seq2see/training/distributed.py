"""Training by several processes, on one machine or many: `torchrun --nproc-per-node 2 -m seq2see train ...`.

Every batch of the plan is shared out between the processes by its rows, and the sums of their gradients are divided by
the weight of all targets. The plan does not depend on the number of processes, so they learn what one would (to
rounding, where nothing is drawn), lose no row, and a run can go on with another number of them. `World` is what the
trainer asks; alone it does nothing. [docs/distributed.md](../../docs/distributed.md) says how to start them.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm

from seq2see.errors import PeerLost, RankError, SharedError, UserError, processes
from seq2see.training.losses import Loss

T = TypeVar("T")
Beat = Callable[[], None]

ONE_PROCESS = {
    "compare": "it trains variants one after the other; start one process for each part of --vary, each with its --out",
    "crossval": "it trains one fold after the other",
    "tune": "it trains one trial after the other",
}
"""Commands with a reason of their own why they are not for several processes."""
SHARED_COMMANDS = ("train", "predict")
"""Commands in which each process does a part."""


def check_command(name: str) -> None:
    """Refuse a command that several processes would only repeat."""
    if processes() > 1 and name not in SHARED_COMMANDS:
        reason = ONE_PROCESS.get(name, "every process would do the same")
        allowed = ", ".join(SHARED_COMMANDS)
        raise UserError(f"{name}: not with {processes()} processes: {reason}; torchrun is for: {allowed}")


class World:
    """The processes of a run. This is the world of a single one, in which nothing is shared out."""

    rank, size = 0, 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and tells the user."""
        return self.rank == 0

    def check(self, network: nn.Module) -> None:
        """Refuse a network that cannot be trained by parts of a batch."""

    def part(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        """(this process's rows of a batch, whether it has none). One without rows gets the first row, so that it takes
        part in everything; what it computes counts nothing."""
        return rows, False

    def seed(self, seed: int, update: int) -> None:
        """Draw the random numbers of an update, such that no two processes draw the same."""

    def backward(self, loss: Loss, network: nn.Module) -> Loss:
        """Compute the gradient of the mean loss of the whole batch. Returns the loss of the whole batch."""
        loss.mean.backward()
        return loss

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over all processes."""
        return list(numbers)

    def leader(self, value: T) -> T:
        """The value that the leader has."""
        return value

    def gathered(self, value: T) -> list[T]:
        """The values of all processes, by rank."""
        return [value]

    def broadcast_weights(self, network: nn.Module) -> None:
        """Give every process the leader's weights and buffers."""

    def spread(self, work: Callable[[list[int]], list[T]], parts: Sequence[list[int]]) -> list[list[T]]:
        """The results of some work on each part, of which every process does its share."""
        return [work(part) for part in parts]

    def leader_first(self, work: Callable[[Beat], None]) -> None:
        """Have the leader do some work (that it stores on disk), then the others, who find it done. Work that takes
        long calls its argument now and then, so that the others know that it is not stuck."""
        work(lambda: None)

    @contextmanager
    def together(self) -> Iterator[None]:
        """A UserError inside, of any process, is raised in all of them; inside, processes exchange nothing."""
        yield


class Processes(World):
    """The world of several processes, which exchange numbers by torch.distributed."""

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def check(self, network: nn.Module) -> None:
        network.train()
        for name, module in network.named_modules():
            if isinstance(module, _BatchNorm) and module.training:
                raise UserError(
                    f"{name}: batch normalisation takes its statistics of a whole batch, and each of {self.size} "
                    "processes has a part of it; train in one process, or with a pre-trained backbone, whose "
                    "statistics are kept (encoder.pretrained)"
                )

    def part(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
        own = rows[self.rank :: self.size]  # rows are sorted by length: each process gets short and long ones
        return (own, False) if len(own) else (rows[:1], True)

    def seed(self, seed: int, update: int) -> None:
        drawn = np.random.SeedSequence([abs(seed), int(seed < 0), update, self.rank]).generate_state(1, np.uint64)
        torch.manual_seed(int(drawn[0] >> np.uint64(1)))

    def backward(self, loss: Loss, network: nn.Module) -> Loss:
        loss.total.backward()
        learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
        # an optimiser leaves a weight without gradient alone, so it matters whether any process has one
        present = [float(parameter.grad is not None) for parameter in learned]
        terms = sorted(loss.terms)
        own = [float(loss.total.detach()), loss.count, loss.targets, *(loss.terms[name] for name in terms), *present]
        total, count, targets, *rest = self.sums(own)
        used = [parameter for parameter, there in zip(learned, rest[len(terms) :], strict=True) if there]
        self._sum_gradients(used, count)
        whole = loss.total.detach().new_tensor(total)
        return Loss(whole, count, round(targets), dict(zip(terms, rest, strict=False)))

    def _sum_gradients(self, parameters: Sequence[nn.Parameter], count: float) -> None:
        """Sum the gradients over all processes in one exchange, and divide them by the weight of all targets."""
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        with _exchange():
            distributed.all_reduce(flat)
        flat /= count
        for gradient, summed in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
            gradient.copy_(summed.view(gradient.shape))

    def sums(self, numbers: Sequence[float]) -> list[float]:
        summed = torch.tensor(numbers, dtype=torch.float64)
        with _exchange():
            distributed.all_reduce(summed)
        values: list[float] = summed.tolist()
        return values

    def leader(self, value: T) -> T:
        values = [value]
        with _exchange():
            distributed.broadcast_object_list(values, src=0)
        return values[0]

    def gathered(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        with _exchange():
            distributed.all_gather_object(values, value)
        return values

    def broadcast_weights(self, network: nn.Module) -> None:
        with torch.no_grad(), _exchange():
            for tensor in [*network.parameters(), *network.buffers()]:
                plain = tensor.detach().contiguous()  # a copy where the memory format is another (channels last)
                distributed.broadcast(plain, src=0)
                tensor.copy_(plain)

    def spread(self, work: Callable[[list[int]], list[T]], parts: Sequence[list[int]]) -> list[list[T]]:
        own = [work(part) for part in parts[self.rank :: self.size]]
        every = self.gathered(own)
        return [every[number % self.size][number // self.size] for number in range(len(parts))]

    def leader_first(self, work: Callable[[Beat], None]) -> None:
        if not self.leads:
            while message := self.leader(""):
                if message != _BUSY:
                    raise SharedError(message)
            work(lambda: None)
            return
        try:
            work(lambda: _told(self.leader(_BUSY)))
        except UserError as error:
            self.leader(str(error))
            raise SharedError(str(error)) from error
        self.leader("")

    @contextmanager
    def together(self) -> Iterator[None]:
        problem: UserError | None = None
        try:
            yield
        except UserError as error:
            problem = error
        problems = self.gathered(None if problem is None else str(problem))
        messages = [(rank, message) for rank, message in enumerate(problems) if message is not None]
        if messages:
            rank, message = messages[0]
            raise SharedError(message if rank == 0 else f"rank {rank}: {message}") from problem


_BUSY = "busy"


def _told(_: str) -> None:
    """A message was sent; what it says is known here."""


@contextmanager
def _exchange() -> Iterator[None]:
    """What torch raises where another process has ended, or does not answer in time, as PeerLost."""
    try:
        yield
    except RuntimeError as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise PeerLost(f"another process of the run has ended or does not answer ({first})") from error


# ---------------------------------------------------------------- joining


@contextmanager
def join(device: str, *, minutes: float) -> Iterator[World]:
    """The world that torchrun has started this process in, or that of a single process.

    device: as the recipe names it; minutes: how long a process waits for another before it gives up.
    """
    if processes() == 1:
        yield World()
        return
    chosen = local_device(device)
    if not distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if chosen.startswith("cuda") else "gloo"
        try:
            _connect(backend, timedelta(minutes=minutes))
        except (RuntimeError, ValueError) as error:
            raise PeerLost(f"the {processes()} processes of the run do not find each other: {error}") from error
        atexit.register(_leave)
    world = Processes()
    try:
        yield world
    except (SharedError, SystemExit, KeyboardInterrupt):
        raise  # all processes have it
    except UserError as error:
        _leave()
        raise (error if world.leads else RankError(f"rank {world.rank}: {error}")) from None
    except BaseException:
        _leave()
        raise


def _connect(backend: str, timeout: timedelta) -> None:
    """Find the other processes. torchrun keeps the store by which they do over its restarts, and a process must not
    find the addresses of those before it: each attempt has keys of its own."""
    from torch._C._distributed_c10d import PrefixStore  # late: some builds of torch are without
    from torch.distributed.rendezvous import rendezvous

    store, rank, size = next(rendezvous("env://", timeout=timeout))
    attempt = f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}-of-{size}"
    store = PrefixStore(f"seq2see/{attempt}", store)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)


def _leave() -> None:
    """Close the connections to the other processes, so that they do not wait for this one. Otherwise these stay until
    the process ends: its next run uses them again."""
    if distributed.is_initialized():
        with suppress(RuntimeError):
            distributed.destroy_process_group()


def local_device(device: str) -> str:
    """The device of this process: of several GPUs of a machine, each process takes its own."""
    if processes() == 1 or device.partition(":")[0] != "cuda":
        return device
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if device != "cuda":
        raise UserError(
            f"training.device: {device} given, and {processes()} processes cannot share a GPU; allowed: cuda, of which "
            "each takes its own, or cpu"
        )
    if torch.cuda.is_available() and local >= torch.cuda.device_count():
        raise UserError(
            f"training.device: process {local} of this machine has no GPU, there are {torch.cuda.device_count()}; "
            "start fewer (--nproc-per-node)"
        )
    return f"cuda:{local}"


# ---------------------------------------------------------------- restarts


def launch_name() -> str | None:
    """What all processes that one call of torchrun has started, restarts included, have in common; None without it."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    return name if name != "none" else f"{socket.gethostname()}:{os.getppid()}"


def is_restart() -> bool:
    """Whether torchrun has started this process after another one failed."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") not in ("", "0")
