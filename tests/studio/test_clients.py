"""Each client may send so many requests in a second, whoever it says it is; the rest hears how long to wait."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.studio.app import create_app
from seq2see.studio.clients import FREE_BURST, GROUPS, WAYS, TokenBuckets, client_address
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository
from tests.studio.conftest import LIMITS


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_is_as_the_equation_says() -> None:
    """tokens(t) = min(burst, tokens + rate t), one for each request that passes: against a plain simulation."""
    draw, clock, rate = random.Random(4), Clock(), 20.0
    buckets = TokenBuckets(rate, clock=clock)
    assert buckets.burst == FREE_BURST
    refused = Counter[str]()
    left = dict.fromkeys(("10.0.0.1", "10.0.0.2", ""), buckets.burst)
    before = clock.now
    for _ in range(3000):
        clock.now += draw.choice((0.0, 0.0, 0.001, 0.05))
        left = {name: min(buckets.burst, tokens + rate * (clock.now - before)) for name, tokens in left.items()}
        before = clock.now
        client = draw.choice(("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", ""))
        wait = buckets.take(client)
        if left[client] >= 1 - 1e-9:
            assert wait == 0 or abs(left[client] - 1) < 1e-6
        if wait == 0:
            left[client] -= 1
        else:
            refused[client] += 1
            assert wait == pytest.approx((1 - left[client]) / rate, abs=1e-6)
    assert refused.keys() == {"10.0.0.1"}, "one was over its limit, the others were not"


def test_memory_is_bounded_and_the_busy_are_remembered() -> None:
    """Three times as many clients as there is room for, of one request each, do not make a client's debt forgotten."""
    buckets = TokenBuckets(1, clock=Clock())
    while buckets.take("10.9.9.9") == 0:
        pass
    for number in range(3 * GROUPS * WAYS):
        buckets.take(f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::/64")
    assert buckets.take("10.9.9.9") > 0
    assert len(buckets._table) == TokenBuckets.SIZE


def test_processes_share_a_table(tmp_path: Path) -> None:
    TokenBuckets.create(tmp_path / "buckets")
    clock = Clock()
    one, other = (TokenBuckets(5, path=tmp_path / "buckets", clock=clock) for _ in range(2))
    passed = [take.take("192.0.2.1") == 0 for _ in range(FREE_BURST) for take in (one, other)]
    assert sum(passed) == FREE_BURST
    assert other.take("192.0.2.1") == one.take("192.0.2.1") == pytest.approx(0.2)
    one.close()
    other.close()


def test_addresses() -> None:
    assert client_address("2001:db8:1:2:3:4:5:6") == client_address("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert client_address("fe80::1%eth0") == "fe80::/64"
    assert [client_address(odd) for odd in (None, "", "x" * 5000, "testclient")] == [""] * 4


def served(repository: ModelRepository, *, proxies: tuple[str, ...] = (), address: str = "192.0.2.1") -> Any:
    app = create_app(repository, LIMITS, ServerMetrics(), buckets=TokenBuckets(1, clock=Clock()), proxies=proxies)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": (address, 1)}, receive, send)  # without lifespan: the models are shared

    return TestClient(endless, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


def test_too_many_requests_are_refused_with_the_time_to_wait(repository: ModelRepository) -> None:
    client = served(repository)
    answers = [client.get("/api/models") for _ in range(FREE_BURST + 3)]
    assert Counter(answer.status_code for answer in answers) == {200: FREE_BURST, 429: 3}
    last = answers[-1]
    assert last.headers["retry-after"] == "1"
    assert last.json() == {"error": "too many requests; allowed: 1 in a second for each client"}
    assert last.headers["x-content-type-options"] == "nosniff"
    assert client.get("/health").status_code == 200, "health is never refused"
    assert client.post("/api/predict", json={"model": "speller", "input": "face"}).status_code == 429


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [
        ((), {429: 3, 200: FREE_BURST}),  # nobody is believed: all are one client
        (("192.0.2.0/24",), {200: FREE_BURST + 3}),
        (("203.0.113.0/24",), {429: 3, 200: FREE_BURST}),  # another proxy than the one that asks
    ],
)
def test_who_is_behind_a_proxy_is_believed_only_of_known_ones(
    repository: ModelRepository, proxies: tuple[str, ...], expected: dict[int, int]
) -> None:
    client = served(repository, proxies=proxies)
    claims = [{"X-Forwarded-For": f"10.0.{number}.1"} for number in range(FREE_BURST + 3)]
    assert Counter(client.get("/api/models", headers=claim).status_code for claim in claims) == expected


def test_what_a_client_claims_before_its_proxy_does_not_count(repository: ModelRepository) -> None:
    """The last address is the proxy's own word; those before it anybody can write."""
    client = served(repository, proxies=("192.0.2.1",))
    claims = [{"X-Forwarded-For": f"10.0.{number}.1, 198.51.100.7"} for number in range(FREE_BURST + 3)]
    assert Counter(client.get("/api/models", headers=claim).status_code for claim in claims)[429] == 3
    for odd in ("", ",,,", "\xff" * 3000, "[::", "a b"):
        assert client.get("/api/models", headers={"X-Forwarded-For": odd.encode("latin-1")}).status_code in (200, 429)


def test_the_queue_knows_who_asks(repository: ModelRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    client, batcher = served(repository, proxies=("192.0.2.1",)), repository.get("speller").batcher
    asked, submit = list[str](), batcher.submit

    def note(*inputs: Any, client: str, **options: Any) -> Any:
        asked.append(client)
        return submit(*inputs, client=client, **options)

    monkeypatch.setattr(batcher, "submit", note)
    for address in ("198.51.100.7", "2001:db8::9"):
        body = {"model": "speller", "input": "face"}
        assert client.post("/api/predict", json=body, headers={"X-Forwarded-For": address}).status_code == 200
    assert asked == ["198.51.100.7", "2001:db8::/64"]
