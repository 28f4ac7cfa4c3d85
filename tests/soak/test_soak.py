"""The rules by which `make soak` passes; the run itself takes minutes."""

from __future__ import annotations

import random

import pytest

from tests.soak.__main__ import MALFORMED, Requests, allowed, is_flat, percentile, quarters

MB = 1e6


@pytest.mark.parametrize(
    ("amounts", "flat"),
    [
        ([100, 200, 500, 500, 500, 500, 500, 500], True),  # warm-up does not count
        ([500, 500, 500, 500, 500, 500, 560, 560], True),
        ([500, 500, 500, 500, 500, 500, 580, 580], False),
        ([500 + 10 * number for number in range(40)], False),
        ([500], True),
    ],
)
def test_memory_is_flat_or_not(amounts: list[float], flat: bool) -> None:
    assert is_flat([amount * MB for amount in amounts]) is flat


def test_quarters_and_percentiles() -> None:
    assert quarters([1, 2, 3, 4, 5, 6, 7, 9]) == (3.5, 8)
    assert percentile(list(range(100)), 0.5) == 50
    assert percentile(list(range(100)), 0.99) == 99


@pytest.mark.parametrize(
    ("status", "sound", "retry", "fine"),
    [
        (200, True, False, True),
        (409, True, False, False),
        (409, False, False, True),
        (500, False, False, False),
        (504, True, True, False),
        (503, True, True, True),
        (503, False, False, False),
        (429, True, True, True),
    ],
)
def test_statuses_that_are_promised(status: int, sound: bool, retry: bool, fine: bool) -> None:
    assert allowed(status, sound=sound, retry=retry) is fine


def test_one_request_in_ten_is_malformed_and_all_kinds_are_asked() -> None:
    pytest.importorskip("av", reason="the extra `video` is not installed")
    made, draw = Requests(), random.Random(1)
    drawn = [made.draw(draw) for _ in range(1000)]
    assert {request.kind for request in drawn} == {"text", "image", "sound", "video"}
    assert abs(sum(not request.sound for request in drawn) / 1000 - MALFORMED) < 0.03
