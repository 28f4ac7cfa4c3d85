"""Dynamic batching: a queue and a thread for each model; requests of many clients are answered together."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic, perf_counter
from typing import Any, Generic, TypeVar

from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.inputs import Oracle
from seq2see.pipeline.predictor import predict
from seq2see.search import SearchOptions
from seq2see.studio.http import RequestError
from seq2see.studio.telemetry import BatchTracer

RETRY_AFTER = {"Retry-After": "1"}

# ---------------------------------------------------------------- how long a batch waits for more inputs

LULL = 0.01
"""Seconds without a new input after which a batch starts."""
SHARE = 0.5
"""A batch waits at most this share of the seconds that the previous one took."""


class QueueDelay:
    """How long a batch waits for more inputs, learned from the previous batch.

    Clients that were answered together ask again together, within milliseconds. A batch that started with the first of
    them would leave the others to a second batch, and a small batch costs nearly as much as a large one. A single
    client never waits.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter):
        self._clock = clock
        self._rows, self._seconds = 0, 0.0
        self._expected, self._deadline = 0, 0.0

    def record(self, rows: int, seconds: float) -> None:
        """Note the size and the duration of the batch that has just been answered."""
        self._rows, self._seconds = rows, seconds

    def start(self, waiting: int) -> None:
        """Begin to gather a batch, with this many inputs in the queue."""
        self._expected = waiting + self._rows if self._rows > 1 else 0
        self._deadline = self._clock() + SHARE * self._seconds

    def remaining(self, waiting: int) -> float:
        """Seconds to wait for the next input, with this many in the queue; 0: start the batch."""
        if waiting >= self._expected:
            return 0.0
        return max(min(self._deadline - self._clock(), LULL), 0.0)


# ---------------------------------------------------------------- clients take turns

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items of several clients. Those of one client keep their order; clients take turns, so that who has queued much
    delays only himself. Not for several threads."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Item]] = OrderedDict()  # whose turn it is comes first
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, client: str, items: Sequence[Item]) -> None:
        """Queue items of a client; a client that had none is last in turn."""
        if items:
            self._clients.setdefault(client, deque()).extend(items)
            self._length += len(items)

    def peek(self) -> Item:
        """The item whose turn it is."""
        return next(iter(self._clients.values()))[0]

    def pop(self) -> Item:
        """Remove the item whose turn it is; its client's next turn comes after all others'."""
        client = next(iter(self._clients))
        self._clients.move_to_end(client)
        item = self._clients[client].popleft()
        self._count_removed(client, 1)
        return item

    def take(self, fits: Callable[[Item], bool], most: int) -> list[Item]:
        """Remove up to `most` items that fit, one of each client in turn, until none is left. Turns stay as they are.

        fits: asked once of an item, which is taken where the answer is True."""
        taken: list[Item] = []
        scans = {client: _Scan(items, fits) for client, items in self._clients.items()}
        active = list(scans.values())
        while active and len(taken) < most:
            active = [scan for scan in active if len(taken) < most and scan.take_next(taken)]
        for client, scan in scans.items():
            removed = len(self._clients[client]) - scan.left
            self._clients[client] = deque(scan.remaining())
            self._count_removed(client, removed)
        return taken

    def remove(self, client: str, is_meant: Callable[[Item], bool]) -> bool:
        """Remove one item of a client; False where it is not in the queue."""
        items = self._clients.get(client, deque())
        for number, item in enumerate(items):
            if is_meant(item):
                del items[number]
                self._count_removed(client, 1)
                return True
        return False

    def displace(self, client: str, count: int, excess: int) -> list[Item] | None:
        """Remove `excess` items of those who have queued most, the newest first, so that a client may queue `count`.

        Nobody is left with fewer than that client will have; None, with nothing removed, where that is not enough."""
        share = len(self._clients.get(client, ())) + count
        others = {name: items for name, items in self._clients.items() if name != client and len(items) > share}
        if sum(len(items) - share for items in others.values()) < excess:
            return None
        removed = []
        for _ in range(excess):
            name = max(others, key=lambda name: len(others[name]))
            removed.append(others[name].pop())
            self._count_removed(name, 1)
        return removed

    def clear(self) -> list[Item]:
        """Remove all items."""
        items = [item for queued in self._clients.values() for item in queued]
        self._clients.clear()
        self._length = 0
        return items

    def _count_removed(self, client: str, count: int) -> None:
        self._length -= count
        if not self._clients[client]:
            del self._clients[client]


class _Scan(Generic[Item]):
    """One pass over a client's items: those that fit are taken one at a time, the others are kept in order."""

    def __init__(self, items: deque[Item], fits: Callable[[Item], bool]):
        self._items, self._fits = iter(items), fits
        self._kept: list[Item] = []
        self.left = len(items)

    def take_next(self, taken: list[Item]) -> bool:
        """Append the next item that fits to `taken`; False where there is none."""
        for item in self._items:
            if self._fits(item):
                taken.append(item)
                self.left -= 1
                return True
            self._kept.append(item)
        return False

    def remaining(self) -> Iterator[Item]:
        yield from self._kept
        yield from self._items


# ---------------------------------------------------------------- the queue


def hypotheses(options: SearchOptions) -> int:
    """Outputs that the search keeps for each input."""
    return max(options.beam, options.n_best)


@dataclass(frozen=True)
class QueuedInput:
    """One input to be predicted. Options are the same for a whole batch, prefixes and oracle belong to the input.

    number: of the row in its request, which seeds its samples; symbols: number of symbols that the model reads."""

    row: Mapping[str, str]
    options: SearchOptions
    number: int = 0
    prefix: tuple[int, ...] = ()
    avoid_prefixes: Sequence[Sequence[int]] = ()
    oracle: Oracle = field(default_factory=dict)
    replace_unknown: bool | None = None
    maps: bool = False
    symbols: int = 0

    @property
    def batch_key(self) -> tuple[Any, ...]:
        """What all inputs of a batch have in common."""
        return (self.options, self.replace_unknown, self.maps)

    @property
    def size(self) -> int:
        """Symbols that the input takes up in a batch, avoided prefixes included; hypotheses count as in
        `pipeline/predictor.py`."""
        return (self.symbols + 1) * max(hypotheses(self.options) // 2, 1) + sum(map(len, self.avoid_prefixes))


Work = Callable[[], Any]


@dataclass(eq=False)
class _QueueItem:
    """An input, or other work that needs the model alone, with the future of its result; held: objects that must stay
    in memory until then; origin: of what request's trace it is."""

    work: QueuedInput | Work
    held: Sequence[object]
    origin: object = None
    future: Future[Any] = field(default_factory=Future)

    def set_result(self, result: Any) -> None:
        self.held = ()
        self.future.set_result(result)

    def set_exception(self, error: Exception) -> None:
        self.held = ()
        self.future.set_exception(error)


class Batcher:
    """Answers inputs in batches, those with the same options together.

    Clients take turns (`FairQueue`): the one whose turn it is decides the options of the next batch, and it is filled
    with one input of each client after the other. So an input waits for the batch that is being computed and for about
    one of each other client, however many inputs they have queued.

    While one batch is computed the next one gathers, and waits a little for clients that were answered just now
    (`QueueDelay`). A batch ends for all its inputs at once, so long and short inputs do not share one: `symbols` limits
    its rows times the longest of them. The result of an input does not depend on its batch, and an input that fails
    fails alone.

    A cancelled future leaves the queue at once. A batch that has started is computed to its end.

    rows, symbols: limits of a batch; queue_size: inputs that may wait; on_batch: called with the rows of each batch.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle],
        *,
        rows: int,
        symbols: int,
        queue_size: int,
        on_batch: Callable[[int], None] | None = None,
        tracer: BatchTracer | None = None,
    ):
        self._bundles, self._max_rows, self._max_symbols = list(bundles), rows, symbols
        self._queue_size, self._on_batch = queue_size, on_batch
        self._tracer = tracer or BatchTracer()
        self._queue: FairQueue[_QueueItem] = FairQueue()
        self._delay = QueueDelay()
        self._changed = threading.Condition()
        self._closed = False
        self._batch_start: float | None = None
        self._running = 0
        self._thread = threading.Thread(target=self._loop, name="seq2see-batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Inputs in the queue."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Inputs in the batch that is being computed."""
        return self._running

    @property
    def full(self) -> bool:
        return len(self._queue) >= self._queue_size

    def problem(self, timeout: float) -> str | None:
        """Why nothing is answered: the thread has ended, or one batch takes longer than clients wait."""
        if not self._thread.is_alive():
            return None if self._closed else "its batches are no longer answered"
        start = self._batch_start
        if start is not None and monotonic() - start > timeout:
            return f"it has been busy with one batch for more than {timeout:g} s"
        return None

    def submit(
        self, inputs: Sequence[QueuedInput], *, client: str = "", held: Sequence[object] = ()
    ) -> list[Future[Prediction]]:
        """Queue all inputs of a request, or refuse all of them.

        client: who asks; held: what the model needs to answer them. It stays in memory until then, even where the
        client has left: a batch cannot do without one of its rows.
        """
        return self._put(inputs, client, held)

    def submit_work(self, work: Work, *, client: str = "", held: Sequence[object] = ()) -> Future[Any]:
        """Queue other work that needs the model."""
        return self._put([work], client, held)[0]

    def stop(self) -> None:
        """Start no further batch, and cancel what waits."""
        with self._changed:
            self._closed = True
            waiting = self._queue.clear()
            self._changed.notify()
        for item in waiting:
            item.future.cancel()

    def close(self, grace: float | None = None) -> None:
        """Stop, and wait up to `grace` seconds for the batch that is being computed."""
        self.stop()
        self._thread.join(grace)

    def _put(self, work: Sequence[QueuedInput | Work], client: str, held: Sequence[object]) -> list[Future[Any]]:
        origin = self._tracer.origin()
        items = [_QueueItem(entry, tuple(held), origin) for entry in work]
        with self._changed:
            if self._closed:
                raise RequestError(503, "the server is closing", headers=RETRY_AFTER)
            displaced = self._make_room(client, len(items))
            self._queue.extend(client, items)
            self._changed.notify()
        for item in displaced:
            item.set_exception(self._overloaded())
        for item in items:
            item.future.add_done_callback(partial(self._remove_cancelled, client))
        return [item.future for item in items]

    def _make_room(self, client: str, count: int) -> list[_QueueItem]:
        """In a full queue, the newest inputs of whoever has queued most give way to a client with fewer."""
        excess = len(self._queue) + count - self._queue_size
        if excess <= 0:
            return []
        displaced = self._queue.displace(client, count, excess)
        if displaced is None:
            raise self._overloaded()
        # From here on nobody can cancel them, which would make setting the exception fail.
        return [item for item in displaced if item.future.set_running_or_notify_cancel()]

    def _overloaded(self) -> RequestError:
        message = f"too many inputs wait for this model (allowed: {self._queue_size:,}); try again in a moment"
        return RequestError(503, message, headers=RETRY_AFTER)

    def _remove_cancelled(self, client: str, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        with self._changed:  # it may be in a batch already, which leaves it out
            if self._queue.remove(client, lambda item: item.future is future):
                self._changed.notify()

    # ------------------------------------------------------------ the thread

    def _loop(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._run(batch)
            batch.clear()  # frees what it holds before the next one comes

    def _next_batch(self) -> list[_QueueItem] | None:
        """The item whose turn it is, with all inputs that can share its batch; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._gather()
            if self._closed:
                return None
            if not self._queue:
                return []  # all clients have left in the meantime
            first = self._queue.pop()
            if not isinstance(first.work, QueuedInput):
                return [first]
            batch = _Batch(first.work, self._max_symbols)
            return [first, *self._queue.take(batch.add, self._max_rows - 1)]

    def _gather(self) -> None:
        """Wait while inputs keep coming; the lock is held on entry and on return."""
        self._delay.start(len(self._queue))
        while self._queue and isinstance(self._queue.peek().work, QueuedInput) and len(self._queue) < self._max_rows:
            seconds = self._delay.remaining(len(self._queue))
            if not seconds or not self._changed.wait(seconds):
                return

    def _run(self, batch: Sequence[_QueueItem]) -> None:
        running = [item for item in batch if item.future.set_running_or_notify_cancel()]
        self._batch_start, self._running = monotonic(), len(running)
        inputs = [item for item in running if isinstance(item.work, QueuedInput)]
        for item in running:
            if not isinstance(item.work, QueuedInput):
                with self._tracer.batch(1, [item.origin]):
                    _run_work(item, item.work)
        if inputs:
            start = perf_counter()
            with self._tracer.batch(len(inputs), [item.origin for item in inputs]):
                self._answer(inputs)
            self._delay.record(len(inputs), perf_counter() - start)
        self._batch_start, self._running = None, 0

    def _answer(self, items: list[_QueueItem]) -> None:
        """Predict a batch; one that fails is halved until the input at fault is alone."""
        try:
            predictions = self._predict([item.work for item in items if isinstance(item.work, QueuedInput)])
        except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
            if len(items) == 1:
                items[0].set_exception(error)
                return
            half = len(items) // 2
            self._answer(items[:half])
            self._answer(items[half:])
            return
        for item, prediction in zip(items, predictions, strict=True):
            item.set_result(prediction)

    def _predict(self, inputs: list[QueuedInput]) -> list[Prediction]:
        if self._on_batch is not None:
            self._on_batch(len(inputs))
        first = inputs[0]
        prefixes = [list(entry.prefix) for entry in inputs]
        avoided = [entry.avoid_prefixes for entry in inputs]
        oracles = [entry.oracle for entry in inputs]
        options = replace(
            first.options,
            prefix=prefixes if any(prefixes) else (),
            avoid_prefixes=avoided if any(avoided) else (),
            oracle=oracles if any(oracles) else None,
        )
        return predict(
            self._bundles,
            [entry.row for entry in inputs],
            options,
            replace_unknown=first.replace_unknown,
            drawn_as=[entry.number for entry in inputs],
            maps=first.maps,
        )


class _Batch:
    """What inputs may share a batch with its first one."""

    def __init__(self, first: QueuedInput, max_symbols: int):
        self._key, self._longest, self._rows = first.batch_key, first.size, 1
        self._max_symbols = max_symbols

    def add(self, item: _QueueItem) -> bool:
        """Count the item in, and return True, where it fits."""
        if not isinstance(item.work, QueuedInput) or item.work.batch_key != self._key:
            return False
        longest = max(self._longest, item.work.size)
        if (self._rows + 1) * longest > self._max_symbols:
            return False
        self._rows, self._longest = self._rows + 1, longest
        return True


def _run_work(item: _QueueItem, work: Work) -> None:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - raised again where the result is awaited
        item.set_exception(error)
    else:
        item.set_result(result)
