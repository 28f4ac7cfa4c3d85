"""The server process: the token, the listening socket, and uvicorn with limits and a graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from types import FrameType

import uvicorn

from seq2see.errors import UserError
from seq2see.studio.connections import Connections
from seq2see.studio.limits import HEADER_BYTES, SHUTDOWN_GRACE, Limits
from seq2see.studio.middleware import RequestBoundary, is_loopback

SPARE = 3
"""Seconds after SHUTDOWN_GRACE in which cancelled requests end; then uvicorn breaks off what is left, and logs it."""
INCOMPLETE_RESPONSE = "ASGI callable returned without completing response."
"""uvicorn's error for a response that ends early: during shutdown that is intended."""
TOKEN_VARIABLE = "SEQ2SEE_TOKEN"
SHORTEST_TOKEN = 12
BACKLOG = 1024


class GracefulServer(uvicorn.Server):
    """uvicorn that drains on SIGTERM: requests in progress are answered, new ones refused (503), `/health` says so;
    then it ends with code 0. After `drain` seconds, or a second SIGTERM, what is left is answered with 503.

    SIGINT (Ctrl-C) does not drain; requests in progress have `SHUTDOWN_GRACE` seconds."""

    def __init__(self, config: uvicorn.Config, app: RequestBoundary, drain: float):
        super().__init__(config)
        self._app, self._drain = app, drain
        self._deadline: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig != signal.SIGTERM:
            super().handle_exit(sig, frame)
        elif self._deadline is None:  # uvicorn would end the process by the signal
            self._app.draining, self._deadline = True, monotonic() + self._drain
        else:
            self._deadline = monotonic()

    async def on_tick(self, counter: int) -> bool:
        if self._deadline is not None and (not self._app.busy or monotonic() >= self._deadline):
            self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        with ExitStack() as stack:

            def cancel_requests() -> None:
                stack.enter_context(_log_without(INCOMPLETE_RESPONSE))
                self._app.cancel_requests()

            grace = SHUTDOWN_GRACE if self._deadline is None else 0
            timer = asyncio.get_running_loop().call_later(grace, cancel_requests)
            try:
                await super().shutdown(sockets)
            finally:
                timer.cancel()


@contextmanager
def _log_without(line: str) -> Iterator[None]:
    """uvicorn's log without that line."""

    def is_other(record: logging.LogRecord) -> bool:
        return record.getMessage() != line

    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


def require_token(host: str, token: str | None) -> str | None:
    """The token that requests must carry, from the option or the environment; an address that other machines can reach
    needs one."""
    option = "--token" if token is not None else TOKEN_VARIABLE
    if token is None:
        token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        if not is_loopback(host):
            raise UserError(
                f"--host {host}: others can reach it, so a token is needed: give --token TEXT or set {TOKEN_VARIABLE} "
                f"(at least {SHORTEST_TOKEN} characters); without --host, only this machine is served"
            )
        return None
    if not re.fullmatch(rf"[\x21-\x7e]{{{SHORTEST_TOKEN},}}", token):
        raise UserError(
            f"{option}: at least {SHORTEST_TOKEN} letters, digits and signs without spaces, got {len(token)}"
        )
    return token


def listen(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """A listening socket; port 0: any free one; option: the name of the port's option, for the message.

    Clients that connect before the server is ready wait.
    """
    if not 0 <= port < 1 << 16:
        raise UserError(f"{option} must be from 0 to 65535, got {port}")
    listening: socket.socket | None = None
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        if listening is not None:
            listening.close()
        reason = error.strerror or error
        raise UserError(f"cannot serve on {host}:{port}: {reason}; {option} 0 finds a free one") from None
    return listening


def has_terminal() -> bool:
    """Whether a person started this process in a terminal that is still open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


def server_url(listening: socket.socket) -> str:
    """http://127.0.0.1:8000/"""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


class SharedSocket(socket.socket):
    """A listening socket that several processes accept from; asyncio sets its backlog anew, which must not shrink."""

    def listen(self, backlog: int = BACKLOG, /) -> None:
        super().listen(max(backlog, BACKLOG))


def create_server(
    app: RequestBoundary, limits: Limits | None = None, *, drain: float = SHUTDOWN_GRACE, shared: bool = False
) -> uvicorn.Server:
    """uvicorn with limits on its connections. drain: seconds for requests in progress on SIGTERM; shared: other
    processes accept from the same socket.

    Logging is not configured: warnings go where the process sends them, to stderr where it says nothing.
    """
    config = uvicorn.Config(
        app,
        http=Connections(limits or Limits()).protocol(),
        log_config=None,
        log_level="warning",
        ws="none",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # asyncio accepts this many connections at a time: of a shared socket one, so that a burst is shared too.
        backlog=1 if shared else BACKLOG,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_GRACE + SPARE,
    )
    return GracefulServer(config, app, drain)


def run_server(
    app: RequestBoundary,
    listening: socket.socket,
    limits: Limits | None = None,
    *,
    drain: float = SHUTDOWN_GRACE,
    shared: bool = False,
    started: Callable[[], None] | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    server = create_server(app, limits, drain=drain, shared=shared)
    if started is not None:
        started()
    server.run(sockets=[listening])
