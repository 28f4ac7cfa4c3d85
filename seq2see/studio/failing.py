"""What a client is told where something goes wrong: one shape, and no more than it may know."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from seq2see.errors import UserError
from seq2see.studio.refusing import Refused
from seq2see.studio.replies import refusal

LOG = logging.getLogger("seq2see.studio")


def tell_failures(app: FastAPI) -> None:
    """Every failure of a route becomes {"error": ..} with its status."""
    app.add_exception_handler(UserError, _user_error)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _failed)


async def _user_error(_: Request, error: Exception) -> Response:
    return refusal(422, str(error))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error.status, str(error), headers=error.headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: f"nothing is at {request.url.path}; /docs lists what there is", 405: f"{request.method}: not here"}
    return refusal(error.status_code, said.get(error.status_code, str(error.detail)), headers=dict(error.headers or {}))


async def _left(_: Request, error: Exception) -> Response:
    """A client that hangs up in the middle of its body is no fault of ours: nothing to log, nobody to tell."""
    return refusal(400, "the client left before its request was whole")


async def _failed(request: Request, error: Exception) -> Response:
    """What went wrong is the log's to tell, not the client's."""
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refusal(500, "the server failed at this; its log says more")
