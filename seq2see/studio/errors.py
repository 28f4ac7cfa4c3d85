"""What a client is told where something goes wrong: one shape, and no more than it may know."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.studio.http import Refused, refusal
from seq2see.studio.schemas import Invalid

LOG = logging.getLogger("seq2see.studio")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


def tell_failures(app: FastAPI) -> None:
    """Every failure of a route becomes {"error": ..} with its status."""
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _failed)


class Faults:
    """Logs where a fault of ours arose and ends it there: servers log what they catch with its message, and messages
    of exceptions quote what they were given, which is the client's and no business of a log's."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:  # noqa: BLE001 - the last place before the server's own log
            LOG.error("%s failed\n%s", _route(scope), "\n".join(_places(error)))
            if not begun:
                await _fault()(scope, receive, send)


def _route(scope: Scope) -> str:
    """The route as we wrote it down, not the path that a client asked for."""
    method = scope["method"] if scope["method"] in METHODS else "?"
    return f"{method} {getattr(scope.get('route'), 'path', None) or 'another path'}"


def _places(error: BaseException) -> Iterator[str]:
    """Types of exceptions and lines of code, from the cause on; neither messages nor values."""
    earlier = error.__cause__ or error.__context__
    if earlier is not None:
        yield from _places(earlier)
    yield f"{type(error).__module__}.{type(error).__qualname__}"
    for frame in traceback.extract_tb(error.__traceback__):
        yield f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'


async def _user_error(_: Request, error: Exception) -> Response:
    """422: the body breaks its schema. 409: it does not, and yet it cannot be answered by this model."""
    return refusal(422 if isinstance(error, Invalid) else 409, str(error))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error.status, str(error), headers=error.headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, method = shortened(request.url.path, quotes=False), shortened(request.method, quotes=False)
    messages = {404: f"nothing is at {path}; /docs lists what there is", 405: f"{method}: not here"}
    message = messages.get(error.status_code, str(error.detail))
    return refusal(error.status_code, message, headers=dict(error.headers or {}))


async def _parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    names = ", ".join(shortened(str(one["loc"][-1]), quotes=False) for one in error.errors()[:10])
    return refusal(422, f"{names}: cannot be read; /docs lists what is allowed")


async def _left(_: Request, error: Exception) -> Response:
    """A client that hangs up in the middle of its body is no fault of ours: nothing to log, nobody to tell."""
    return refusal(400, "the client left before its request was whole")


async def _failed(_: Request, error: Exception) -> Response:
    """What went wrong is the log's to tell (`Faults`), not the client's."""
    return _fault()


def _fault() -> Response:
    return refusal(500, "the server failed at this; its log says more")
