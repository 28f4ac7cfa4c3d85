"""The server's routes: what is asked over HTTP goes to a `Service`, what it says goes back as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.studio import schemas
from seq2see.studio.bodies import Scratch, body_of
from seq2see.studio.counters import Counters
from seq2see.studio.errors import Faults, tell_failures
from seq2see.studio.guard import Bounds, Guard
from seq2see.studio.http import Refused, media, reply
from seq2see.studio.inputs import Reader
from seq2see.studio.live import add_pages, add_run
from seq2see.studio.openapi import ASKED, document
from seq2see.studio.served import FILES, Shelf
from seq2see.studio.service import Service
from seq2see.studio.settings import GRACE, MEGABYTE, Limits

Made = TypeVar("Made")


def make_app(shelf: Shelf, limits: Limits, counters: Counters, *, token: str | None = None, local: bool = True) -> Any:
    """The whole server as an ASGI application; local: only this machine can reach it."""

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(shelf.close, GRACE)

    app = FastAPI(
        title="seq2see", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=alive
    )
    _models(app, shelf)
    _watching(app, shelf, counters, limits)
    for name, (kind, _) in ASKED.items():
        route = _action(name, kind, shelf, limits)
        app.post(f"/api/{name}")(route)
    add_run(app, shelf.run)
    add_pages(app, {"/": "index.html", "/docs": "docs.html", "/live": "live.html"})
    tell_failures(app)
    described = document(list(shelf), limits, token=token is not None)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return Faults(Counting(Guard(Bounds(app, limits), token=token, local=local), counters))


class Counting:
    """Counts requests and their seconds by route."""

    def __init__(self, app: ASGIApp, counters: Counters):
        self._app, self._counters = app, counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), [500]

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            route = getattr(scope.get("route"), "path", None)
            self._counters.request(route or "other", status[0], perf_counter() - start)


def _action(
    name: str, kind: type[schemas.Asked], shelf: Shelf, limits: Limits
) -> Callable[[Request], Awaitable[Response]]:
    def names(model: str | None) -> dict[str, bool]:
        return {name: one.kind in FILES for name, one in shelf.named(model).model.recipe.inputs.items()}

    async def answer(request: Request) -> Response:
        with Scratch() as scratch:
            body = await body_of(request, scratch, names, partial(schemas.checked, kind, rows=limits.inputs))
            served = shelf.named(body.model)
            reader = Reader(
                served.model, scratch, limits, served.examples, hidden=bool(served.outside), media=served.media
            )
            with closing(reader):
                record = await while_connected(request, getattr(Service(served, reader, limits), name)(body))
        made = await run_in_threadpool(reply, record)
        size = len(made.body)
        if size > limits.answer:
            raise UserError(
                f"the answer has {size / MEGABYTE:,.1f} MB; allowed: at most {limits.answer / MEGABYTE:g} MB; "
                "ask for fewer or shorter inputs, a smaller n_best or max_length, or without looks and maps"
            )
        return made

    answer.__name__ = name
    return answer


async def while_connected(request: Request, work: Coroutine[Any, Any, Made]) -> Made:
    """What the work makes. It is a task, which is cancelled as soon as the client hangs up: whatever it waits for,
    a queue or a file that is being read, is to end by that alone."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_hung_up(request.receive))
    try:
        await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            leaving.result()
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _models(app: FastAPI, shelf: Shelf) -> None:
    @app.get("/api/models")
    def models() -> Response:
        return reply({"models": [one.summary() for one in shelf]})

    @app.get("/api/models/{name}")
    def model(name: str) -> Response:
        return reply(shelf.named(name).details)

    @app.get("/api/models/{name}/examples/{number}/{input}")
    def example(name: str, number: str, input: str) -> Response:
        served = shelf.named(name)
        inputs = [one for one, settings in served.model.recipe.inputs.items() if settings.kind in FILES]
        known = {str(one) for one in range(len(served.examples))}
        if input not in inputs or number not in known:
            allowed = (
                f"allowed: 0 to {len(known) - 1}; files: {', '.join(inputs)}" if known and inputs else "it has none"
            )
            raise Refused(404, f"example {number[:20]} of '{name}' has no file '{input[:80]}'; {allowed}")
        return media(served.example_file(int(number), input))


def _watching(app: FastAPI, shelf: Shelf, counters: Counters, limits: Limits) -> None:
    @app.get("/health")
    async def health() -> Response:  # not by a thread: those may all be busy
        record = shelf.health(limits.patience)
        status = 200 if record["status"] == "ok" else 503
        return reply(
            {"status": record["status"], "version": __version__} | record,
            status=status,
            headers={"Cache-Control": "no-store"},
        )

    @app.get("/metrics")
    def metrics() -> Response:
        text = counters.text({one.name: one.batcher.waiting for one in shelf})
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
