"""The server process: the token, the listening socket, and uvicorn with limits and a graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

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
    """uvicorn, with requests in progress answered with 503 when the shutdown takes too long."""

    def __init__(self, config: uvicorn.Config, app: RequestBoundary):
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        with ExitStack() as stack:

            def cancel_requests() -> None:
                stack.enter_context(_log_without(INCOMPLETE_RESPONSE))
                self._app.cancel_requests()

            timer = asyncio.get_running_loop().call_later(SHUTDOWN_GRACE, cancel_requests)
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
            f"--token: at least {SHORTEST_TOKEN} letters, digits and signs without spaces, got {len(token)}"
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


def server_url(listening: socket.socket) -> str:
    """http://127.0.0.1:8000/"""
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def create_server(app: RequestBoundary, limits: Limits | None = None) -> uvicorn.Server:
    """uvicorn with limits on its connections.

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
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SHUTDOWN_GRACE + SPARE,
    )
    return GracefulServer(config, app)


def run_server(
    app: RequestBoundary,
    listening: socket.socket,
    limits: Limits | None = None,
    *,
    started: Callable[[], None] | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    server = create_server(app, limits)
    if started is not None:
        started()
    server.run(sockets=[listening])
