"""Who may ask: the address a request came to, the page it came from, the token; and what browsers must refuse."""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.replies import refusal

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
