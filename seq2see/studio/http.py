"""HTTP answers: one JSON shape for errors, status codes, and slow work moved to a thread."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from starlette.responses import FileResponse, Response

from seq2see.files import finite

# ---------------- What a request is refused for


class Refused(Exception):
    """A request that cannot be answered as it stands; what is wrong with an input itself is a UserError (422)."""

    def __init__(self, status: int, message: str, *, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


# ---------------- Answers as JSON

MEDIA = ("image/", "audio/", "video/")
MESSAGE = 2000
"""Characters of a message; it may quote what a client sent, which may be of any length."""


def reply(record: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON as `--json` writes it: UTF-8, infinity as null."""
    body = json.dumps(finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    content = body.encode("utf-8", "replace")
    return Response(content, status_code=status, headers=headers, media_type="application/json")


def media(path: Path) -> Response:
    """A picture, a sound or a video; whatever its name says it is, a browser is told of nothing else."""
    kind = mimetypes.guess_type(path.name)[0] or ""
    return FileResponse(path, media_type=kind if kind.startswith(MEDIA) else "application/octet-stream")


def refusal(status: int, message: str, *, headers: dict[str, str] | None = None) -> Response:
    """{"error": what is wrong, and what is allowed}"""
    short = message if len(message) <= MESSAGE else f"{message[: MESSAGE - 1]}…"
    return reply({"error": short}, status=status, headers=headers)


# ---------------- Work that would hold up everybody

Made = TypeVar("Made")

CHARACTERS, BYTES = 2000, 1 << 16
"""Texts that are split, and JSON that is read, in about a millisecond; a thread costs a part of that itself."""


async def aside(work: Callable[[], Made], *, large: bool) -> Made:
    """What the work makes, by a thread where it is large."""
    return await asyncio.to_thread(work) if large else work()


def long(rows: Iterable[Mapping[str, str]]) -> bool:
    """Whether splitting these rows into symbols takes long."""
    return sum(len(value) for row in rows for value in row.values()) > CHARACTERS
