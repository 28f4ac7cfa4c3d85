"""A run that can be watched while it goes: its pages, on this machine alone, by a thread beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.studio.bounds import Bounds
from seq2see.studio.failing import Faults, tell_failures
from seq2see.studio.guard import Guard
from seq2see.studio.openapi import run_document
from seq2see.studio.pages import add_pages
from seq2see.studio.refusing import Refused
from seq2see.studio.runs import add_run
from seq2see.studio.server import address, bound, server_of
from seq2see.studio.settings import GRACE, Limits
from seq2see.studio.watched import Live, Watched

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
