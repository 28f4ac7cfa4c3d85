"""Who waits for whom: many who ask again do, one who asks alone never."""

from __future__ import annotations

import pytest

from seq2see.studio.dynamic_batching import LULL, SHARE, QueueDelay


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
