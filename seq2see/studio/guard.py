"""Who may ask: the address a request came to, the page it came from, the token; and what browsers must refuse."""

from __future__ import annotations

import asyncio
import hmac
import re
from ipaddress import ip_address
from time import monotonic
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.http import Refused, refusal
from seq2see.studio.settings import HEADER_BYTES, MEGABYTE, Limits

COOKIE = "seq2see-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Nothing from elsewhere, nothing inline; the address, which may hold a token, is told to nobody."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests that carry no token where there is one; that came for another host (a page elsewhere whose name
    was made to point here); and that a page of another origin sent."""

    def __init__(self, app: ASGIApp, *, token: str | None, local: bool):
        self._app, self._token, self._local = app, token, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if scope["path"].startswith("/api") else "no-cache")
            await send(message)

        headers = Headers(scope=scope)
        answer = self._stranger(headers) or self._unknown(scope, headers)
        await (answer or self._app)(scope, receive, guarded)

    def _stranger(self, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        name = _split(f"//{host}").hostname
        if host and name is None:
            return refusal(400, f"Host '{host}' is no address; allowed: NAME or NAME:PORT")
        if self._local and not is_loopback(name or ""):
            return refusal(403, f"Host '{host}' is not served; allowed: 127.0.0.1, localhost")
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc.lower() != host.lower():
            return refusal(403, f"Origin '{origin}' may not ask here; allowed: pages of this server, programs")
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """A refusal without the token; a page that is opened with it in its address gets it as a cookie instead."""
        if self._token is None:
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._same(bearer.strip()):
            return None
        if self._same(cookie_parser(headers.get("cookie", "")).get(COOKIE)):
            return None
        if scope["method"] == "GET" and self._same(query.pop("token", None)):
            rest = f"?{urlencode(query)}" if query else ""
            path = scope["path"].lstrip("/\\")  # a second slash would make it another host's address
            answer = RedirectResponse(f"/{path}{rest}", status_code=303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        message = "a token is needed: header 'Authorization: Bearer TOKEN', or open /?token=TOKEN in the browser"
        return refusal(401, message, headers={"WWW-Authenticate": "Bearer"})

    def _same(self, given: str | None) -> bool:
        """Compared in a time that tells nothing of where they differ."""
        expected = (self._token or "").encode()
        return given is not None and hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected)


def _split(address: str) -> SplitResult:
    """The parts of an address; of what is none, nothing."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


# ---------------- Headers and bodies that are too large, bodies that are too slow, before anybody reads them

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
