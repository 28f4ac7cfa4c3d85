"""Clients take turns: who has queued much delays only himself, and gives way where the queue is full."""

from __future__ import annotations

import random
from collections import Counter

from seq2see.studio.dynamic_batching import FairQueue


def queued(**items: str) -> FairQueue[str]:
    queue = FairQueue[str]()
    for client, letters in items.items():
        queue.extend(client, list(letters))
    return queue


def test_each_client_has_its_turn() -> None:
    queue = queued(many="abcdef", few="xy", one="z")
    assert [queue.peek(), *(queue.pop() for _ in range(len(queue)))] == list("aaxzbycdef")
    assert len(queue) == 0


def test_a_batch_is_filled_with_one_of_each_in_turn_and_turns_stay() -> None:
    queue = queued(many="abCdef", few="xY", one="z")
    assert queue.take(str.islower, 5) == list("axzbd")
    assert len(queue) == 4
    assert [queue.pop() for _ in range(4)] == list("CYef"), "what did not fit keeps its place"


def test_a_client_that_leaves_and_comes_again_is_last() -> None:
    queue = queued(first="a", second="bc")
    assert queue.remove("first", lambda item: item == "a")
    assert not queue.remove("first", lambda item: item == "a")
    queue.extend("first", ["d"])
    assert [queue.pop() for _ in range(3)] == ["b", "d", "c"]


def test_the_newest_of_whoever_has_most_give_way() -> None:
    queue = queued(many="abcdef", some="uvw")
    assert queue.displace("new", 2, 2) == ["f", "e"]
    assert queue.displace("new", 3, 2) is None, "nobody is left with fewer than the new one gets"
    assert queue.displace("many", 1, 1) is None, "nobody displaces who has less"
    assert len(queue) == 7


def test_against_a_plain_simulation() -> None:
    """Whatever is done, each item leaves once, and nobody's turn comes twice before another's came once."""
    draw = random.Random(3)
    for _ in range(200):
        queue, inside, number = FairQueue[tuple[str, int]](), Counter[str](), 0
        for _ in range(60):
            if draw.random() < 0.5:
                client, count = draw.choice("abcd"), draw.randint(1, 4)
                queue.extend(client, [(client, number + place) for place in range(count)])
                number, inside[client] = number + count, inside[client] + count
            elif len(queue):
                waiting = {client for client, count in inside.items() if count}
                turns = [queue.pop() for _ in range(len(waiting))]
                assert {client for client, _ in turns} == waiting
                inside.subtract(client for client, _ in turns)
            assert len(queue) == inside.total()
        rest = queue.clear()
        assert Counter(client for client, _ in rest) == +inside
        for client in "abcd":
            mine = [place for name, place in rest if name == client]
            assert mine == sorted(mine)
