"""The ASGI applications: the server of models, and the server of one training run, with their routes and pages."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.studio import schemas
from seq2see.studio.clients import RateLimit, TokenBuckets, client_of
from seq2see.studio.http import (
    EVENTS,
    InvalidRequest,
    RequestError,
    add_error_handlers,
    event_bytes,
    json_response,
    media_response,
)
from seq2see.studio.inputs import InputReader
from seq2see.studio.limits import MEGABYTE, SHUTDOWN_GRACE, Limits
from seq2see.studio.metrics import CONTENT_TYPE, RequestMetrics, ServerMetrics
from seq2see.studio.middleware import AccessControl, RequestBoundary, RequestLimits, SecurityHeaders
from seq2see.studio.model_repository import ModelRepository
from seq2see.studio.openapi import REQUESTS, client_document, models_document, run_document
from seq2see.studio.reloading import Reloader
from seq2see.studio.request_body import ScratchFolder, read_body
from seq2see.studio.request_log import RequestLog
from seq2see.studio.server import create_server, listen, server_url
from seq2see.studio.service import InferenceService
from seq2see.studio.training_runs import RunProgress, TrainingRun

LOOPBACK = "127.0.0.1"
STATIC = Path(__file__).parent / "static"

Result = TypeVar("Result")


def create_app(
    repository: ModelRepository,
    limits: Limits,
    metrics: ServerMetrics,
    *,
    token: str | None = None,
    local: bool = True,
    reloader: Reloader | None = None,
    buckets: TokenBuckets | None = None,
    proxies: Sequence[str] = (),
    log: RequestLog | None = None,
) -> RequestBoundary:
    """The server of models.

    local: only this machine can reach it; reloader: loads models again; buckets: how many requests a client may send;
    proxies: addresses whose X-Forwarded-For is believed; log: of requests."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        watching = None if reloader is None else asyncio.create_task(reloader.run())
        yield
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        await run_in_threadpool(repository.close, SHUTDOWN_GRACE)

    # The parser of forms logs bytes that it cannot read, and these are the client's.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    may_reload = token is not None and reloader is not None
    app = _create_fastapi(_Document(repository, limits, token=token is not None, reload=may_reload), lifespan=lifespan)
    _add_model_routes(app, repository)
    if may_reload and reloader is not None:
        _add_reload_route(app, reloader, limits)
    _add_monitoring_routes(app, repository, metrics, limits)
    for name, (schema, _) in REQUESTS.items():
        respond = _stream_events if schema is schemas.StreamRequest else partial(_respond, name)
        app.post(f"/api/{name}")(_inference_route(name, schema, respond, repository, limits))
    _add_run_routes(app, repository.get_run)
    _add_pages(app, {"/": "index.html", "/docs": "docs.html", "/live": "live.html"})
    inside: Any = AccessControl(RequestLimits(app, limits), token=token, local=local)
    if buckets is not None:  # before the token is looked at, so that nobody can try many
        inside = RateLimit(inside, buckets)
    if proxies:
        inside = ProxyHeadersMiddleware(inside, list(proxies))
    return RequestBoundary(RequestMetrics(SecurityHeaders(inside), metrics, log))


def create_run_app(run: TrainingRun) -> RequestBoundary:
    """The server of one training run, for this machine alone."""

    def get_run(name: str | None) -> TrainingRun:
        if name not in (None, run.name):
            unknown = shortened(name, quotes=False)
            raise RequestError(404, f"model: '{unknown}' is not being trained here; allowed: {run.name}")
        return run

    document = run_document(run.name)
    app = _create_fastapi(lambda: document)
    _add_run_routes(app, get_run)
    _add_pages(app, {"/": "live.html", "/live": "live.html", "/docs": "docs.html"})
    return RequestBoundary(SecurityHeaders(AccessControl(RequestLimits(app, Limits()), token=None, local=True)))


@contextmanager
def serve_training_run(folder: Path, port: int) -> Iterator[tuple[str, RunProgress]]:
    """Serve the run of that folder from a thread while inside: (its address, the listener for the training).

    A page that is open hears of the end before the server ends.
    """
    progress = RunProgress()
    run = TrainingRun(folder.resolve().name, folder, progress=progress)
    with closing(listen(LOOPBACK, port, option="--studio-port")) as listening:
        server = create_server(create_run_app(run))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="studio", daemon=True)
        thread.start()
        try:
            yield server_url(listening), progress
        except BaseException as error:
            progress.failure = str(error) if isinstance(error, UserError) else "the training was interrupted"
            raise
        finally:
            progress.close()
            run.wait_for_page()
            server.should_exit = True
            thread.join(SHUTDOWN_GRACE + 1)


class _Document:
    """The OpenAPI document, made anew when a model was replaced."""

    def __init__(self, repository: ModelRepository, limits: Limits, *, token: bool, reload: bool):
        self._repository, self._limits, self._options = repository, limits, {"token": token, "reload": reload}
        self._version, self._document = -1, dict[str, Any]()

    def __call__(self) -> dict[str, Any]:
        version = self._repository.version
        if version != self._version:
            self._document = models_document(list(self._repository), self._limits, **self._options)
            self._version = version
        return self._document


def _create_fastapi(document: Callable[[], dict[str, Any]], **options: Any) -> FastAPI:
    """FastAPI with our OpenAPI document, error handlers, and without its own documentation pages."""
    app = FastAPI(
        title="seq2see", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False, **options
    )
    app.openapi = document  # type: ignore[method-assign]
    app.get("/openapi-client.json")(lambda: client_document(document()))
    add_error_handlers(app)
    return app


# ---------------------------------------------------------------- inference


Responder = Callable[[Request, InferenceService, Any, ExitStack], Awaitable[Response]]
"""Makes the response to a body; the stack holds what the service needs, and is closed after the last byte."""


def _inference_route(
    name: str, schema: type[schemas.ModelRequest], respond: Responder, repository: ModelRepository, limits: Limits
) -> Callable[[Request], Awaitable[Response]]:
    """The route of one method of `InferenceService`."""

    async def answer(request: Request) -> Response:
        with ExitStack() as held:
            scratch = held.enter_context(ScratchFolder())
            lease = held.enter_context(repository.lease())

            def input_kinds(model: str | None) -> dict[str, bool]:
                inputs = lease.get(model).model.recipe.inputs
                return {name: settings.file for name, settings in inputs.items()}

            validate = partial(schemas.validate, schema, rows=limits.request_inputs)
            body = await read_body(request, scratch, input_kinds, validate)
            served = lease.get(body.model)
            request.scope["state"].update(model=served.name, rows=body.row_count)
            reader = InputReader(
                served.model, scratch, limits, served.examples, hidden=bool(served.outside), media=served.media
            )
            held.enter_context(closing(reader))
            service = InferenceService(served, reader, limits, client_of(request.scope))
            return await respond(request, service, body, held)

    answer.__name__ = name
    return answer


async def _respond(name: str, request: Request, service: InferenceService, body: Any, held: ExitStack) -> Response:
    """The record of that method of the service, as JSON."""
    record = await _while_connected(request, getattr(service, name)(body))
    held.close()
    response = await run_in_threadpool(json_response, record)
    _check_size(len(response.body), service.limits)
    return response


def _check_size(size: int, limits: Limits) -> None:
    most = limits.response_bytes
    if size > most:
        raise UserError(
            f"the answer has {size / MEGABYTE:,.1f} MB; allowed: at most {most / MEGABYTE:g} MB; "
            "ask for fewer or shorter inputs, a smaller n_best or max_length, or without looks and maps"
        )


async def _stream_events(request: Request, service: InferenceService, body: Any, held: ExitStack) -> Response:
    """The events of a stream. What is wrong before the first of them has a status of its own, like any other error;
    later it is an event `error`."""
    events = service.stream(body)
    first = await _while_connected(request, anext(events))

    async def lines() -> AsyncIterator[bytes]:
        yield event_bytes(*first)
        try:
            async for name, record in events:
                content = await run_in_threadpool(event_bytes, name, record)
                _check_size(len(content), service.limits)
                yield content
        except (UserError, RequestError) as error:
            yield event_bytes("error", {"error": str(error)})

    return _EventResponse(lines(), held.pop_all())


class _EventResponse(StreamingResponse):
    """Server-sent events; held: closed after the last of them, or when the client is gone."""

    def __init__(self, lines: AsyncIterator[bytes], held: ExitStack):
        super().__init__(lines, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)


async def _while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """The result of `work`, a task that is cancelled as soon as the client hangs up, whatever it waits for."""
    task = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request.receive))
    try:
        await asyncio.wait((task, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            disconnected.result()
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        disconnected.cancel()
        await asyncio.gather(task, disconnected, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# ---------------------------------------------------------------- models, monitoring, runs, pages


def _add_model_routes(app: FastAPI, repository: ModelRepository) -> None:
    @app.get("/api/models")
    def models() -> Response:
        return json_response({"models": [model.summary() for model in repository]})

    @app.get("/api/models/{name}")
    def model(name: str) -> Response:
        return json_response(repository.get(name).details)

    @app.get("/api/models/{name}/examples/{number}/{input}")
    def example(name: str, number: str, input: str) -> Response:
        served = repository.get(name)
        files = [key for key, settings in served.model.recipe.inputs.items() if settings.file]
        numbers = list(map(str, range(len(served.examples))))
        if input not in files or number not in numbers:
            has_files = bool(numbers and files)
            allowed = f"allowed: 0 to {numbers[-1]}; files: {', '.join(files)}" if has_files else "it has none"
            raise RequestError(404, f"example {number[:20]} of '{name}' has no file '{input[:80]}'; {allowed}")
        return media_response(served.example_file(int(number), input))


def _add_reload_route(app: FastAPI, reloader: Reloader, limits: Limits) -> None:
    """Only for servers with a token: loading a model takes seconds of all cores."""

    @app.post("/api/models/{name}/reload")
    async def reload(name: str) -> Response:
        return json_response(await reloader.request(name, limits.timeout))


def _add_monitoring_routes(
    app: FastAPI, repository: ModelRepository, server_metrics: ServerMetrics, limits: Limits
) -> None:
    @app.get("/health")
    async def health(request: Request) -> Response:  # on the event loop: all threads may be busy
        record = repository.health(limits.timeout)
        if request.scope.get("state", {}).get("draining"):
            record["status"] = "draining"
        status = 200 if record["status"] == "ok" else 503
        record = {"status": record["status"], "version": __version__} | record
        return json_response(record, status=status, headers={"Cache-Control": "no-store"})

    @app.get("/metrics")
    def metrics() -> Response:
        return PlainTextResponse(server_metrics.text(), media_type=CONTENT_TYPE)


def _add_run_routes(app: FastAPI, get_run: Callable[[str | None], TrainingRun]) -> None:
    """get_run: the run of a model; `file` and `after` of a request are `file` and `next` of an earlier answer."""

    @app.get("/api/run")
    def run(model: str | None = None) -> Response:
        return json_response(get_run(model).about())

    @app.get("/api/run/metrics")
    def run_metrics(model: str | None = None, after: str = "0", file: str | None = None) -> Response:
        return json_response(get_run(model).metrics(_parse_number(after), file))

    @app.get("/api/run/film")
    def run_film(model: str | None = None, after: str = "0", file: str | None = None) -> Response:
        return Response(get_run(model).film(_parse_number(after), file), media_type="application/json")


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        raise InvalidRequest(f"after: '{text[:40]}' is not a number; allowed: 0, or what `next` said before")
    return int(text)


def _add_pages(app: FastAPI, pages: Mapping[str, str]) -> None:
    """pages: {path: file}; everything else that they load is under /static."""
    mimetypes.add_type("text/javascript", ".js")  # browsers refuse modules of another type

    def page(file: str) -> Callable[[], Response]:
        return lambda: FileResponse(STATIC / file)

    for path, file in pages.items():
        app.get(path, include_in_schema=False)(page(file))
    app.mount("/static", StaticFiles(directory=STATIC))
