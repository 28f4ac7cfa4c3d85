"""A server that ends while an answer is on its way: the answer is broken off, and the log has no complaint of it."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import closing
from typing import Any

import httpx
import pytest

from seq2see.studio import server as serving
from seq2see.studio.middleware import RequestBoundary
from seq2see.studio.server import INCOMPLETE_RESPONSE, create_server, listen, server_url


async def half(scope: Any, receive: Any, send: Any) -> None:
    """Half an answer; the rest never comes, or, at /careless, is forgotten."""
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    if scope["path"] != "/careless":
        await asyncio.sleep(600)


def test_an_answer_that_has_begun_is_broken_off_without_a_word(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SHUTDOWN_GRACE", 0.2)
    with closing(listen("127.0.0.1", 0)) as listening:
        server = create_server(RequestBoundary(half))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        where = server_url(listening)
        with httpx.Client(base_url=where, trust_env=False, timeout=120) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                client.get("/careless")
            assert caplog.messages == [INCOMPLETE_RESPONSE], "while it serves that is an error"
            caplog.clear()
            with client.stream("GET", "/") as answer:
                parts = answer.iter_raw()
                assert (answer.status_code, next(parts)) == (200, b"half")
                server.should_exit = True
                with pytest.raises(httpx.RemoteProtocolError):
                    next(parts)
        thread.join(120)
        assert not thread.is_alive()
    assert caplog.messages == []
    for name in ("uvicorn", "uvicorn.error"):
        log = logging.getLogger(name)
        assert (log.filters, log.handlers) == ([], []), "handlers would keep the stderr of this test"
