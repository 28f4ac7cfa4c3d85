"""Connections: how many there may be, how long a client may take to send a header or to read its answer.

uvicorn has no time-out for headers and none for clients that do not read, and where there are too many connections it
refuses whoever comes last. Here a connection whose client keeps the server waiting makes room for a new one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from seq2see.studio.settings import Limits

TICK = 1.0
"""Seconds between two looks at all connections."""
LINGER = 1.0
"""Seconds that a connection which was refused stays open, so that its client reads why."""
LINGERING = 64
"""Connections that may stay open for that; beyond, the oldest is cut off."""
HEADER_BYTES = 1 << 16
PACE = 1 << 14
"""Bytes of an answer that a client has to read within `Limits.send` seconds (or all that is left of it)."""
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
        """uvicorn's protocol, h11 or httptools, with these bounds."""
        return type("Protocol", (BoundedConnection, AutoHTTPProtocol), {"bounds": self})

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
    transport: asyncio.Transport
    cycle: Any

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        now = monotonic()
        self.address = _address(transport)
        self.since, self.header_since, self._header_bytes = now, now, 0
        self._unsent, self._moved = 0, now
        self.refused = False
        super().connection_made(transport)
        if not self.bounds.admit(self):
            message = "too many connections; try again in a moment"
            self._refuse(503, message, RETRY)

    def data_received(self, data: bytes) -> None:
        if self.refused:
            self.transport.close()
            return
        if self.header_since is None and not self.busy:
            self.header_since, self._header_bytes = monotonic(), 0
        super().data_received(data)
        if self.busy:
            self.header_since = None
            return
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self._refuse(431, f"the header is too large; allowed: {HEADER_BYTES:,} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        self.bounds.leave(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self.since = monotonic()
        super().on_response_complete()  # type: ignore[misc]

    def resume_writing(self) -> None:
        self._moved = monotonic()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's word for what is no HTTP, in our shape."""
        self._refuse(400, msg)

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
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent + PACE <= self._unsent:
            self._moved, self._unsent = now, unsent
        self._unsent = max(self._unsent, unsent)
        if now - self._moved > limits.send or (self.refused and now - self.since > LINGER):
            self.transport.abort()
        elif self.header_since is not None and not self.refused and now - self.header_since > limits.header:
            self._refuse(408, f"the header did not come in time; allowed: {limits.header:g} s")

    def evict(self) -> None:
        self.bounds.leave(self)
        self.transport.abort()

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """An answer without a request. It is closed after the client's next word or a second: a connection that is
        closed with bytes unread is reset, and its client may never see the answer."""
        self.refused, self.since = True, monotonic()
        self.bounds.dismiss(self)
        body = json.dumps({"error": message}).encode()
        lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
        lines |= headers or {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()


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
