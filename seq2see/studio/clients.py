"""Clients: who sent a request, and how many requests each may send in a second (429)."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from seq2see.studio.http import error_response

try:
    import fcntl
except ImportError:  # one process needs no lock, and several are refused without it
    fcntl = None  # type: ignore[assignment]


def client_address(host: object) -> str:
    """The client's address: IPv4, or the /64 network of IPv6 (a machine has all of it); "" of a Unix socket.

    >>> client_address("192.0.2.7"), client_address("2001:db8::1"), client_address("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7')
    """
    try:
        address = ip_address(str(host).partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 4 or mapped is not None or address.is_loopback:
        return str(mapped or address)
    return str(ip_network(f"{address}/64", strict=False))


def client_of(scope: Scope) -> str:
    """Who sent a request, as far as its connection tells (or a proxy that is trusted)."""
    return client_address((scope.get("client") or ("",))[0])


# ---------------------------------------------------------------- requests per second

SECRET = 16
"""Bytes of the key with which addresses are hashed, so that nobody can choose addresses that share a bucket."""
GROUPS, WAYS = 1024, 8
"""Clients that are remembered: the hash of an address chooses a group, which has room for several."""
GROUP = struct.Struct("@" + "Qdd" * WAYS)
FREE_BURST = 64
"""Requests that a client may always send at once: a page with all that it loads."""


class TokenBuckets:
    """A token bucket for each client, in a table of fixed size. A request takes a token; `rate` come back each second,
    up to `burst`.

    Where more clients come than there is room for, the one whose bucket is fullest is forgotten: it loses least.

    path: a file that worker processes share (`create` makes it); None: the table is this process's own.
    """

    SIZE = SECRET + GROUPS * GROUP.size

    def __init__(self, rate: float, *, path: Path | None = None, clock: Callable[[], float] = monotonic):
        self.rate, self.burst = rate, max(2 * rate, float(FREE_BURST))
        self._clock, self._file = clock, None if path is None else path.open("r+b")
        self._table = mmap.mmap(-1 if self._file is None else self._file.fileno(), self.SIZE)
        if self._file is None:
            self._table[:SECRET] = os.urandom(SECRET)
        self._secret = self._table[:SECRET]

    @classmethod
    def create(cls, path: Path) -> None:
        """An empty table for several processes."""
        path.write_bytes(os.urandom(SECRET) + bytes(cls.SIZE - SECRET))

    def take(self, client: str) -> float:
        """Take a token of a client: 0, or the seconds until there is one."""
        digest = hashlib.blake2b(client.encode(), key=self._secret, digest_size=8).digest()
        key = int.from_bytes(digest, "little") | 1  # 0 is an empty place
        offset = SECRET + (key >> 1) % GROUPS * GROUP.size
        with self._locked():
            now = self._clock()
            values = list(GROUP.unpack_from(self._table, offset))
            tokens = [self._tokens(*values[3 * place : 3 * place + 3], now=now) for place in range(WAYS)]
            known = [place for place in range(WAYS) if values[3 * place] == key]
            place = known[0] if known else max(range(WAYS), key=tokens.__getitem__)
            left = tokens[place] if known else self.burst
            wait = 0.0 if left >= 1 else (1 - left) / self.rate
            values[3 * place : 3 * place + 3] = [key, left - 1 if wait == 0 else left, now]
            GROUP.pack_into(self._table, offset, *values)
        return wait

    def close(self) -> None:
        self._table.close()
        if self._file is not None:
            self._file.close()

    def _tokens(self, key: int, tokens: float, since: float, *, now: float) -> float:
        if not key:
            return math.inf  # an empty place is taken before any other
        return min(self.burst, tokens + max(now - since, 0.0) * self.rate)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among the processes; the kernel releases the lock of a process that ends. Threads do not share it: all
        requests of a process are handled by one."""
        if self._file is None or fcntl is None:
            yield
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


class RateLimit:
    """Middleware that refuses requests of clients that send too many (429). Health is never refused: it costs nothing,
    and who asks for it must get an answer."""

    def __init__(self, app: ASGIApp, buckets: TokenBuckets):
        self._app, self._buckets = app, buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/health":
            await self._app(scope, receive, send)
            return
        wait = self._buckets.take(client_of(scope))
        if wait == 0:
            await self._app(scope, receive, send)
            return
        message = f"too many requests; allowed: {self._buckets.rate:g} in a second for each client"
        headers = {"Retry-After": str(math.ceil(wait))}
        await error_response(429, message, headers=headers)(scope, receive, send)
