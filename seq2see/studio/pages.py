"""Pages and what they are made of: files of ours, and nothing from elsewhere."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

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
