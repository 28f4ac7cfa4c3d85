"""The end of a server: requests that are under way have some seconds, and are then told that it closes.

An answer that has begun cannot say so any more: its connection is closed before the answer is whole, which by HTTP's
rules is an error to whoever reads it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.replies import refusal
from seq2see.studio.settings import GRACE

SPARE = 3
"""Seconds beyond GRACE in which requests that were told to end do so; uvicorn breaks off what is left, and logs it."""


BROKEN_OFF = "ASGI callable returned without completing response."
"""What uvicorn logs as an error of the application's: here it is the end as it is meant."""


class Ending:
    """Knows the requests that are under way, and ends them when it is told to: whoever has no answer yet hears why."""

    def __init__(self, app: ASGIApp):
        self._app = app
        self._under_way: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        if scope["type"] != "http" or task is None:
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        self._under_way.add(task)
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not begun:
                await refusal(503, "the server is closing", headers={"Connection": "close"})(scope, receive, send)
        finally:
            self._under_way.discard(task)

    def end(self) -> None:
        """Break off whatever is under way."""
        for task in list(self._under_way):
            task.cancel()


class Server(uvicorn.Server):
    """uvicorn, which ends requests in our words before it would in its own."""

    def __init__(self, config: uvicorn.Config, ending: Ending):
        super().__init__(config)
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        with ExitStack() as meant:

            def end() -> None:
                meant.enter_context(_without(BROKEN_OFF))
                self._ending.end()

            timer = asyncio.get_running_loop().call_later(GRACE, end)
            try:
                await super().shutdown(sockets)
            finally:
                timer.cancel()


@contextmanager
def _without(line: str) -> Iterator[None]:
    """uvicorn's log without that line."""

    def other(record: logging.LogRecord) -> bool:
        return record.getMessage() != line

    log = logging.getLogger("uvicorn.error")
    log.addFilter(other)
    try:
        yield
    finally:
        log.removeFilter(other)
