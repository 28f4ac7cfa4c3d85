"""Routes of a run: what it is, its reports, its film. The same for one that goes on and for one that is over."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import Response

from seq2see.studio.asked import Invalid
from seq2see.studio.replies import reply
from seq2see.studio.watched import Watched

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
