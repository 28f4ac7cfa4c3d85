"""What the server allows, in one record."""

from __future__ import annotations

from dataclasses import dataclass

from seq2see.data.decoder_pool import MEMORY, PROCESSES, RESULT, SECONDS, WAITING

MEGABYTE = 1_000_000
GRACE = 5
"""Seconds that work under way has when the server ends."""
HEADER_BYTES = 1 << 16
"""Of a request's header, its first line counted."""


@dataclass(frozen=True)
class Limits:
    """body: bytes of a request; characters: of one text; symbols: the same, as the model reads it; inputs: in one
    request; work: symbols that one request has read and written (`work.py`); waiting: inputs that may wait for a model;
    rows, padded: inputs that are read in one batch, and their symbols with those that fill them up to the longest;
    patience: seconds for an answer; upload: seconds for a body; connections: open at once, connections_each: of them
    from one address (other than this machine's own); header: seconds for the header of a request; send: seconds in
    which a client has to read on in its answer; answer: bytes of one; unread: bytes of
    all answers that wait for their clients to read.

    Files are decoded by so many `decoders`, processes with so many bytes of `decoder_memory` each; `decoder_seconds`:
    for each file; `decoder_waiting`: files that may wait for that; `decoded`: bytes of what the files of all requests
    under way were decoded to."""

    body: int = 25 * MEGABYTE
    characters: int = 50_000
    symbols: int = 20_000
    inputs: int = 64
    work: int = 200_000
    waiting: int = 1024
    rows: int = 256
    padded: int = 16_000
    patience: float = 60.0
    upload: float = 60.0
    connections: int = 512
    connections_each: int = 64
    header: float = 10.0
    send: float = 30.0
    answer: int = 100 * MEGABYTE
    unread: int = 250 * MEGABYTE
    decoders: int = PROCESSES
    decoder_memory: int = MEMORY
    decoder_seconds: float = SECONDS
    decoder_waiting: int = WAITING
    decoded: int = RESULT
