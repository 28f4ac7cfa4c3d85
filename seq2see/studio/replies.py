"""Answers as JSON: one shape for all that is refused."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from seq2see.pipeline.plain import finite

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
