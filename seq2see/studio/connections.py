"""Limits on connections: their number, the time to send a header, the time to read an answer.

uvicorn has no timeout for headers or for clients that do not read, and refuses new connections where it has too many.
Here the connection whose client has kept the server waiting longest is closed in favour of a new one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from time import monotonic
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from seq2see.studio.clients import client_address
from seq2see.studio.limits import HEADER_BYTES, Limits

if sys.platform == "linux":
    from fcntl import ioctl
    from termios import TIOCOUTQ

TICK = 1.0
"""Seconds between two checks of all connections."""
LINGER = 1.0
"""Seconds that a refused connection stays open, so that its client can read why."""
LINGERING = 64
"""Refused connections that stay open at a time; then the oldest is aborted."""
PACE, SPANS = 1 << 14, 4
"""Bytes of an answer that a client must read in `Limits.send_timeout` seconds, on average over SPANS times as many
seconds: the client's kernel acknowledges in steps, which may be several times larger."""
SEND_BUFFER = 1 << 17
"""Bytes of an answer that the kernel buffers; the rest stays in this process, where it is counted."""
ASSUMED_SPEED = 1 << 20
"""Bytes in a second that a client is assumed to read before its speed is known."""
RETRY_AFTER = {"Retry-After": "5"}


class Connections:
    """The open connections of one server; used only on the server's event loop."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._open: dict[str, list[LimitedConnection]] = {}
        self._refused: list[LimitedConnection] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def __iter__(self) -> Iterator[LimitedConnection]:
        return (connection for group in self._open.values() for connection in group)

    def protocol(self) -> type[asyncio.Protocol]:
        """uvicorn's protocol with these limits. Always h11: httptools has no limit for the header of a request that
        comes while another one is being answered."""
        return type("Protocol", (LimitedConnection, H11Protocol), {"manager": self})

    def admit(self, connection: LimitedConnection) -> bool:
        """Whether the connection may stay; the one that has kept the server waiting longest is closed for it."""
        same = self._open.get(connection.address, [])
        if len(same) >= self._most(connection.address):
            admitted = _evict(same)
        else:
            admitted = len(self) < self.limits.connections or _evict(list(self))
        if admitted:
            self._open.setdefault(connection.address, []).append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK, self._check_all)
        return admitted

    def dismiss(self, connection: LimitedConnection) -> None:
        """The connection was refused: it stays open while its client reads why, and no longer counts."""
        self.remove(connection)
        self._refused.append(connection)
        if len(self._refused) > LINGERING:
            self._refused.pop(0).transport.abort()

    def remove(self, connection: LimitedConnection) -> None:
        """Forget a connection that is closed or about to be."""
        same = self._open.get(connection.address, [])
        for group in (same, self._refused):
            if connection in group:
                group.remove(connection)
        if not same:
            self._open.pop(connection.address, None)

    def free_memory(self) -> None:
        """Close the slowest readers where unread answers take too much memory together."""
        waiting = [connection for connection in [*self, *self._refused] if connection.unsent_bytes]
        excess = sum(connection.unsent_bytes for connection in waiting) - self.limits.unread_bytes
        now = monotonic()
        for connection in sorted(waiting, key=lambda connection: connection.speed(now)):
            if excess <= 0:
                return
            excess -= connection.unsent_bytes
            connection.evict()

    def _most(self, address: str) -> int:
        """Connections of one address; a proxy on this machine brings everybody's, so loopback has no lower limit."""
        local = not address or ip_address(address.partition("/")[0]).is_loopback
        return self.limits.connections if local else self.limits.connections_per_address

    def _check_all(self) -> None:
        now = monotonic()
        for connection in [*self, *self._refused]:
            connection.check(now)
        remaining = self._open or self._refused
        self._timer = asyncio.get_running_loop().call_later(TICK, self._check_all) if remaining else None


class LimitedConnection(asyncio.Protocol):
    """Mixin for uvicorn's protocol: measures how long a client keeps the server waiting.

    since: when the connection was last idle; header_since: when the header that is still coming began.
    """

    manager: ClassVar[Connections]
    header_since: float | None
    transport: CountingTransport
    cycle: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        now = monotonic()
        self.address = _address(transport)
        self.since, self.header_since = now, now
        self._write_start, self._read_before, self._read, self._deadline = now, 0, 0, now
        self.refused = False
        _limit_send_buffer(transport)
        super().connection_made(CountingTransport(transport, self))  # type: ignore[arg-type]
        if not self.manager.admit(self):
            message = "too many connections; try again in a moment"
            self._refuse(503, message, RETRY_AFTER)

    def data_received(self, data: bytes) -> None:
        if self.refused:
            self.transport.close()
            return
        if self.header_since is None and not self.busy:
            self.header_since = monotonic()
        super().data_received(data)
        if self.busy:
            self.header_since = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.manager.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.since = monotonic()
        super().on_response_complete()  # type: ignore[misc]

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this while it handles the error of h11, which knows whether it was the size of the header."""
        if getattr(sys.exception(), "error_status_hint", None) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            self._refuse(431, f"the header is too large; allowed: {HEADER_BYTES:,} bytes")
        else:
            self._refuse(400, msg)

    def before_write(self) -> None:
        """More of an answer is about to be written: the client's time starts if it has read everything before."""
        if self.transport.unread == 0:
            self._write_start, self._read_before = monotonic(), self.transport.written
            self._read, self._deadline = self._read_before, self._write_start + self.manager.limits.send_timeout

    def after_write(self) -> None:
        if self.unsent_bytes > SEND_BUFFER:
            self.manager.free_memory()

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that this process holds until the client reads."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def speed(self, now: float) -> float:
        """Bytes in a second that the client reads; a new client is assumed to be fast."""
        read = self.transport.written - self.transport.unread - self._read_before
        return (read + ASSUMED_SPEED) / (now - self._write_start + 1)

    @property
    def busy(self) -> bool:
        """Whether a request is being read or answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def receiving(self) -> bool:
        """Whether the server waits for the client: for the rest of a body, or another request."""
        return not self.busy or bool(self.cycle.more_body)

    def check(self, now: float) -> None:
        """Close the connection where the client has taken too long."""
        limits = self.manager.limits
        unread = self.transport.unread
        read, before = self.transport.written - unread, self._read
        earned = (read - before) / PACE * limits.send_timeout
        self._read, self._deadline = read, min(self._deadline + earned, now + SPANS * limits.send_timeout)
        if (unread and now > self._deadline) or (self.refused and now - self.since > LINGER):
            self.transport.abort()
        elif self.header_since is not None and not self.refused and now - self.header_since > limits.header_timeout:
            self._refuse(408, f"the header did not come in time; allowed: {limits.header_timeout:g} s")

    def evict(self) -> None:
        self.manager.remove(self)
        self.transport.abort()

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer without a request, then close, after the client's next bytes or LINGER seconds: a connection that is
        closed with bytes unread is reset, and its client may never see the answer."""
        if self.refused or self.transport.is_closing():
            return
        self.refused, self.since = True, monotonic()
        self.manager.dismiss(self)
        body = json.dumps({"error": message}).encode()
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
        lines |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()


class CountingTransport:
    """A transport that counts the bytes written to it, and so knows how many the client has not read."""

    def __init__(self, transport: asyncio.Transport, connection: LimitedConnection):
        self._transport, self._connection = transport, connection
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._connection.before_write()
        self.written += len(data)
        self._transport.write(data)
        self._connection.after_write()

    @property
    def unread(self) -> int:
        """Bytes in this process, and (on Linux) bytes that the client's kernel has not acknowledged."""
        size: int = self._transport.get_write_buffer_size()
        return size + (_unacknowledged(self._socket) if self._socket is not None else 0)


def _unacknowledged(connection: socket.socket) -> int:
    if sys.platform != "linux":
        return 0
    try:
        size: int = struct.unpack("i", ioctl(connection.fileno(), TIOCOUTQ, bytes(4)))[0]
    except (OSError, ValueError):  # closed meanwhile, or no TCP
        return 0
    return size


def _limit_send_buffer(transport: asyncio.BaseTransport) -> None:
    """Limit the kernel's buffer: with megabytes in it, a slow reader looks like one that does not read at all."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


def _evict(connections: list[LimitedConnection]) -> bool:
    """Close the connection that has waited longest for its client, idle ones first; whether there was one."""
    waiting = [connection for connection in connections if connection.receiving]
    if not waiting:
        return False
    min(waiting, key=lambda connection: (connection.busy, connection.since)).evict()
    return True


def _address(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return client_address(peer[0]) if isinstance(peer, tuple) and peer else ""
