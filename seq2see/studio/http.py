"""HTTP responses: JSON records, errors in one shape, files; and work that is moved to a thread."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, Response

from seq2see.errors import UserError
from seq2see.files import finite, shortened

MEDIA_TYPES = ("image/", "audio/", "video/")
EVENTS = "text/event-stream"
MESSAGE_LENGTH = 2000
"""Characters of an error message, which may quote what the client sent."""

Result = TypeVar("Result")


class InvalidRequest(UserError):
    """A body that breaks its schema (422); what only this model or input does not allow is another UserError (409)."""


class RequestError(Exception):
    """A request that is refused with an HTTP status; what is wrong with an input itself is a UserError."""

    def __init__(self, status: int, message: str, *, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


# ---------------------------------------------------------------- responses


def json_response(record: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A record as the command line's `--json` writes it: UTF-8, infinity as null."""
    body = json.dumps(finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    content = body.encode("utf-8", "replace")
    return Response(content, status_code=status, headers=headers, media_type="application/json")


def event_bytes(name: str, record: Any) -> bytes:
    """A server-sent event."""
    content = json.dumps(finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"event: {name}\ndata: {content}\n\n".encode("utf-8", "replace")


def error_response(status: int, message: str, *, headers: dict[str, str] | None = None) -> Response:
    """{"error": what is wrong and what is allowed}"""
    short = message if len(message) <= MESSAGE_LENGTH else f"{message[: MESSAGE_LENGTH - 1]}…"
    return json_response({"error": short}, status=status, headers=headers)


def server_error() -> Response:
    """500 without details, which only the log has."""
    return error_response(500, "the server failed at this; its log says more")


def media_response(path: Path) -> Response:
    """An image, a sound or a video; any other file is sent as bytes without a type, so that no browser runs it."""
    kind = mimetypes.guess_type(path.name)[0] or ""
    return FileResponse(path, media_type=kind if kind.startswith(MEDIA_TYPES) else "application/octet-stream")


# ---------------------------------------------------------------- errors


def add_error_handlers(app: FastAPI) -> None:
    """Turn every exception of a route into {"error": ..} with its status."""
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(ClientDisconnect, _client_disconnect)
    app.add_exception_handler(Exception, _unexpected_error)


async def _user_error(_: Request, error: Exception) -> Response:
    """422: the body breaks its schema. 409: it does not, but this model cannot answer it."""
    return error_response(422 if isinstance(error, InvalidRequest) else 409, str(error))


async def _request_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error_response(error.status, str(error), headers=error.headers)


async def _http_exception(request: Request, error: Exception) -> Response:
    """What Starlette's router raises: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    path, method = shortened(request.url.path, quotes=False), shortened(request.method, quotes=False)
    messages = {404: f"nothing is at {path}; /docs lists what there is", 405: f"{method}: not here"}
    message = messages.get(error.status_code, str(error.detail))
    return error_response(error.status_code, message, headers=dict(error.headers or {}))


async def _invalid_parameters(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    names = ", ".join(shortened(str(problem["loc"][-1]), quotes=False) for problem in error.errors()[:10])
    return error_response(422, f"{names}: cannot be read; /docs lists what is allowed")


async def _client_disconnect(_: Request, error: Exception) -> Response:
    """A client that hangs up while it sends its body is not an error of the server: nothing is logged."""
    return error_response(400, "the client left before its request was whole")


async def _unexpected_error(_: Request, error: Exception) -> Response:
    """The exception goes on to `middleware.RequestBoundary`, which logs it."""
    return server_error()


# ---------------------------------------------------------------- threads

LARGE_TEXT, LARGE_BODY = 2000, 1 << 16
"""Characters that are tokenised, and bytes of JSON that are parsed, in about a millisecond: more goes to a thread."""


async def offload(work: Callable[[], Result], *, large: bool) -> Result:
    """The result of `work`; large work runs in a thread, so that the event loop goes on."""
    return await asyncio.to_thread(work) if large else work()


def is_large(rows: Iterable[Mapping[str, str]]) -> bool:
    """Whether tokenising these rows takes long enough for a thread."""
    return sum(len(value) for row in rows for value in row.values()) > LARGE_TEXT
