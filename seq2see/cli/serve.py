"""`seq2see serve`: Serve models with a web page and an HTTP API that show outputs and where the model looked.

Only this machine is served unless --host is given; then every request needs the token.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from seq2see.cli.parser import Arguments, Parser, add_device, add_plugin, add_threads, integer, number
from seq2see.errors import Notice, UserError, imported
from seq2see.studio.limits import Limits
from seq2see.threads import COUNT

if TYPE_CHECKING:
    from seq2see.studio.request_log import LogFormat
    from seq2see.studio.workers import WorkerPlace

LOG = logging.getLogger("seq2see.studio")
EXAMPLES = (
    "seq2see serve runs/translation",
    "seq2see serve soft=runs/captions hard=runs/captions-hard --port 9000",
    "seq2see serve runs/translation --host 0.0.0.0 --token a-long-secret-of-yours",
    "seq2see serve runs/translation --workers 4 --log json --drain-seconds 25",
)
HOST, PORT = "127.0.0.1", 8000
DRAIN, WATCH, RATE = 25.0, 5.0, 100.0
FORMATS = ("json", "text", "none")
NEEDED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="model folders or packed models, or NAME=MODEL; join several with + for an ensemble",
    )
    parser.add_argument(
        "--host", metavar="HOST", default=HOST, help="address to serve (default: 127.0.0.1, this machine)"
    )
    parser.add_argument("--port", metavar="N", type=integer, default=PORT, help="port (default: 8000; 0: any free one)")
    parser.add_argument(
        "--token",
        metavar="TEXT",
        help="token that requests must carry (or SEQ2SEE_TOKEN, which other users of this machine cannot see)",
    )
    for limit in Limits.options():
        parser.add_argument(
            str(limit.option),
            metavar=limit.unit.upper() or "N",
            type=number if limit.unit else integer,
            default=limit.default / limit.factor if limit.unit else limit.default,
            help=f"limit: {limit.about} (default: {limit.text})",
        )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=integer,
        default=1,
        help="worker processes, which share the port, the limits and the CPU threads (default: 1)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=number,
        help="requests per second allowed to each client; 0: no limit (default: 0 on 127.0.0.1, otherwise 100)",
    )
    parser.add_argument(
        "--proxy",
        metavar="ADDRESS",
        action="append",
        help="address or network of a trusted proxy, whose X-Forwarded-For is used; may be repeated (default: none)",
    )
    parser.add_argument(
        "--log", choices=FORMATS, default="none", help="access log on stdout, one line per request (default: none)"
    )
    parser.add_argument(
        "--drain-seconds",
        metavar="S",
        type=number,
        default=DRAIN,
        help="seconds to finish requests in progress after SIGTERM (default: 25)",
    )
    parser.add_argument(
        "--watch",
        metavar="S",
        type=number,
        default=WATCH,
        help="seconds between checks for changes in a model's folder; 0: never (default: 5)",
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        help="send traces and metrics to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names (extra otel)",
    )
    add_device(parser)
    add_threads(parser)
    parser.add_argument(
        "--files",
        metavar="DIR",
        type=Path,
        action="append",
        help="folder whose pictures, sounds, videos and tables may be shown as examples; may be repeated",
    )
    add_plugin(parser)


def run(args: Arguments) -> None:
    for limit in Limits.options():
        value = getattr(args, limit.attribute)
        if not 0 < value < float("inf"):
            raise UserError(f"{limit.option} must be above 0, got {value:g}")
    for option, seconds in (
        ("--rate", args.rate or 0),
        ("--drain-seconds", args.drain_seconds),
        ("--watch", args.watch),
    ):
        if not 0 <= seconds < float("inf"):
            raise UserError(f"{option} must be 0 or above, got {seconds:g}")
    serve_studio(
        args.models,
        host=args.host,
        port=args.port,
        token=args.token,
        files=args.files or (),
        limits=Limits.from_options(args),
        options=ServeOptions(
            workers=args.workers,
            rate=args.rate,
            proxies=[_network(address) for address in args.proxy or ()],
            log=args.log,
            drain=args.drain_seconds,
            watch=args.watch,
            otel=args.otel,
            plugins=args.plugins or (),
            device=args.device,
        ),
    )


def _network(address: str) -> str:
    try:
        return str(ip_network(address))
    except ValueError:
        raise UserError(f"--proxy {address}: expected an address or a network: 10.0.0.7, 10.0.0.0/8, ::1") from None


@dataclass(frozen=True)
class ServeOptions:
    """How a server runs; rate: None: what fits its address; plugins: modules that worker processes import."""

    workers: int = 1
    rate: float | None = None
    proxies: Sequence[str] = ()
    log: LogFormat = "none"
    drain: float = DRAIN
    watch: float = 0.0
    otel: bool = False
    plugins: Sequence[str] = ()
    device: str = "cpu"


@dataclass(frozen=True)
class Serving:
    """All that a process needs to serve."""

    models: Sequence[str]
    limits: Limits
    options: ServeOptions
    token: str | None
    local: bool
    url: str
    files: Sequence[Path] = field(default=())


def serve_studio(
    models: Sequence[str],
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    files: Sequence[Path] = (),
    limits: Limits | None = None,
    options: ServeOptions | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM; files: folders whose files may be shown."""
    options = options or ServeOptions()
    for folder in files:
        if not folder.is_dir():
            problem = f"a file; allowed: a folder ({folder.parent})" if folder.exists() else "no such folder"
            raise UserError(f"--files {folder}: {problem}")
    for module in NEEDED:
        imported(module, extra="studio")
    if options.otel:
        imported("opentelemetry.sdk.trace", extra="otel")
        imported("opentelemetry.exporter.otlp.proto.http.trace_exporter", extra="otel")
    from seq2see.studio.middleware import is_loopback
    from seq2see.studio.server import listen, require_token, server_url
    from seq2see.studio.workers import check_workers

    check_workers(options.workers)
    if options.device != "cpu":
        from seq2see.pipeline.bundle import find_device

        find_device(options.device, key="--device")
    token, local = require_token(host, token), is_loopback(host)
    if options.rate is None:
        options = replace(options, rate=0.0 if local else RATE)
    with closing(listen(host, port)) as listening:
        url = server_url(listening) + ("?token=..." if token else "")
        serving = Serving(models, limits or Limits(), options, token, local, url, files)
        if options.workers == 1:
            _serve(serving, None, listening, lambda names: LOG.info("%s: %s   (Ctrl-C to stop)", names, url))
        else:
            _supervise(serving, listening)


def _serve(
    serving: Serving, place: WorkerPlace | None, listening: socket.socket, started: Callable[[str], None]
) -> None:
    """Serve in this process; place: it is one of several workers; started: called with the names of the models."""
    from seq2see.studio.app import create_app
    from seq2see.studio.clients import TokenBuckets
    from seq2see.studio.metrics import ServerMetrics
    from seq2see.studio.model_repository import ModelLoader
    from seq2see.studio.reloading import Reloader
    from seq2see.studio.request_log import RequestLog, messages_to_stderr
    from seq2see.studio.server import SharedSocket, run_server
    from seq2see.studio.telemetry import Telemetry, open_telemetry
    from seq2see.studio.workers import ReloadBoard

    options, limits = serving.options, serving.limits
    if place is not None:
        limits = limits.divided(place.count)
        listening = SharedSocket(fileno=listening.detach())
    with ExitStack() as stack:
        stack.enter_context(messages_to_stderr(options.log))
        telemetry = open_telemetry() if options.otel else Telemetry()
        stack.callback(telemetry.close)
        log = None if options.log == "none" else RequestLog(options.log)
        if log is not None:
            stack.callback(log.close)
        metrics = ServerMetrics(telemetry)
        loader = ModelLoader(serving.models, limits, metrics, files=serving.files, device=options.device)
        board = buckets = None
        if place is not None:  # before models are loaded: what is announced meanwhile is loaded again
            board = ReloadBoard(place.folder / RELOADS, len(loader.folders), place.index, place.count)
        repository = loader.load_all()
        for served in repository:
            if served.outside and (place is None or place.index == 0):
                LOG.info("%s", _hidden_examples(served.name, served.outside[0].parent))
        if options.rate:
            buckets = TokenBuckets(options.rate, path=None if place is None else place.folder / BUCKETS)
            stack.callback(buckets.close)
        app = create_app(
            repository,
            limits,
            metrics,
            token=serving.token,
            local=serving.local,
            reloader=Reloader(repository, loader, metrics, watch=options.watch, board=board),
            buckets=buckets,
            proxies=options.proxies,
            log=log,
        )
        names = ", ".join(served.name for served in repository)
        run_server(
            app,
            listening,
            limits,
            drain=options.drain,
            shared=place is not None,
            started=lambda: started(names),
        )


BUCKETS, RELOADS, METRICS = "buckets", "reloads", "metrics"
"""Files and a folder that worker processes share."""


def _supervise(serving: Serving, listening: socket.socket) -> None:
    """Serve in several processes, with the threads of the processor divided between them."""
    from prometheus_client.multiprocess import mark_process_dead

    from seq2see.studio.clients import TokenBuckets
    from seq2see.studio.metrics import SHARED_FOLDER
    from seq2see.studio.request_log import messages_to_stderr
    from seq2see.studio.workers import ReloadBoard, Supervisor

    workers, url = serving.options.workers, serving.url
    before = os.environ.get(COUNT, "1")
    first = before.split(",")[0].strip()  # OpenMP allows a number for each level
    threads = max(int(first) // workers, 1) if first.isdecimal() else 1
    with (
        messages_to_stderr(serving.options.log),
        TemporaryDirectory(prefix="seq2see-workers-", ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        (folder / METRICS).mkdir()
        os.environ |= {COUNT: str(threads), SHARED_FOLDER: str(folder / METRICS)}
        TokenBuckets.create(folder / BUCKETS)
        ReloadBoard.create(folder / RELOADS, len(serving.models), workers)
        supervisor = Supervisor(
            partial(_work, serving),
            listening,
            count=workers,
            folder=folder,
            drain=serving.options.drain,
            on_exit=mark_process_dead,
        )
        try:
            supervisor.run(lambda names: LOG.info("%s: %s   (%d workers; Ctrl-C to stop)", names, url, workers))
        finally:
            del os.environ[SHARED_FOLDER]
            os.environ[COUNT] = before


def _work(serving: Serving, place: WorkerPlace, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """One worker process."""
    from seq2see.cli.app import import_plugins, print_warnings

    import_plugins(list(serving.options.plugins))
    with print_warnings(debug=False):
        if place.index:
            warnings.simplefilter("ignore", Notice)  # the first worker says them for all
        _serve(serving, place, listening, ready)


def _hidden_examples(name: str, folder: Path) -> str:
    """The folder is quoted: a stranger's model may name it, and people paste it."""
    quoted = quote(str(folder)) if str(folder).isprintable() else ascii(str(folder))
    return (
        f"{name}: its examples are in another folder and are shown only with --files {quoted}; "
        "it is the model's folder that names this place: give it only if you trust that folder"
    )
