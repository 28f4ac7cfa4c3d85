"""A run that can be watched while it goes: its pages, on this machine alone, by a thread beside it."""

from __future__ import annotations

import mimetypes
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.studio.errors import Faults, tell_failures
from seq2see.studio.guard import Bounds, Guard
from seq2see.studio.http import Refused, reply
from seq2see.studio.openapi import run_document
from seq2see.studio.schemas import Invalid
from seq2see.studio.server import address, bound, server_of
from seq2see.studio.settings import GRACE, Limits
from seq2see.studio.training_runs import Live, Watched

# ---------------- Routes of a run

Find = Callable[[str | None], Watched]


def add_run(app: FastAPI, find: Find) -> None:
    """find: the run of a model's name; `file` and `after` are those of an earlier answer (`file` and `next`)."""

    @app.get("/api/run")
    def run(model: str | None = None) -> Response:
        return reply(find(model).about())

    @app.get("/api/run/metrics")
    def run_metrics(model: str | None = None, after: str = "0", file: str | None = None) -> Response:
        return reply(find(model).metrics(_number(after), file))

    @app.get("/api/run/film")
    def run_film(model: str | None = None, after: str = "0", file: str | None = None) -> Response:
        return Response(find(model).film(_number(after), file), media_type="application/json")


def _number(given: str) -> int:
    if not (given.isascii() and given.isdigit()) or len(given) > 12:
        raise Invalid(f"after: '{given[:40]}' is no number; allowed: 0, or what `next` said before")
    return int(given)


# ---------------- Pages and what they are made of

STATIC = Path(__file__).parent / "static"


def add_pages(app: FastAPI, pages: Mapping[str, str]) -> None:
    """{path: file}, and under /static all that they ask for."""
    mimetypes.add_type("text/javascript", ".js")  # modules of another type are refused by browsers
    for path, file in pages.items():
        app.get(path, include_in_schema=False)(_page(file))
    app.mount("/static", StaticFiles(directory=STATIC))


def _page(name: str) -> Callable[[], Response]:
    def page() -> Response:
        return FileResponse(STATIC / name)

    return page


HERE = "127.0.0.1"


def live_app(run: Watched) -> Any:
    """The pages and routes of one run as an ASGI application."""

    def find(name: str | None) -> Watched:
        if name not in (None, run.name):
            raise Refused(
                404, f"model: '{shortened(name, quotes=False)}' is not being trained here; allowed: {run.name}"
            )
        return run

    app = FastAPI(title="seq2see", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    add_run(app, find)
    add_pages(app, {"/": "live.html", "/live": "live.html", "/docs": "docs.html"})
    tell_failures(app)
    described = run_document(run.name)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return Faults(Guard(Bounds(app, Limits()), token=None, local=True))


@contextmanager
def watching(folder: Path, port: int) -> Iterator[tuple[str, Live]]:
    """While inside, a thread serves the run of that folder: (its address, the listener that tells it how it goes).

    A page that looks on is told the end before the server goes.
    """
    live = Live()
    run = Watched(folder.resolve().name, folder, live=live)
    with closing(bound(HERE, port, option="--studio-port")) as listening:
        server = server_of(live_app(run))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="studio", daemon=True)
        thread.start()
        try:
            yield address(listening), live
        except BaseException as error:
            live.failure = str(error) if isinstance(error, UserError) else "the training was broken off"
            raise
        finally:
            live.close()
            run.seen_to_its_end()
            server.should_exit = True
            thread.join(GRACE + 1)
