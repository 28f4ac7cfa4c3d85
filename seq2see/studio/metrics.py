"""Metrics for Prometheus: requests by route and status, seconds, rows of batches, inputs that wait; and the middleware
that measures requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seq2see.studio.request_log import METHODS, RequestLog, RequestRecord, timestamp
from seq2see.studio.telemetry import Telemetry

CONTENT_TYPE = "text/plain; version=0.0.4"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that tells prometheus_client, before it is imported, where several processes keep their counts."""


class ServerMetrics:
    """What one server has done since it started, in a registry of its own; any thread may count.

    Of several worker processes (`SHARED_FOLDER`) each can tell what all of them have done."""

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.telemetry = telemetry or Telemetry()
        self._queues: dict[str, Callable[[], int]] = {}
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
        self._waiting = Gauge(
            "seq2see_waiting",
            "Inputs that wait for a model.",
            ["model"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._reloads = Counter(
            "seq2see_reloads_total", "Models loaded again, by outcome.", ["model", "outcome"], registry=registry
        )

    def count_request(self, record: RequestRecord) -> None:
        """By the route, not the path that a client asked for: clients must not be able to create series."""
        self._requests.labels(record.path, str(record.status)).inc()
        self._seconds.labels(record.path).observe(record.milliseconds / 1000)
        self._count_queues()

    def count_batch(self, model: str, rows: int) -> None:
        self._rows.labels(model).observe(rows)
        self.telemetry.count_batch(model, rows)
        self._count_queues()

    def count_reload(self, model: str, outcome: str) -> None:
        self._reloads.labels(model, outcome).inc()

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Call `waiting` for the length of this model's queue."""
        self._queues[model] = waiting
        self.telemetry.watch_queue(model, waiting)

    def text(self) -> str:
        """All metrics in Prometheus' text format."""
        self._count_queues()
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry).decode()
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together).decode()

    def _count_queues(self) -> None:
        for model, waiting in list(self._queues.items()):
            self._waiting.labels(model).set(waiting())


class RequestMetrics:
    """Middleware that measures requests: for the metrics, the log and the traces."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, log: RequestLog | None = None):
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status, sizes = perf_counter(), 0, {"in": 0, "out": 0}
        state = scope.setdefault("state", {})

        async def count_received() -> Message:
            message = await receive()
            sizes["in"] += len(message.get("body", b""))
            return message

        async def count_sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            sizes["out"] += len(message.get("body", b""))
            await send(message)

        method = scope["method"] if scope["method"] in METHODS else "?"
        with self._metrics.telemetry.request(method, scope["headers"]) as span:
            try:
                await self._app(scope, count_received, count_sent)
            except asyncio.CancelledError:
                status = status or 503
                raise
            finally:
                record = RequestRecord(
                    time=timestamp(),
                    id=state.get("request_id", ""),
                    method=method,
                    path=getattr(scope.get("route"), "path", None) or "other",
                    status=status or 500,
                    milliseconds=round(1000 * (perf_counter() - start), 3),
                    model=state.get("model"),
                    rows=state.get("rows"),
                    bytes_in=sizes["in"],
                    bytes_out=sizes["out"],
                )
                self._metrics.count_request(record)
                self._metrics.telemetry.end_request(span, record)
                if self._log is not None:
                    self._log.add(record)
