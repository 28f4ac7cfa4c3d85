"""The server as a process: a socket, uvicorn, and the words about them."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import LOGGING_CONFIG

from seq2see.errors import UserError
from seq2see.studio.connections import Connections
from seq2see.studio.guard import is_loopback
from seq2see.studio.http import refusal
from seq2see.studio.settings import GRACE, HEADER_BYTES, Limits

# ---------------- The end of a server

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


TOKEN = "SEQ2SEE_TOKEN"
SHORTEST = 12
BACKLOG = 1024
LOGGING = LOGGING_CONFIG | {
    "loggers": LOGGING_CONFIG["loggers"] | {"python_multipart": {"level": "CRITICAL", "propagate": False}}
}
"""The parser of forms would log bytes of what it cannot read, which are the client's."""


def token_for(host: str, given: str | None) -> str | None:
    """The token that requests must carry; an address that others can reach is not served without one."""
    token = given if given is not None else os.environ.get(TOKEN)
    if token is None:
        if not is_loopback(host):
            raise UserError(
                f"--host {host}: others can reach it, so a token is needed: give --token TEXT or set {TOKEN} "
                f"(at least {SHORTEST} characters); without --host, only this machine is served"
            )
        return None
    if not re.fullmatch(rf"[\x21-\x7e]{{{SHORTEST},}}", token):
        raise UserError(f"--token: at least {SHORTEST} letters, digits and signs without spaces, got {len(token)}")
    return token


def bound(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """A socket that listens there; port 0: any that is free; option: what the port is said by, for the message.

    Whoever connects before the server is ready waits.
    """
    if not 0 <= port < 1 << 16:
        raise UserError(f"{option} must be from 0 to 65535, got {port}")
    made: socket.socket | None = None
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        if made is not None:
            made.close()
        said = error.strerror or error
        raise UserError(f"cannot serve on {host}:{port}: {said}; {option} 0 finds a free one") from None
    return made


def address(listening: socket.socket) -> str:
    """http://127.0.0.1:8000/"""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def server_of(app: Any, limits: Limits | None = None) -> uvicorn.Server:
    """uvicorn as we want it: silent, bounded, and gone within seconds when it is told to end."""
    ending = Ending(app)
    config = uvicorn.Config(
        ending,
        http=Connections(limits or Limits()).protocol(),
        log_config=LOGGING,
        log_level="warning",
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE + SPARE,
    )
    return Server(config, ending)


def run(
    app: Any, listening: socket.socket, limits: Limits | None = None, *, started: Callable[[], None] | None = None
) -> None:
    """Serve until Ctrl-C (or SIGTERM)."""
    server = server_of(app, limits)
    if started is not None:
        started()
    server.run(sockets=[listening])
