"""Middleware: errors, shutdown and request ids; access (host, origin, token); security headers; size of requests."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import traceback
from collections.abc import Iterator
from ipaddress import ip_address
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.http import RequestError, error_response, server_error
from seq2see.studio.limits import HEADER_BYTES, MEGABYTE, Limits
from seq2see.studio.request_log import METHODS, REQUEST_ID, request_id

# ---------------------------------------------------------------- errors and shutdown

LOG = logging.getLogger("seq2see.studio")
WATCHED = ("/health", "/metrics")
"""Answered to the end: whoever watches the server must see that it drains."""


class RequestBoundary:
    """The outermost middleware: gives every request an id, answers requests that fail (500), those that the server's
    shutdown cancels, and those that come while it drains (503).

    It logs where an unexpected exception arose, and does not pass it on: servers log the messages of exceptions, and
    these quote what the client sent.
    """

    def __init__(self, app: ASGIApp):
        self._app = app
        self._tasks: set[asyncio.Task[Any]] = set()
        self.draining = False

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self._tasks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        if scope["type"] != "http" or task is None:
            await self._app(scope, receive, send)
            return
        started = False
        identity = request_id(Headers(scope=scope).get(REQUEST_ID))
        scope.setdefault("state", {}).update(request_id=identity, draining=self.draining)

        async def send_with_id(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = identity
                if self.draining:
                    MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if self.draining and scope["path"] not in WATCHED:
            await _closing()(scope, receive, send_with_id)
            return
        self._tasks.add(task)
        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:  # noqa: BLE001 - the last place before the server's own log
            LOG.error("%s failed (request %s)\n%s", _route(scope), identity, "\n".join(_traceback_lines(error)))
            if not started:
                await server_error()(scope, receive, send_with_id)
        except asyncio.CancelledError:
            if not started:
                await _closing()(scope, receive, send_with_id)
        finally:
            self._tasks.discard(task)

    def cancel_requests(self) -> None:
        """Cancel every request in progress; one that has no answer yet is answered with 503."""
        for task in list(self._tasks):
            task.cancel()


def _closing() -> Response:
    return error_response(503, "the server is closing", headers={"Connection": "close", "Retry-After": "1"})


def _route(scope: Scope) -> str:
    """The route as the app defines it, not the path that the client sent."""
    method = scope["method"] if scope["method"] in METHODS else "?"
    return f"{method} {getattr(scope.get('route'), 'path', None) or 'another path'}"


def _traceback_lines(error: BaseException) -> Iterator[str]:
    """Types of exceptions and lines of code, the cause first; neither messages nor values."""
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield from _traceback_lines(cause)
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    for frame in traceback.extract_tb(error.__traceback__):
        yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'


# ---------------------------------------------------------------- access

COOKIE = "seq2see-token"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Pages load nothing from elsewhere and run nothing inline; an address, which may hold the token, is no referrer."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class SecurityHeaders:
    """Adds security headers to every response."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if scope["path"].startswith("/api") else "no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class AccessControl:
    """Refuses requests without the token (where there is one), for another host (DNS rebinding), and from pages of
    another origin. local: only loopback hosts are served."""

    def __init__(self, app: ASGIApp, *, token: str | None, local: bool):
        self._app, self._token, self._local = app, token, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        response = self._check_origin(headers) or self._check_token(scope, headers)
        await (response or self._app)(scope, receive, send)

    def _check_origin(self, headers: Headers) -> Response | None:
        """A refusal where the host or the origin is another one."""
        host = headers.get("host", "")
        name = _split(f"//{host}").hostname
        if host and name is None:
            return error_response(400, f"Host '{host}' is not an address; allowed: NAME or NAME:PORT")
        if self._local and not is_loopback(name or ""):
            return error_response(403, f"Host '{host}' is not served; allowed: 127.0.0.1, localhost")
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc.lower() != host.lower():
            return error_response(403, f"Origin '{origin}' may not ask here; allowed: pages of this server, programs")
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """A refusal without the token. A page that is opened with the token in its address gets it as a cookie, and is
        redirected to the address without it."""
        if self._token is None:
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(bearer.strip()):
            return None
        if self._is_token(cookie_parser(headers.get("cookie", "")).get(COOKIE)):
            return None
        if scope["method"] == "GET" and self._is_token(query.pop("token", None)):
            rest = f"?{urlencode(query)}" if query else ""
            path = scope["path"].lstrip("/\\")  # a second slash would make it another host's address
            redirect = RedirectResponse(f"/{path}{rest}", status_code=303)
            redirect.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return redirect
        message = "a token is needed: header 'Authorization: Bearer TOKEN', or open /?token=TOKEN in the browser"
        return error_response(401, message, headers={"WWW-Authenticate": "Bearer"})

    def _is_token(self, text: str | None) -> bool:
        """Compared in constant time."""
        expected = (self._token or "").encode()
        return text is not None and hmac.compare_digest(text.encode("utf-8", "surrogateescape"), expected)


def _split(url: str) -> SplitResult:
    """The parts of a URL; empty ones where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


# ---------------------------------------------------------------- size and time of a request

DRAINED = 8
"""A body of up to so many times the limit is read and thrown away, so that its sender gets the refusal."""
CLOSE = {"Connection": "close"}
CONTENT_LENGTH = re.compile(r"[0-9]{1,20}")


class RequestLimits:
    """Refuses headers and bodies that are too large, and bodies that are too slow; holds no byte beyond the limit."""

    def __init__(self, app: ASGIApp, limits: Limits):
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _header_bytes(scope) > HEADER_BYTES:
            message = f"the header is too large; allowed: {HEADER_BYTES:,} bytes"
            await error_response(431, message, headers=CLOSE)(scope, receive, send)
            return
        body = _LimitedBody(receive, self._limits)
        length = Headers(scope=scope).get("content-length", "")
        if CONTENT_LENGTH.fullmatch(length) and int(length) > self._limits.body_bytes:
            if int(length) <= DRAINED * self._limits.body_bytes:
                await body.drain()
            await error_response(413, _too_large(self._limits), headers=CLOSE)(scope, receive, send)
            return
        await self._app(scope, body.receive, send)


class _LimitedBody:
    """Counts the bytes and seconds of a body while it comes in."""

    def __init__(self, receive: Receive, limits: Limits):
        self._receive, self._limits = receive, limits
        self._received, self._complete = 0, False
        self._deadline = monotonic() + limits.upload_timeout

    async def receive(self) -> Message:
        """The next part; a RequestError where it exceeds the limit or comes too late."""
        if self._complete:
            return await self._receive()  # waits for the client to disconnect, without a deadline
        message = await self._next()
        if self._received > self._limits.body_bytes:
            await self.drain()
            raise RequestError(413, _too_large(self._limits), headers=CLOSE)
        return message

    async def drain(self) -> None:
        """Throw away what still comes, up to `DRAINED` times the limit."""
        try:
            while not self._complete and self._received <= DRAINED * self._limits.body_bytes:
                await self._next()
        except RequestError:
            return

    async def _next(self) -> Message:
        try:
            message = await asyncio.wait_for(self._receive(), max(self._deadline - monotonic(), 0.001))
        except TimeoutError:
            self._complete = True
            seconds = self._limits.upload_timeout
            raise RequestError(408, f"the body did not come in time; allowed: {seconds:g} s", headers=CLOSE) from None
        self._received += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _header_bytes(scope: Scope) -> int:
    """Size of the header; h11 checks its own limit only while a header is incomplete."""
    first = len(scope["method"]) + len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    return first + sum(len(name) + len(value) + len(b": \r\n") for name, value in scope["headers"])


def _too_large(limits: Limits) -> str:
    return f"the body is too large; allowed: at most {limits.body_bytes / MEGABYTE:g} MB"
