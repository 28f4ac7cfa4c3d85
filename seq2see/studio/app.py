"""The ASGI applications: the server of models, and the server of one training run, with their routes and pages."""

from __future__ import annotations

import asyncio
import logging
import mimetypes
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.studio import schemas
from seq2see.studio.http import RequestError, add_error_handlers, json_response, media_response
from seq2see.studio.inputs import InputReader
from seq2see.studio.limits import MEGABYTE, SHUTDOWN_GRACE, Limits
from seq2see.studio.metrics import CONTENT_TYPE, RequestMetrics, ServerMetrics
from seq2see.studio.middleware import AccessControl, RequestBoundary, RequestLimits
from seq2see.studio.model_repository import ModelRepository
from seq2see.studio.openapi import REQUESTS, models_document, run_document
from seq2see.studio.request_body import ScratchFolder, read_body
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
) -> RequestBoundary:
    """The server of models; local: only this machine can reach it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(repository.close, SHUTDOWN_GRACE)

    # The parser of forms logs bytes that it cannot read, and these are the client's.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    app = _create_fastapi(models_document(list(repository), limits, token=token is not None), lifespan=lifespan)
    _add_model_routes(app, repository)
    _add_monitoring_routes(app, repository, metrics, limits)
    for name, (schema, _) in REQUESTS.items():
        app.post(f"/api/{name}")(_inference_route(name, schema, repository, limits))
    _add_run_routes(app, repository.get_run)
    _add_pages(app, {"/": "index.html", "/docs": "docs.html", "/live": "live.html"})
    limited = AccessControl(RequestLimits(app, limits), token=token, local=local)
    return RequestBoundary(RequestMetrics(limited, metrics))


def create_run_app(run: TrainingRun) -> RequestBoundary:
    """The server of one training run, for this machine alone."""

    def get_run(name: str | None) -> TrainingRun:
        if name not in (None, run.name):
            unknown = shortened(name, quotes=False)
            raise RequestError(404, f"model: '{unknown}' is not being trained here; allowed: {run.name}")
        return run

    app = _create_fastapi(run_document(run.name))
    _add_run_routes(app, get_run)
    _add_pages(app, {"/": "live.html", "/live": "live.html", "/docs": "docs.html"})
    return RequestBoundary(AccessControl(RequestLimits(app, Limits()), token=None, local=True))


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
            progress.failure = str(error) if isinstance(error, UserError) else "the training was broken off"
            raise
        finally:
            progress.close()
            run.wait_for_page()
            server.should_exit = True
            thread.join(SHUTDOWN_GRACE + 1)


def _create_fastapi(document: dict[str, Any], **options: Any) -> FastAPI:
    """FastAPI with our OpenAPI document, error handlers, and without its own documentation pages."""
    app = FastAPI(
        title="seq2see", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False, **options
    )
    app.openapi = lambda: document  # type: ignore[method-assign]
    add_error_handlers(app)
    return app


# ---------------------------------------------------------------- inference


def _inference_route(
    name: str, schema: type[schemas.ModelRequest], repository: ModelRepository, limits: Limits
) -> Callable[[Request], Awaitable[Response]]:
    """The route of one method of `InferenceService`."""

    def input_kinds(model: str | None) -> dict[str, bool]:
        inputs = repository.get(model).model.recipe.inputs
        return {name: settings.file for name, settings in inputs.items()}

    async def answer(request: Request) -> Response:
        with ScratchFolder() as scratch:
            validate = partial(schemas.validate, schema, rows=limits.request_inputs)
            body = await read_body(request, scratch, input_kinds, validate)
            served = repository.get(body.model)
            reader = InputReader(
                served.model, scratch, limits, served.examples, hidden=bool(served.outside), media=served.media
            )
            with closing(reader):
                method = getattr(InferenceService(served, reader, limits), name)
                record = await _while_connected(request, method(body))
        response = await run_in_threadpool(json_response, record)
        size, most = len(response.body), limits.response_bytes
        if size > most:
            raise UserError(
                f"the answer has {size / MEGABYTE:,.1f} MB; allowed: at most {most / MEGABYTE:g} MB; "
                "ask for fewer or shorter inputs, a smaller n_best or max_length, or without looks and maps"
            )
        return response

    answer.__name__ = name
    return answer


async def _while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
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


def _add_monitoring_routes(
    app: FastAPI, repository: ModelRepository, server_metrics: ServerMetrics, limits: Limits
) -> None:
    @app.get("/health")
    async def health() -> Response:  # on the event loop: all threads may be busy
        record = repository.health(limits.timeout)
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
        raise schemas.InvalidRequest(f"after: '{text[:40]}' is no number; allowed: 0, or what `next` said before")
    return int(text)


def _add_pages(app: FastAPI, pages: Mapping[str, str]) -> None:
    """pages: {path: file}; everything else that they load is under /static."""
    mimetypes.add_type("text/javascript", ".js")  # browsers refuse modules of another type

    def page(file: str) -> Callable[[], Response]:
        return lambda: FileResponse(STATIC / file)

    for path, file in pages.items():
        app.get(path, include_in_schema=False)(page(file))
    app.mount("/static", StaticFiles(directory=STATIC))
