"""Headers and bodies that are too large, bodies that are too slow, before anybody reads them."""

from __future__ import annotations

import asyncio
import re
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.refusing import Refused
from seq2see.studio.replies import refusal
from seq2see.studio.settings import HEADER_BYTES, MEGABYTE, Limits

DRAINED = 8
"""A body of up to so many times the limit is read and thrown away, so that its sender hears why it was refused."""
CLOSE = {"Connection": "close"}
LENGTH = re.compile(r"[0-9]{1,20}")


class Bounds:
    """Counts bytes and seconds while a body comes in; nothing beyond the limit is ever held."""

    def __init__(self, app: ASGIApp, limits: Limits):
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _header_bytes(scope) > HEADER_BYTES:
            message = f"the header is too large; allowed: {HEADER_BYTES:,} bytes"
            await refusal(431, message, headers=CLOSE)(scope, receive, send)
            return
        body = _Body(receive, self._limits)
        said = Headers(scope=scope).get("content-length", "")
        if LENGTH.fullmatch(said) and int(said) > self._limits.body:
            if int(said) <= DRAINED * self._limits.body:
                await body.drain()
            await _too_large(self._limits)(scope, receive, send)
            return
        await self._app(scope, body.receive, send)


class _Body:
    def __init__(self, receive: Receive, limits: Limits):
        self._receive, self._limits = receive, limits
        self._seen, self._done = 0, False
        self._until = monotonic() + limits.upload

    async def receive(self) -> Message:
        """The next part, or a Refused where it would be one too many or comes too late."""
        if self._done:
            return await self._receive()  # waits for the client to leave, as long as it likes
        message = await self._next()
        if self._seen > self._limits.body:
            await self.drain()
            raise Refused(413, _said(self._limits), headers=CLOSE)
        return message

    async def drain(self) -> None:
        """Throw away what still comes, as far as that is to be borne."""
        try:
            while not self._done and self._seen <= DRAINED * self._limits.body:
                await self._next()
        except Refused:
            return

    async def _next(self) -> Message:
        try:
            message = await asyncio.wait_for(self._receive(), max(self._until - monotonic(), 0.001))
        except TimeoutError:
            self._done = True
            seconds = self._limits.upload
            raise Refused(408, f"the body did not come in time; allowed: {seconds:g} s", headers=CLOSE) from None
        self._seen += len(message.get("body", b""))
        self._done = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _header_bytes(scope: Scope) -> int:
    """As large as the header was; a server that parses whole pieces as they come takes more than it would wait for."""
    first = len(scope["method"]) + len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    return first + sum(len(name) + len(value) + len(b": \r\n") for name, value in scope["headers"])


def _said(limits: Limits) -> str:
    return f"the body is too large; allowed: at most {limits.body / MEGABYTE:g} MB"


def _too_large(limits: Limits) -> ASGIApp:
    return refusal(413, _said(limits), headers=CLOSE)
