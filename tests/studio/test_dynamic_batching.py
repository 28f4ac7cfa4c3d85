"""Inputs are batched where they can be, wait their turn, and fail alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

import seq2see
from seq2see.api import Model
from seq2see.errors import UserError
from seq2see.pipeline.predictor import answer_options
from seq2see.search import SearchOptions
from seq2see.studio.dynamic_batching import LULL, SHARE, Batcher, QueueDelay, QueuedInput
from seq2see.studio.http import RequestError
from seq2see.studio.model_repository import ModelRepository, ServedModel, parse_names


@pytest.fixture(scope="module")
def model(speller: Path) -> Model:
    return seq2see.load(speller)


@pytest.fixture
def sizes() -> list[int]:
    return []


@pytest.fixture
def batcher(model: Model, sizes: list[int]) -> Iterator[Batcher]:
    batches = Batcher(model.bundles, rows=8, symbols=400, queue_size=20, on_batch=sizes.append)
    yield batches
    batches.close()


def hold(batcher: Batcher) -> threading.Event:
    """Keep the model busy until the event is set, so that questions gather."""
    busy, go = threading.Event(), threading.Event()

    def work() -> None:
        busy.set()
        assert go.wait(60)

    batcher.submit_work(work)
    assert busy.wait(60)
    return go


def question(word: str, options: SearchOptions, **more: object) -> QueuedInput:
    return QueuedInput({"source": word}, options, **more)  # type: ignore[arg-type]


def test_questions_of_one_manner_go_together_up_to_the_limit(batcher: Batcher, model: Model, sizes: list[int]) -> None:
    narrow, wide = (answer_options(model.recipe, beam=beam) for beam in (1, 4))
    go = hold(batcher)
    asked = batcher.submit([question("ab", wide if number % 3 == 0 else narrow) for number in range(18)])
    assert batcher.waiting == 18
    go.set()
    found = [future.result(60) for future in asked]
    assert sizes == [6, 8, 4]  # six of the first manner, twelve of the other
    assert [len(one.alternatives) for one in found[:3]] == [3, 0, 0]


def test_avoided_prefixes_count_towards_the_size_of_a_batch(batcher: Batcher, model: Model, sizes: list[int]) -> None:
    options = answer_options(model.recipe, beam=2)
    go = hold(batcher)
    asked = batcher.submit([question("ab", options, avoid_prefixes=[[4] * 50] * 4) for _ in range(4)])
    go.set()
    assert all(future.result(60) for future in asked)
    assert sizes == [1] * 4, "two of them are more than the 400 symbols of a batch"


def test_the_one_at_fault_fails_alone(batcher: Batcher, model: Model) -> None:
    options = answer_options(model.recipe)
    good = question("abc", options)
    bad = question("abc", options, oracle={0: {"source": [1.0]}})
    go = hold(batcher)
    asked = batcher.submit([good, good, bad, good, good])
    go.set()
    with pytest.raises(UserError, match="1 weight for 'source', which has 3 places"):
        asked[2].result(60)
    expected = model.predict("abc")
    assert {asked[number].result(60).text for number in (0, 1, 3, 4)} == {expected.text}


def test_more_than_may_wait_is_refused_whole(batcher: Batcher, model: Model) -> None:
    options = answer_options(model.recipe)
    go = hold(batcher)
    asked = batcher.submit([question("a", options)] * 15)
    with pytest.raises(RequestError, match="too many inputs wait for this model \\(allowed: 20\\)") as refused:
        batcher.submit([question("a", options)] * 6)
    assert refused.value.status == 503
    assert batcher.waiting == 15
    go.set()
    assert all(future.result(60) for future in asked)


def test_questions_that_nobody_waits_for_leave_the_queue(batcher: Batcher, model: Model, sizes: list[int]) -> None:
    options = answer_options(model.recipe)
    go = hold(batcher)
    gone = [*batcher.submit([question("a", options)] * 15), batcher.submit_work(lambda: None)]
    kept = batcher.submit([question("ab", options)] * 2)
    assert all(future.cancel() for future in gone)
    assert batcher.waiting == 2
    more = batcher.submit([question("b", options)] * 18)  # as many as may wait, beside the two
    go.set()
    assert all(future.result(60) for future in (*kept, *more))
    assert sum(sizes) == 20


def test_a_queue_that_empties_while_it_gathers_goes_on(batcher: Batcher, model: Model) -> None:
    options = answer_options(model.recipe)
    for _ in range(3):
        assert all(future.result(60) for future in batcher.submit([question("a", options)] * 3))
        for future in batcher.submit([question("a", options)] * 3):
            future.cancel()
    (last,) = batcher.submit([question("a", options)])
    assert last.result(60).text


def test_what_still_waits_at_the_end_is_cancelled(model: Model) -> None:
    batches = Batcher(model.bundles, rows=8, symbols=400, queue_size=20)
    go = hold(batches)
    (asked,) = batches.submit([question("a", answer_options(model.recipe))])
    closing = threading.Thread(target=batches.close)
    closing.start()
    with pytest.raises(CancelledError):
        asked.result(60)
    go.set()
    closing.join(60)
    with pytest.raises(RequestError):
        batches.submit_work(lambda: None)


def test_a_short_question_does_not_wait_for_the_end_of_a_long_one(
    batcher: Batcher, model: Model, sizes: list[int]
) -> None:
    options = answer_options(model.recipe, beam=1)
    go = hold(batcher)
    sizes_in = [9, 299, 9, 9, 9, 9]  # of 400 symbols in all: two rows as long as the longest are too many
    asked = batcher.submit([question("ab", options, symbols=size) for size in sizes_in])
    done: list[int] = []
    for number, future in enumerate(asked):
        future.add_done_callback(lambda _, number=number: done.append(number))
    go.set()
    assert all(future.result(60) for future in asked)
    assert (sizes, done) == ([5, 1], [0, 2, 3, 4, 5, 1])


def test_one_input_of_another_client_waits_for_one_batch_not_for_all(
    batcher: Batcher, model: Model, sizes: list[int]
) -> None:
    """The other's input has options of its own, so that it cannot share a batch with what was queued before it."""
    greedy, wide = (answer_options(model.recipe, beam=beam) for beam in (1, 4))
    go = hold(batcher)
    many = batcher.submit([question("ab", greedy)] * 18, client="many")
    (single,) = batcher.submit([question("ab", wide)], client="single")
    done: list[str] = []
    for future in many:
        future.add_done_callback(lambda _: done.append("many"))
    single.add_done_callback(lambda _: done.append("single"))
    go.set()
    assert all(future.result(60) for future in (*many, single))
    assert sizes[0] == 8
    assert done.index("single") == 8, "after the first batch of the other"


def test_a_full_queue_has_room_for_who_has_queued_less(batcher: Batcher, model: Model) -> None:
    options = answer_options(model.recipe)
    go = hold(batcher)
    many = batcher.submit([question("a", options)] * 20, client="many")
    few = batcher.submit([question("b", options)] * 3, client="few")
    assert batcher.waiting == 20
    for future in many[-3:]:
        with pytest.raises(RequestError, match="too many inputs wait") as refused:
            future.result(60)
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "1"})
    with pytest.raises(RequestError):
        batcher.submit([question("a", options)], client="many")
    go.set()
    assert all(future.result(60) for future in (*many[:-3], *few))


def test_the_end_does_not_wait_for_a_batch_beyond_its_grace(model: Model) -> None:
    first, second = (
        ServedModel(name, model, Batcher(model.bundles, rows=8, symbols=400, queue_size=20))
        for name in ("first", "second")
    )
    held = [hold(one.batcher) for one in (first, second)]
    closing = threading.Thread(target=ModelRepository([first, second]).close, args=(0.2,), daemon=True)
    closing.start()
    closing.join(20)
    still = closing.is_alive()
    for go in held:
        go.set()
    assert not still


def test_names_of_models() -> None:
    with pytest.raises(UserError, match=r"two models are called 'a' .*; give one another name: NAME=other/a"):
        parse_names(["runs/a", "other/a"])
    with pytest.raises(UserError, match="expected FOLDER, or NAME=FOLDER"):
        parse_names(["x/y=runs/a"])


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_asks_alone_never_waits() -> None:
    delay = QueueDelay(Clock())
    delay.start(1)
    assert delay.remaining(1) == 0
    delay.record(1, 5.0)
    delay.start(1)
    assert delay.remaining(1) == 0


def test_those_who_were_answered_together_are_waited_for_until_all_are_there() -> None:
    delay = QueueDelay(Clock())
    delay.record(30, 5.0)
    delay.start(4)
    assert [delay.remaining(number) for number in (4, 20, 33, 34)] == [LULL, LULL, LULL, 0]


def test_nobody_is_waited_for_longer_than_a_share_of_what_the_work_takes() -> None:
    clock = Clock()
    delay = QueueDelay(clock)
    delay.record(30, 0.1)
    delay.start(4)
    clock.now = SHARE * 0.1 - LULL / 2
    assert delay.remaining(5) == pytest.approx(LULL / 2)
    clock.now = SHARE * 0.1 + 1
    assert delay.remaining(5) == 0
