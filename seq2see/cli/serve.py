"""`seq2see serve`: Models behind a page and an HTTP API, where people see what a model says and where it looked.

Only this machine is served, unless --host says otherwise; then every request needs the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote

from seq2see.cli.parser import Given, Parser, add_plugin, number, whole
from seq2see.cli.terminal import say
from seq2see.errors import UserError, imported

EXAMPLES = (
    "seq2see serve runs/translation",
    "seq2see serve soft=runs/captions hard=runs/captions-hard --port 9000",
    "seq2see serve runs/translation --host 0.0.0.0 --token a-long-secret-of-yours",
)
HOST, PORT, MAX_UPLOAD, PATIENCE = "127.0.0.1", 8000, 25.0, 60.0
MAX_SYMBOLS, MAX_WORK = 20_000, 200_000
CONNECTIONS, CONNECTIONS_EACH, HEADER, SEND = 512, 64, 10.0, 30.0
DECODERS, DECODE_MEMORY, DECODE_TIMEOUT, DECODE_QUEUE, MAX_DECODED = 2, 1500.0, 30.0, 512, 500.0
DECODING = ("decoders", "decode_memory", "decode_timeout", "decode_queue", "max_decoded")
POSITIVE = (
    *("max_upload", "max_symbols", "max_work", "timeout"),
    *("header_timeout", "send_timeout", "max_connections", "max_connections_each"),
    *DECODING,
)
NEEDED = ("fastapi", "uvicorn", "python_multipart")


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="folders that train wrote, or NAME=FOLDER; several joined by + are an ensemble",
    )
    parser.add_argument("--host", metavar="HOST", default=HOST, help="default: 127.0.0.1, this machine alone")
    parser.add_argument("--port", metavar="N", type=whole, default=PORT, help="default: 8000; 0: any that is free")
    parser.add_argument(
        "--token",
        metavar="TEXT",
        help="what requests must carry (or SEQ2SEE_TOKEN, which others on this machine see not)",
    )
    parser.add_argument(
        "--max-upload", metavar="MB", type=number, default=MAX_UPLOAD, help="of a request (default: 25)"
    )
    parser.add_argument(
        "--max-symbols", metavar="N", type=whole, default=MAX_SYMBOLS, help="of one text (default: 20,000)"
    )
    parser.add_argument(
        "--max-work",
        metavar="N",
        type=whole,
        default=MAX_WORK,
        help="symbols that one request has read and written, looking counted (default: 200,000)",
    )
    parser.add_argument("--timeout", metavar="S", type=number, default=PATIENCE, help="for an answer (default: 60)")
    parser.add_argument(
        "--header-timeout", metavar="S", type=number, default=HEADER, help="for a request's header (default: 10)"
    )
    parser.add_argument(
        "--send-timeout",
        metavar="S",
        type=number,
        default=SEND,
        help="for a client to read its answer on (default: 30)",
    )
    parser.add_argument(
        "--max-connections", metavar="N", type=whole, default=CONNECTIONS, help="open at once (default: 512)"
    )
    parser.add_argument(
        "--max-connections-each",
        metavar="N",
        type=whole,
        default=CONNECTIONS_EACH,
        help="from one address, other than this machine's own (default: 64)",
    )
    parser.add_argument(
        "--decoders", metavar="N", type=whole, default=DECODERS, help="processes that decode files (default: 2)"
    )
    parser.add_argument(
        "--decode-memory",
        metavar="MB",
        type=number,
        default=DECODE_MEMORY,
        help="of each of these processes (default: 1,500)",
    )
    parser.add_argument(
        "--decode-timeout", metavar="S", type=number, default=DECODE_TIMEOUT, help="for one file (default: 30)"
    )
    parser.add_argument(
        "--decode-queue",
        metavar="N",
        type=whole,
        default=DECODE_QUEUE,
        help="files that may wait to be decoded (default: 512)",
    )
    parser.add_argument(
        "--max-decoded",
        metavar="MB",
        type=number,
        default=MAX_DECODED,
        help="of decoded files that all requests hold together (default: 500)",
    )
    parser.add_argument(
        "--files",
        metavar="DIR",
        type=Path,
        action="append",
        help="a folder whose pictures, sounds, videos and tables may be shown as examples (repeatable)",
    )
    add_plugin(parser)


def run(given: Given) -> None:
    for name in POSITIVE:
        if not 0 < getattr(given, name) < float("inf"):
            raise UserError(f"--{name.replace('_', '-')} must be above 0, got {getattr(given, name):g}")
    serve_studio(
        given.models,
        host=given.host,
        port=given.port,
        token=given.token,
        max_upload=given.max_upload,
        max_symbols=given.max_symbols,
        max_work=given.max_work,
        patience=given.timeout,
        header=given.header_timeout,
        send=given.send_timeout,
        connections=given.max_connections,
        connections_each=given.max_connections_each,
        files=given.files or (),
        **{name: getattr(given, name) for name in DECODING},
    )


def serve_studio(
    models: Sequence[str],
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    max_upload: float = MAX_UPLOAD,
    max_symbols: int = MAX_SYMBOLS,
    max_work: int = MAX_WORK,
    patience: float = PATIENCE,
    header: float = HEADER,
    send: float = SEND,
    connections: int = CONNECTIONS,
    connections_each: int = CONNECTIONS_EACH,
    files: Sequence[Path] = (),
    decoders: int = DECODERS,
    decode_memory: float = DECODE_MEMORY,
    decode_timeout: float = DECODE_TIMEOUT,
    decode_queue: int = DECODE_QUEUE,
    max_decoded: float = MAX_DECODED,
) -> None:
    """Serve until Ctrl-C; max_upload: megabytes of a request, max_symbols: of one text, max_work: symbols that one
    request has read and written, patience: seconds for an answer, header: for a request's header, send: for reading on
    in an answer; connections, connections_each: open at once, from one address; files: folders whose files may be
    shown.

    Files are decoded by so many processes (decoders) with decode_memory megabytes each, decode_timeout: seconds for one
    file, decode_queue: files that may wait, max_decoded: megabytes of what all requests together have decoded."""
    for folder in files:
        if not folder.is_dir():
            wrong = f"a file; allowed: a folder ({folder.parent})" if folder.exists() else "no such folder"
            raise UserError(f"--files {folder}: {wrong}")
    for module in NEEDED:
        imported(module, extra="studio")
    from seq2see.studio.app import make_app
    from seq2see.studio.counters import Counters
    from seq2see.studio.guard import is_loopback
    from seq2see.studio.served import shelf_of
    from seq2see.studio.server import address, bound, token_for
    from seq2see.studio.server import run as serve
    from seq2see.studio.settings import MEGABYTE, Limits

    token = token_for(host, token)
    limits = Limits(
        body=int(max_upload * MEGABYTE),
        symbols=max_symbols,
        work=max_work,
        patience=patience,
        header=header,
        send=send,
        connections=connections,
        connections_each=connections_each,
        decoders=decoders,
        decoder_memory=int(decode_memory * MEGABYTE),
        decoder_seconds=decode_timeout,
        decoder_waiting=decode_queue,
        decoded=int(max_decoded * MEGABYTE),
    )
    counters = Counters()
    with closing(bound(host, port)) as listening:
        shelf = shelf_of(models, limits, counters, files=files)
        for one in shelf:
            if one.outside:
                say(_elsewhere(one.name, one.outside[0].parent))
        app = make_app(shelf, limits, counters, token=token, local=is_loopback(host))
        names = ", ".join(one.name for one in shelf)
        asks = "?token=..." if token else ""
        serve(app, listening, limits, started=lambda: say(f"{names}: {address(listening)}{asks}   (Ctrl-C ends)"))


def _elsewhere(name: str, place: Path) -> str:
    """The place is whatever the model's folder says: it is quoted, since people paste it."""
    given = quote(str(place)) if str(place).isprintable() else ascii(str(place))
    return (
        f"{name}: its examples lie elsewhere and are not shown unless --files {given}; "
        "it is the model's folder that names this place: give it only if you trust that folder"
    )
