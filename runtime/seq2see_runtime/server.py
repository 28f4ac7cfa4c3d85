"""A small HTTP server of one exported model: predict and score, with limits, on Python's own server.

    POST /api/predict   {"input": ..} or {"inputs": [..]}, with options of the search -> {"predictions": [..]}
    POST /api/score     {"input": .., "output": ".."} or {"rows": [{"input": .., "output": ..}]} -> {"rows": [..]}
    GET  /api/model     what it reads and gives
    GET  /health

Requests and answers have the form of seq2see's own server. What a client does wrong gives a 4xx with a reason.
"""

from __future__ import annotations

import base64
import hmac
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seq2see.errors import UserError, nearest
from seq2see.files import parse_json, shortened
from seq2see_runtime.model import Model

MOST_BYTES = 16 << 20
"""Of a request's body, which may hold files."""
MOST_INPUTS = 64
MOST_CHARACTERS = 20_000
"""Of the values of one input."""
MOST_STEPS = 2_000
"""Of an output, and characters of one that is given."""
MOST_WORK = 64_000
"""Inputs x hypotheses x steps of a request: 64 inputs, a beam of 10, 100 symbols."""
MOST_LOOKS = 64_000_000
"""Characters x hypotheses x steps, each of which may keep a number."""
MOST_CONNECTIONS = 64
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 12
SECONDS = 30
"""That a client may take to send its request."""
TYPES: dict[str, tuple[type, ...]] = {
    "beam": (int,),
    "n_best": (int,),
    "max_length": (int,),
    "min_length": (int,),
    "top_k": (int,),
    "seed": (int,),
    "runners_up": (int,),
    "sample": (bool,),
    "avoid_unknown": (bool,),
    "replace_unknown": (bool,),
    "maps": (bool,),
    "shortlist": (bool,),
    "temperature": (int, float),
    "top_p": (int, float),
    "length_penalty": (int, float),
    "coverage_penalty": (int, float),
    "prefix": (str,),
    "target": (str,),
}
"""Options of a prediction, and what each may be."""
NAMES: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
MOST = {"beam": 64, "n_best": 64, "max_length": MOST_STEPS, "min_length": MOST_STEPS, "runners_up": 50}


class RequestError(UserError):
    """A request that cannot be answered; status: of HTTP."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Service:
    """Answers requests about one model, one at a time: a prediction uses all its threads."""

    def __init__(self, model: Model):
        self.model = model
        self._turn = threading.Lock()
        self.routes: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("POST", "/api/predict"): self.predict,
            ("POST", "/api/score"): self.score,
            ("GET", "/api/model"): self.describe,
            ("GET", "/health"): lambda body: {"status": "ok"},
        }

    def finish(self) -> None:
        """Let the prediction that runs end: threads of a graph cannot be left behind."""
        self._turn.acquire(timeout=SECONDS)

    def predict(self, body: Any) -> dict[str, Any]:
        options = _checked(body, {"input", "inputs", "looks", *TYPES})
        looks = options.pop("looks", True)
        if not isinstance(looks, bool):
            raise RequestError(422, f"looks: true or false expected, got {shortened(looks)}")
        several, one = options.pop("inputs", None), options.pop("input", None)
        values = [one] if several is None else several
        if several is not None and (one is not None or not isinstance(several, list) or not several):
            raise RequestError(422, "inputs: a list of inputs expected, in place of input")
        if len(values) > MOST_INPUTS:
            raise RequestError(413, f"inputs: {len(values):,}; allowed: at most {MOST_INPUTS}")
        with TemporaryDirectory(prefix="seq2see-runtime-") as folder:
            rows = [self._row(value, Path(folder) / str(number)) for number, value in enumerate(values)]
            self._check_work(rows, options)
            with self._turn:
                predictions = self.model.predict_rows(rows, **options)
            for prediction, value in zip(predictions, values, strict=True):
                prediction.input = self._named(value)
        return {"predictions": [each.to_dict(looks=looks, runners_up=True) for each in predictions]}

    def score(self, body: Any) -> dict[str, Any]:
        given = _checked(body, {"input", "output", "rows"})
        rows = given.get("rows", [{key: given[key] for key in ("input", "output") if key in given}])
        if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_INPUTS:
            raise RequestError(422, f"rows: a list of 1 to {MOST_INPUTS} pairs expected")
        pairs = []
        for number, row in enumerate(rows):
            pair = _checked(row, {"input", "output"})
            output = pair.get("output")
            if not isinstance(output, str) or len(output) > MOST_STEPS:
                raise RequestError(422, f"rows[{number}].output: a text of at most {MOST_STEPS:,} characters expected")
            pairs.append((pair.get("input"), output))
        with TemporaryDirectory(prefix="seq2see-runtime-") as folder:
            read = [(self._row(value, Path(folder) / str(i)), output) for i, (value, output) in enumerate(pairs)]
            with self._turn:
                scored = self.model.score(read)
        for each, (value, _) in zip(scored, pairs, strict=True):
            each.input = self._named(value)
        return {"rows": [each.to_dict() for each in scored]}

    def describe(self, body: Any) -> dict[str, Any]:
        known = self.model.known
        return {
            key: known[key]
            for key in ("inputs", "output", "answer", "search", "version", "int8", "shortlist")
            if key in known
        }

    def _check_work(self, rows: list[dict[str, str]], options: dict[str, Any]) -> None:
        """Refuse a search that would keep others waiting, or whose looks would fill the memory."""
        own = self.model.known["search"]
        width = max(options.get("beam", own["beam"]), options.get("n_best", 1), 1)
        steps = width * min(options.get("max_length", own["max_length"]), MOST_STEPS)
        places = sum(len(text) for row in rows for name, text in row.items() if name not in self.model.files)
        if len(rows) * steps > MOST_WORK or places * steps > MOST_LOOKS:
            raise RequestError(413, "inputs, beam and max_length together ask for too much; give fewer or smaller ones")

    def _row(self, value: Any, path: Path) -> dict[str, str]:
        """The values of an input; files, which come as data: URLs and never as paths, are written beside `path`."""
        row = self.model.row(value)
        for number, name in enumerate(self.model.files):
            row[name] = _write_file(row[name], path.with_name(f"{path.name}-{number}"), name)
        if (size := sum(map(len, row.values()))) > MOST_CHARACTERS:
            raise RequestError(413, f"input: {size:,} characters; allowed: at most {MOST_CHARACTERS:,}")
        return row

    def _named(self, value: Any) -> Any:
        """An input as answers name it: of a file its type."""
        files = self.model.files
        if isinstance(value, dict):
            return {name: _media_type(text) if name in files else text for name, text in value.items()}
        return _media_type(value) if files else value


def _media_type(url: str) -> str:
    return url.partition(",")[0].removeprefix("data:").partition(";")[0]


def _write_file(url: str, path: Path, name: str) -> str:
    """A data: URL as a file."""
    head, comma, content = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64") or not comma:
        raise RequestError(422, f"input '{name}': a file as a URL expected, data:TYPE;base64,...")
    try:
        path.write_bytes(base64.b64decode(content, validate=True))
    except ValueError:
        raise RequestError(422, f"input '{name}': what follows base64, is not base64") from None
    return str(path)


def _checked(body: Any, allowed: set[str]) -> dict[str, Any]:
    """The keys of a body, each of a type that is allowed."""
    if not isinstance(body, dict):
        raise RequestError(422, f"the body should be a JSON object, got {shortened(body)}")
    for key, value in body.items():
        if key not in allowed:
            names = ", ".join(sorted(allowed))
            raise RequestError(
                422, f"unknown key '{shortened(key, quotes=False)}'{nearest(key, allowed)}; allowed: {names}"
            )
        if key in TYPES and value is not None:
            _check_value(key, value)
    return {key: value for key, value in body.items() if value is not None}


def _check_value(key: str, value: Any) -> None:
    kinds: Any = TYPES[key]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise RequestError(
            422, f"{key}: {' or '.join(kind.__name__ for kind in kinds)} expected, got {shortened(value)}"
        )
    if isinstance(value, str) and len(value) > MOST_STEPS:
        raise RequestError(413, f"{key}: {len(value):,} characters; allowed: at most {MOST_STEPS:,}")
    if not isinstance(value, str) and not -(2**63) < value < 2**63:
        raise RequestError(422, f"{key}: {shortened(value)} is too large")
    if key in MOST and value > MOST[key]:
        raise RequestError(422, f"{key}: {value}; allowed: at most {MOST[key]:,}")


class Handler(BaseHTTPRequestHandler):
    """One connection. service, token: set by `make_server`."""

    service: Service
    token: str | None = None
    protocol_version = "HTTP/1.1"
    server_version = "seq2see-runtime"
    sys_version = ""
    timeout = SECONDS
    deadline: threading.Timer

    def do_GET(self) -> None:
        self._answer("GET")
        if "Content-Length" in self.headers:
            self.close_connection = True  # a body that nobody reads would be taken for the next request

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        try:
            self._check_origin()
            self._check_token()
            body = self._body() if method == "POST" else None
            self.deadline.cancel()  # the client has sent what it had to
            status, answer = 200, self._route(method)(body)
        except RequestError as error:
            status, answer = error.status, {"error": str(error)}
        except UserError as error:
            status, answer = 409, {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - the client is told, and others are served on
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            status, answer = 500, {"error": "an error of the server's own"}
        self._reply(status, answer)

    def _reply(self, status: int, answer: Any) -> None:
        content = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        if status >= 400:
            self.close_connection = True  # the rest of a body that was not read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _route(self, method: str) -> Callable[[Any], Any]:
        path = self.path.partition("?")[0]
        route = self.service.routes.get((method, path))
        if route is not None:
            return route
        if any(known == path for _, known in self.service.routes):
            raise RequestError(405, f"{method} is not allowed here")
        raise RequestError(
            404, f"nothing at {shortened(path, quotes=False)}; there are {', '.join(p for _, p in self.service.routes)}"
        )

    def _check_origin(self) -> None:
        """A page of another origin, or one that calls this machine by another name, may not use the model."""
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise RequestError(403, "requests of pages from elsewhere are refused")
        if self.token is None and host.rpartition(":")[0].strip("[]") not in LOOPBACK and host not in LOOPBACK:
            raise RequestError(403, f"Host: {', '.join(LOOPBACK)} expected")

    def _check_token(self) -> None:
        if self.token is None or self.path == "/health":
            return
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {self.token}".encode()):
            raise RequestError(401, "a token is needed: Authorization: Bearer TOKEN")

    def _body(self) -> Any:
        if self.headers.get_content_type() != "application/json":
            raise RequestError(415, "Content-Type: application/json is needed")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 12:
            raise RequestError(411, "Content-Length: a number of bytes is needed")
        if int(length) > MOST_BYTES:
            raise RequestError(413, f"{int(length):,} bytes; allowed: at most {MOST_BYTES:,}")
        content = self.rfile.read(int(length))
        try:
            return parse_json(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise RequestError(400, f"the body is not JSON: {shortened(str(error), quotes=False)}") from None

    def handle_one_request(self) -> None:
        """A client has `SECONDS` for a whole request, however slowly it sends."""
        self.deadline = threading.Timer(SECONDS, self._hang_up)
        self.deadline.daemon = True
        self.deadline.start()
        try:
            super().handle_one_request()
        finally:
            self.deadline.cancel()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses (a method, a malformed head), as JSON."""
        self._reply(405 if code == 501 else code, {"error": message or "the request is malformed"})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Method, path and status, never contents."""
        line = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in format % arguments)
        sys.stderr.write(f"{self.log_date_time_string()} {line}\n")


class Server(ThreadingHTTPServer):
    """A thread for each connection, and no more of them than `MOST_CONNECTIONS`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[Handler]):
        self.service = handler.service
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left in the middle of its request is no error of the server's."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def make_server(model: Model, host: str, port: int, *, token: str | None = None) -> Server:
    """A server that listens, and answers once `serve_forever` is called."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise UserError(f"--token: {len(token)} characters; allowed: at least {SHORTEST_TOKEN}")
    if token is None and host not in LOOPBACK:
        raise UserError(f"--host {host}: others can reach it; give a --token, or one of {', '.join(LOOPBACK)}")
    handler = type("ModelHandler", (Handler,), {"service": Service(model), "token": token})
    try:
        return Server((host, port), handler)
    except (OSError, OverflowError) as error:
        raise UserError(f"{host}:{port}: cannot listen there: {error}") from None


def serve(model: Model, host: str, port: int, *, token: str | None = None) -> None:
    """Answer until the process is told to end."""
    server = make_server(model, host, port, token=token)
    signal.signal(signal.SIGTERM, lambda number, frame: threading.Thread(target=server.shutdown).start())
    print(f"http://{host}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        server.service.finish()
