"""What the server allows, in one record."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """body: bytes of a request; characters: of one text; inputs: in one request; waiting: inputs that may wait for a
    model; rows: inputs that are read in one batch; patience: seconds for an answer; upload: seconds for a body."""

    body: int = 25 * MEGABYTE
    characters: int = 50_000
    inputs: int = 64
    waiting: int = 1024
    rows: int = 256
    patience: float = 60.0
    upload: float = 60.0
