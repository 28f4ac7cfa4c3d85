"""`seq2see serve`: Serve models with a web page and an HTTP API that show outputs and where the model looked.

Only this machine is served unless --host is given; then every request needs the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote

from seq2see.cli.parser import Arguments, Parser, add_plugin, add_threads, integer, number, say
from seq2see.errors import UserError, imported
from seq2see.studio.limits import Limits

EXAMPLES = (
    "seq2see serve runs/translation",
    "seq2see serve soft=runs/captions hard=runs/captions-hard --port 9000",
    "seq2see serve runs/translation --host 0.0.0.0 --token a-long-secret-of-yours",
)
HOST, PORT = "127.0.0.1", 8000
NEEDED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="model folders, or NAME=FOLDER; join several with + for an ensemble",
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
            help=f"{limit.about} (default: {limit.text})",
        )
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
    serve_studio(
        args.models,
        host=args.host,
        port=args.port,
        token=args.token,
        files=args.files or (),
        limits=Limits.from_options(args),
    )


def serve_studio(
    models: Sequence[str],
    *,
    host: str = HOST,
    port: int = PORT,
    token: str | None = None,
    files: Sequence[Path] = (),
    limits: Limits | None = None,
) -> None:
    """Serve until Ctrl-C; files: folders whose files may be shown."""
    for folder in files:
        if not folder.is_dir():
            problem = f"a file; allowed: a folder ({folder.parent})" if folder.exists() else "no such folder"
            raise UserError(f"--files {folder}: {problem}")
    for module in NEEDED:
        imported(module, extra="studio")
    from seq2see.studio.app import create_app
    from seq2see.studio.metrics import ServerMetrics
    from seq2see.studio.middleware import is_loopback
    from seq2see.studio.model_repository import load_models
    from seq2see.studio.server import listen, require_token, run_server, server_url

    token = require_token(host, token)
    limits = limits or Limits()
    metrics = ServerMetrics()
    with closing(listen(host, port)) as listening:
        repository = load_models(models, limits, metrics, files=files)
        for served in repository:
            if served.outside:
                say(_hidden_examples(served.name, served.outside[0].parent))
        app = create_app(repository, limits, metrics, token=token, local=is_loopback(host))
        names = ", ".join(served.name for served in repository)
        url = server_url(listening) + ("?token=..." if token else "")
        run_server(app, listening, limits, started=lambda: say(f"{names}: {url}   (Ctrl-C ends)"))


def _hidden_examples(name: str, folder: Path) -> str:
    """The folder is quoted: a stranger's model may name it, and people paste it."""
    quoted = quote(str(folder)) if str(folder).isprintable() else ascii(str(folder))
    return (
        f"{name}: its examples lie elsewhere and are not shown unless --files {quoted}; "
        "it is the model's folder that names this place: give it only if you trust that folder"
    )
