"""Dynamic batching: requests of many clients answered together, by a queue and a thread for each model."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter
from typing import Any

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError, counted
from seq2see.looks import Prediction
from seq2see.modalities.text import TextField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.oracles import Oracle
from seq2see.pipeline.predictor import predict
from seq2see.search import SearchOptions
from seq2see.studio.http import Refused
from seq2see.studio.schemas import Invalid
from seq2see.studio.settings import Limits

# ---------------- How long a question waits for others

LULL = 0.01
"""Seconds without a new question after which those that are there go."""
SHARE = 0.5
"""At most this share of the seconds that the batch before took is waited."""


class Company:
    """Learns from each batch whether waiting is worth it.

    Clients that were answered together ask again together, one after the other within milliseconds. Whoever began with
    the first of them would leave the others to a batch of their own, and small batches cost nearly as much as large
    ones.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter):
        self._clock = clock
        self._rows, self._seconds = 0, 0.0
        self._wanted, self._until = 0, 0.0

    def answered(self, rows: int, seconds: float) -> None:
        """A batch of so many rows took so long."""
        self._rows, self._seconds = rows, seconds

    def begin(self, waiting: int) -> None:
        """The next batch may begin, with so many questions; those who were answered just now may ask again."""
        self._wanted = waiting + self._rows if self._rows > 1 else 0
        self._until = self._clock() + SHARE * self._seconds

    def wait(self, waiting: int) -> float:
        """Seconds to wait for one more question where so many are there; 0: go."""
        if waiting >= self._wanted:
            return 0.0
        return max(min(self._until - self._clock(), LULL), 0.0)


# ---------------- What a request costs, told before anybody begins with it

LOOKS = 100
"""So many places are looked at in about the time that one symbol takes to be read or written."""

Given = str | Sequence[str]


def rooms(fields: Fields, rows: Sequence[Mapping[str, str]], limits: Limits) -> list[int]:
    """How many symbols the model reads of each row, all inputs together; a UserError where one text has too many.

    Characters are counted where a text comes in; how many symbols they make depends on the model, and symbols are what
    takes time.
    """
    return [sum(_room(name, fields, row, limits) for name in fields.inputs) for row in rows]


def _room(name: str, fields: Fields, row: Mapping[str, str], limits: Limits) -> int:
    field = fields.inputs[name]
    size = field.room(row[name])
    if isinstance(field, TextField) and size > limits.symbols:
        most = counted(limits.symbols, "symbol")
        raise UserError(f"input '{name}': {size:,} symbols; allowed: at most {most} (serve --max-symbols)")
    return size


def hypotheses(options: SearchOptions) -> int:
    """How many outputs grow side by side for each input."""
    return max(options.beam, options.n_best)


def check_work(symbols: Sequence[int], limits: Limits, *, width: int, steps: int, models: int = 1) -> None:
    """Refuse what would keep a model from everybody else for long; symbols: of each row, width: outputs that grow for
    it side by side, steps: symbols of the longest, each of which looks at all that was read."""
    work = models * sum(size + width * steps * (LOOKS + size) // LOOKS for size in symbols)
    if work <= limits.work:
        return
    asked = [counted(len(symbols), "input"), f"{counted(sum(symbols), 'symbol')} in all"]
    asked.append(f"{counted(width, 'output')} of up to {counted(steps, 'symbol')} for each")
    if models > 1:
        asked.append(f"{models} models")
    raise UserError(
        f"too much for one request: {', '.join(asked)} is the work of {work:,} symbols; allowed: at most "
        f"{limits.work:,} (serve --max-work); ask for fewer or shorter inputs, a narrower beam, or a smaller max_length"
    )


def check_given(what: str, given: Given | None, limits: Limits) -> None:
    """Texts that clients give as outputs are no longer than those they give as inputs."""
    length = 0 if given is None else sum(map(len, given))
    if length > limits.characters:
        most = counted(limits.characters, "character")
        raise Invalid(f"{what}: {length:,} characters; allowed: at most {most}")


def written(fields: Fields, given: Given) -> int:
    """Symbols of an output that is given, its end counted."""
    if not isinstance(fields.output, TextField):
        return 1
    return (fields.output.room(given) if isinstance(given, str) else len(given)) + 1


def scored(fields: Fields, rows: Sequence[Mapping[str, str]]) -> int:
    """Symbols of the longest of the outputs that rows hold."""
    return max(written(fields, row[OUTPUT]) for row in rows)


# ---------------- Questions of many clients, answered together

Listener = Callable[[int], None]
"""Told how many rows a batch had."""


@dataclass(frozen=True)
class Question:
    """One input and how it is asked about. What lies in `options` is the same for all of a batch; prefix and oracle
    are each input's own. number: of the row in its request, by which samples are drawn; room: symbols of the row."""

    row: Mapping[str, str]
    options: SearchOptions
    number: int = 0
    prefix: tuple[int, ...] = ()
    oracle: Oracle = field(default_factory=dict)
    replace_unknown: bool | None = None
    maps: bool = False
    room: int = 0

    @property
    def manner(self) -> tuple[Any, ...]:
        """What questions of one batch have in common."""
        return (self.options, self.replace_unknown, self.maps)

    @property
    def weight(self) -> int:
        """Symbols that it takes up in a batch, hypotheses counted as `pipeline/predictor.py` counts them."""
        return (self.room + 1) * max(hypotheses(self.options) // 2, 1)


@dataclass(eq=False)
class _Asked:
    """A question, or work of another kind that wants the model for itself, and where its answer goes; held: what must
    be kept in memory until then."""

    work: Question | Callable[[], Any]
    held: Sequence[object]
    future: Future[Any] = field(default_factory=Future)

    def answer(self, answer: Any) -> None:
        self.held = ()
        self.future.set_result(answer)

    def fail(self, error: Exception) -> None:
        self.held = ()
        self.future.set_exception(error)


class Batcher:
    """Answers questions in the order in which they come, those asked in the same manner together.

    While a batch is being answered the next one gathers, and waits a little for those who were answered just now
    (`Company`). A single client is answered at once, and many share the cost of a step. All of a batch are answered
    when the longest is, so long and short questions do not share one: `padded` bounds its rows times the longest of
    them. What an input gets does not depend on its batch, and what is wrong with one is told to the one who asked.

    A future that is cancelled leaves the queue at once, and its place is free for others. A batch that is being
    answered is answered to its end, even where nobody waits for it any more.
    """

    def __init__(
        self, bundles: Sequence[Bundle], *, rows: int, padded: int, waiting: int, told: Listener | None = None
    ):
        self._bundles, self._rows, self._padded, self._most, self._told = list(bundles), rows, padded, waiting, told
        self._queue: deque[_Asked] = deque()
        self._company = Company()
        self._changed = threading.Condition()
        self._closed = False
        self._begun: float | None = None
        self._running = 0
        self._thread = threading.Thread(target=self._work, name="seq2see-batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Questions nobody has begun to answer."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Questions that are being answered."""
        return self._running

    @property
    def full(self) -> bool:
        return len(self._queue) >= self._most

    def problem(self, patience: float) -> str | None:
        """Why nothing is answered: the thread is gone, or is busy with one batch for longer than anybody waits."""
        if not self._thread.is_alive():
            return None if self._closed else "its batches are no longer answered"
        begun = self._begun
        if begun is not None and monotonic() - begun > patience:
            return f"it has been busy with one batch for more than {patience:g} s"
        return None

    def ask(self, questions: Sequence[Question], *, held: Sequence[object] = ()) -> list[Future[Prediction]]:
        """The answers to come, in the order of the questions; all of a request are taken, or none.

        held: what the model needs to answer them. It is kept until then, even where nobody waits for it any more: a
        batch cannot do without one of its rows.
        """
        return self._put(questions, held)

    def do(self, work: Callable[[], Any], *, held: Sequence[object] = ()) -> Future[Any]:
        """Whatever else needs the model, when its turn comes."""
        return self._put([work], held)[0]

    def stop(self) -> None:
        """Begin nothing more; what still waits is cancelled."""
        with self._changed:
            self._closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify()
        for asked in left:
            asked.future.cancel()

    def close(self, grace: float | None = None) -> None:
        """Stop, and finish the batch that is being answered, where it takes no longer than so many seconds."""
        self.stop()
        self._thread.join(grace)

    def _put(self, work: Sequence[Question | Callable[[], Any]], held: Sequence[object]) -> list[Future[Any]]:
        asked = [_Asked(one, tuple(held)) for one in work]
        with self._changed:
            if self._closed:
                raise Refused(503, "the server is closing", headers={"Retry-After": "1"})
            if len(self._queue) + len(asked) > self._most:
                message = f"too many inputs wait for this model (allowed: {self._most:,}); try again in a moment"
                raise Refused(503, message, headers={"Retry-After": "1"})
            self._queue.extend(asked)
            self._changed.notify()
        for one in asked:
            one.future.add_done_callback(self._leave)
        return [one.future for one in asked]

    def _leave(self, future: Future[Any]) -> None:
        """Nobody waits for this answer any more: it is not begun with."""
        if not future.cancelled():
            return
        with self._changed:  # a batch may hold it already, which leaves it out
            for number, asked in enumerate(self._queue):
                if asked.future is future:
                    del self._queue[number]
                    self._changed.notify()
                    return

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            self._run(batch)
            batch.clear()  # what it holds is not kept until the next one comes

    def _run(self, batch: Sequence[_Asked]) -> None:
        running = [asked for asked in batch if asked.future.set_running_or_notify_cancel()]
        self._begun, self._running = monotonic(), len(running)
        questions = [asked for asked in running if isinstance(asked.work, Question)]
        for asked in running:
            if not isinstance(asked.work, Question):
                _settle(asked, asked.work)
        if questions:
            start = perf_counter()
            self._answer(questions)
            self._company.answered(len(questions), perf_counter() - start)
        self._begun, self._running = None, 0

    def _next(self) -> list[_Asked] | None:
        """The oldest question with all that are asked in its manner; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            self._gather()
            if self._closed:
                return None
            if not self._queue:
                return []  # whoever asked has left in the meantime
            first = self._queue.popleft()
            if not isinstance(first.work, Question):
                return [first]
            manner, longest, batch, rest = first.work.manner, first.work.weight, [first], deque[_Asked]()
            while self._queue and len(batch) < self._rows:
                other = self._queue.popleft()
                if isinstance(other.work, Question) and other.work.manner == manner:
                    padded = max(longest, other.work.weight)
                    if (len(batch) + 1) * padded <= self._padded:
                        batch.append(other)
                        longest = padded
                        continue
                rest.append(other)
            self._queue.extendleft(reversed(rest))
            return batch

    def _gather(self) -> None:
        """Wait while others keep coming; the lock is held on entry and on return."""
        self._company.begin(len(self._queue))
        while self._queue and isinstance(self._queue[0].work, Question) and len(self._queue) < self._rows:
            seconds = self._company.wait(len(self._queue))
            if not seconds or not self._changed.wait(seconds):
                return

    def _answer(self, asked: list[_Asked]) -> None:
        """Halve a batch that fails until the one at fault is alone."""
        try:
            found = self._predict([one.work for one in asked if isinstance(one.work, Question)])
        except Exception as error:  # noqa: BLE001 - handed on to whoever asked
            if len(asked) == 1:
                asked[0].fail(error)
                return
            half = len(asked) // 2
            self._answer(asked[:half])
            self._answer(asked[half:])
            return
        for one, prediction in zip(asked, found, strict=True):
            one.answer(prediction)

    def _predict(self, questions: list[Question]) -> list[Prediction]:
        if self._told is not None:
            self._told(len(questions))
        first = questions[0]
        prefixes = [list(one.prefix) for one in questions]
        oracles = [one.oracle for one in questions]
        options = replace(
            first.options,
            prefix=prefixes if any(prefixes) else (),
            oracle=oracles if any(oracles) else None,
        )
        return predict(
            self._bundles,
            [one.row for one in questions],
            options,
            replace_unknown=first.replace_unknown,
            drawn_as=[one.number for one in questions],
            maps=first.maps,
        )


def _settle(asked: _Asked, work: Callable[[], Any]) -> None:
    try:
        answer = work()
    except Exception as error:  # noqa: BLE001 - handed on to whoever asked
        asked.fail(error)
    else:
        asked.answer(answer)
