"""Connections: how many there may be, how long a client may take to send a header or to read its answer.

uvicorn has no time-out for headers and none for clients that do not read, and where there are too many connections it
refuses whoever comes last. Here a connection whose client keeps the server waiting makes room for a new one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from seq2see.studio.settings import HEADER_BYTES, Limits

if sys.platform == "linux":
    from fcntl import ioctl
    from termios import TIOCOUTQ

TICK = 1.0
"""Seconds between two looks at all connections."""
LINGER = 1.0
"""Seconds that a connection which was refused stays open, so that its client reads why."""
LINGERING = 64
"""Connections that may stay open for that; beyond, the oldest is cut off."""
PACE, SPANS = 1 << 14, 4
"""Bytes of an answer that a client has to read in `Limits.send` seconds, on average over so many times these seconds:
the client's kernel acknowledges what was read in steps, which may be several times larger."""
SEND_BUFFER = 1 << 17
"""Bytes of an answer that the kernel takes in advance; the rest is kept here, where it is counted."""
FAST = 1 << 20
"""Bytes in a second that a client is thought to read before anything is known of it."""
RETRY = {"Retry-After": "5"}


class Connections:
    """The open connections of one server; everything here happens on the server's own loop."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._open: dict[str, list[BoundedConnection]] = {}
        self._refused: list[BoundedConnection] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def __iter__(self) -> Iterator[BoundedConnection]:
        return (one for those in self._open.values() for one in those)

    def protocol(self) -> type[asyncio.Protocol]:
        """uvicorn's protocol with these bounds. It is always h11, whatever else is installed: httptools has no limit
        for the header of a request that comes while another one is being answered."""
        return type("Protocol", (BoundedConnection, H11Protocol), {"bounds": self})

    def admit(self, connection: BoundedConnection) -> bool:
        """Whether there is room for one more; where there is none, the one that has kept us waiting longest goes."""
        same = self._open.get(connection.address, [])
        if len(same) >= self._most(connection.address):
            admitted = _evict(same)
        else:
            admitted = len(self) < self.limits.connections or _evict(list(self))
        if admitted:
            self._open.setdefault(connection.address, []).append(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK, self._look)
        return admitted

    def dismiss(self, connection: BoundedConnection) -> None:
        """The connection is about to be closed, and takes nobody's place while its client reads why."""
        self.leave(connection)
        self._refused.append(connection)
        if len(self._refused) > LINGERING:
            self._refused.pop(0).transport.abort()

    def leave(self, connection: BoundedConnection) -> None:
        """The connection is closed, or as good as that."""
        same = self._open.get(connection.address, [])
        for those in (same, self._refused):
            if connection in those:
                those.remove(connection)
        if not same:
            self._open.pop(connection.address, None)

    def make_room(self) -> None:
        """Where the answers that wait to be read are too large together, whoever reads most slowly is cut off."""
        waiting = [one for one in [*self, *self._refused] if one.waiting_bytes]
        excess = sum(one.waiting_bytes for one in waiting) - self.limits.unread
        now = monotonic()
        for one in sorted(waiting, key=lambda one: one.speed(now)):
            if excess <= 0:
                return
            excess -= one.waiting_bytes
            one.evict()

    def _most(self, address: str) -> int:
        """Everybody behind a proxy on this machine comes from its own address, which has no limit of its own."""
        local = not address or ip_address(address.partition("/")[0]).is_loopback
        return self.limits.connections if local else self.limits.connections_each

    def _look(self) -> None:
        now = monotonic()
        for connection in [*self, *self._refused]:
            connection.check(now)
        still = self._open or self._refused
        self._timer = asyncio.get_running_loop().call_later(TICK, self._look) if still else None


class BoundedConnection(asyncio.Protocol):
    """Mixed into uvicorn's protocol: a connection that knows how long its client keeps the server waiting.

    since: when it last had nothing to do; header_since: when the header that is still coming began.
    """

    bounds: ClassVar[Connections]
    header_since: float | None
    transport: CountingTransport
    cycle: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        now = monotonic()
        self.address = _address(transport)
        self.since, self.header_since = now, now
        self._begun, self._begun_at, self._read, self._deadline = now, 0, 0, now
        self.refused = False
        _limit_send_buffer(transport)
        super().connection_made(CountingTransport(transport, self))  # type: ignore[arg-type]
        if not self.bounds.admit(self):
            message = "too many connections; try again in a moment"
            self._refuse(503, message, RETRY)

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
        self.bounds.leave(self)
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

    def writes(self) -> None:
        """More of an answer is about to be written; where the client has read all that came before, its time begins."""
        if self.transport.unread == 0:
            self._begun, self._begun_at = monotonic(), self.transport.written
            self._read, self._deadline = self._begun_at, self._begun + self.bounds.limits.send

    def wrote(self) -> None:
        if self.waiting_bytes > SEND_BUFFER:
            self.bounds.make_room()

    @property
    def waiting_bytes(self) -> int:
        """Bytes of answers that are kept here until the client reads."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def speed(self, now: float) -> float:
        """Bytes in a second that the client has read of what it is being sent; new ones count as fast at first."""
        read = self.transport.written - self.transport.unread - self._begun_at
        return (read + FAST) / (now - self._begun + 1)

    @property
    def busy(self) -> bool:
        """Whether a request is being read or answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def receiving(self) -> bool:
        """Whether it is the client's turn to send: the rest of a body, or another request."""
        return not self.busy or bool(self.cycle.more_body)

    def check(self, now: float) -> None:
        """Close what has kept us waiting too long."""
        limits = self.bounds.limits
        unread = self.transport.unread
        read, before = self.transport.written - unread, self._read
        earned = (read - before) / PACE * limits.send
        self._read, self._deadline = read, min(self._deadline + earned, now + SPANS * limits.send)
        if (unread and now > self._deadline) or (self.refused and now - self.since > LINGER):
            self.transport.abort()
        elif self.header_since is not None and not self.refused and now - self.header_since > limits.header:
            self._refuse(408, f"the header did not come in time; allowed: {limits.header:g} s")

    def evict(self) -> None:
        self.bounds.leave(self)
        self.transport.abort()

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """An answer without a request. It is closed after the client's next word or a second: a connection that is
        closed with bytes unread is reset, and its client may never see the answer."""
        if self.refused or self.transport.is_closing():
            return
        self.refused, self.since = True, monotonic()
        self.bounds.dismiss(self)
        body = json.dumps({"error": message}).encode()
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
        lines |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()


class CountingTransport:
    """A transport that counts what is written to it, and so knows how much of that the client has not read yet."""

    def __init__(self, transport: asyncio.Transport, connection: BoundedConnection):
        self._transport, self._connection = transport, connection
        self._socket: socket.socket | None = transport.get_extra_info("socket")
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._connection.writes()
        self.written += len(data)
        self._transport.write(data)
        self._connection.wrote()

    @property
    def unread(self) -> int:
        """Bytes that wait here, and (on Linux) those that the client's kernel has not acknowledged."""
        size: int = self._transport.get_write_buffer_size()
        return size + (_unacknowledged(self._socket) if self._socket is not None else 0)


def _unacknowledged(connection: socket.socket) -> int:
    if sys.platform != "linux":
        return 0
    try:
        found: int = struct.unpack("i", ioctl(connection.fileno(), TIOCOUTQ, bytes(4)))[0]
    except (OSError, ValueError):  # closed meanwhile, or no TCP
        return 0
    return found


def _limit_send_buffer(transport: asyncio.BaseTransport) -> None:
    """Where the kernel took megabytes in advance, nobody here could tell a slow reader from one who does not read."""
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)


def _evict(connections: list[BoundedConnection]) -> bool:
    """Close the one that waits for its client longest: for a request if there is such a one, or else for a body."""
    waiting = [one for one in connections if one.receiving]
    if not waiting:
        return False
    min(waiting, key=lambda one: (one.busy, one.since)).evict()
    return True


def _address(transport: asyncio.BaseTransport) -> str:
    """Who is at the other end: an IPv4 address, the network of an IPv6 one (a machine has all of it), "" where that is
    not known (a Unix socket)."""
    peer = transport.get_extra_info("peername")
    try:
        address = ip_address(peer[0].partition("%")[0])
    except (TypeError, ValueError, IndexError, AttributeError):
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped is not None or address.is_loopback:
        return str(mapped or address)
    return str(ip_network(f"{address}/64", strict=False))
