"""Limits of the server: one record, from which the options of `seq2see serve` and the table in the docs are made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

MEGABYTE = 1_000_000
HEADER_BYTES = 1 << 16
"""Size of a request's header, its first line included."""
SHUTDOWN_GRACE = 5
"""Seconds for requests in progress when the server shuts down."""


@dataclass(frozen=True)
class Limit:
    """One field of `Limits`; option: the command line's name for it; unit: of the option's value and of the table;
    shared: holds for all requests together, so that worker processes divide it."""

    name: str
    default: float
    about: str
    option: str | None
    unit: str
    shared: bool

    @property
    def attribute(self) -> str:
        """The name under which argparse keeps the option."""
        return (self.option or "").removeprefix("--").replace("-", "_")

    @property
    def factor(self) -> int:
        return MEGABYTE if self.unit == "MB" else 1

    @property
    def text(self) -> str:
        """The default with its unit: `25 MB`."""
        return f"{self.default / self.factor:,g} {self.unit}".strip()

    def parse(self, value: float) -> float:
        """The field's value from the option's: bytes from megabytes."""
        return int(value * self.factor) if isinstance(self.default, int) else value


def _limit(default: float, about: str, *, option: str | None = None, unit: str = "", shared: bool = False) -> Any:
    return field(default=default, metadata={"about": about, "option": option, "unit": unit, "shared": shared})


@dataclass(frozen=True)
class Limits:
    """What the server accepts. `about` says what is limited, in `serve --help` and in the table of the docs."""

    body_bytes: int = _limit(25 * MEGABYTE, "size of a request body", option="--max-upload", unit="MB")
    text_characters: int = _limit(50_000, "characters in one text")
    text_symbols: int = _limit(20_000, "symbols in one text, as the model reads it", option="--max-symbols")
    request_inputs: int = _limit(64, "inputs in one request, and of one page of a longer list")
    list_inputs: int = _limit(10_000, "inputs in a list that is answered page by page (`after`)")
    request_work: int = _limit(
        200_000, "symbols that one request reads and writes, attention included", option="--max-work"
    )
    queue_size: int = _limit(1024, "inputs waiting for a model", shared=True)
    batch_rows: int = _limit(256, "inputs in one batch")
    batch_symbols: int = _limit(16_000, "symbols in one batch, padding included")
    timeout: float = _limit(60.0, "time to answer a request, decoding of files included", option="--timeout", unit="s")
    upload_timeout: float = _limit(60.0, "time to receive a body", unit="s")
    header_timeout: float = _limit(10.0, "time to receive a request header", option="--header-timeout", unit="s")
    send_timeout: float = _limit(
        30.0, "time for a client to read the next 16 KB of a response", option="--send-timeout", unit="s"
    )
    response_bytes: int = _limit(100 * MEGABYTE, "size of a response (`looks: false` makes it smaller)", unit="MB")
    unread_bytes: int = _limit(
        250 * MEGABYTE, "responses that clients have not read yet, in total", unit="MB", shared=True
    )
    connections: int = _limit(512, "open connections", option="--max-connections", shared=True)
    connections_per_address: int = _limit(
        64,
        "open connections from one address, other than this machine's own",
        option="--max-connections-each",
        shared=True,
    )
    decoders: int = _limit(2, "processes that decode files", option="--decoders", shared=True)
    decoder_memory: int = _limit(
        1500 * MEGABYTE, "memory of each of these processes", option="--decode-memory", unit="MB"
    )
    decode_timeout: float = _limit(30.0, "time to decode one file", option="--decode-timeout", unit="s")
    decode_queue: int = _limit(512, "files waiting to be decoded", option="--decode-queue", shared=True)
    decoded_bytes: int = _limit(
        500 * MEGABYTE, "decoded files held by all requests together", option="--max-decoded", unit="MB", shared=True
    )

    @classmethod
    def all(cls) -> Iterator[Limit]:
        """Every limit, in the order of the fields."""
        for entry in fields(cls):
            yield Limit(entry.name, entry.default, **entry.metadata)  # type: ignore[arg-type]

    @classmethod
    def options(cls) -> list[Limit]:
        """The limits that the command line can change."""
        return [limit for limit in cls.all() if limit.option is not None]

    @classmethod
    def from_options(cls, arguments: object) -> Limits:
        """Limits from the parsed options of the command line."""
        values = {limit.name: limit.parse(getattr(arguments, limit.attribute)) for limit in cls.options()}
        return cls(**values)  # type: ignore[arg-type]

    def divided(self, workers: int) -> Limits:
        """The limits of each of several worker processes: what is shared is divided, so that they hold together."""
        shared = [limit.name for limit in self.all() if limit.shared]
        return replace(self, **{name: max(getattr(self, name) // workers, 1) for name in shared})

    @classmethod
    def table(cls) -> str:
        """The table of docs/serving.md; a star marks what worker processes divide."""
        rows = ["| what | limit | option |", "|---|---|---|"]
        rows += [
            f"| {limit.about} | {limit.text}{' *' if limit.shared else ''} | "
            f"{f'`{limit.option}` ' if limit.option else ''}|"
            for limit in cls.all()
        ]
        return "".join(f"{row}\n" for row in rows)
