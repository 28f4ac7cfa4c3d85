"""Metrics for Prometheus: requests by route and status, seconds, rows of batches, inputs that wait."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = "text/plain; version=0.0.4"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """What one server has done since it started, in a registry of its own; any thread may count."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "seq2see_requests_total", "Requests answered, by route and status.", ["path", "status"], registry=registry
        )
        self._seconds = Histogram(
            "seq2see_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self._rows = Histogram(
            "seq2see_batch_rows", "Inputs that were answered together.", ["model"], buckets=ROWS, registry=registry
        )
        self._waiting = Gauge("seq2see_waiting", "Inputs that wait for a model.", ["model"], registry=registry)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """path: the route, not the path that a client asked for: clients must not be able to create series."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_batch(self, model: str, rows: int) -> None:
        self._rows.labels(model).observe(rows)

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Call `waiting` for the length of this model's queue whenever the metrics are read."""
        self._waiting.labels(model).set_function(waiting)

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry).decode()


class RequestMetrics:
    """Middleware that counts requests and measures their seconds."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            route = getattr(scope.get("route"), "path", None)
            self._metrics.count_request(route or "other", status, perf_counter() - start)
