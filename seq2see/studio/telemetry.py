"""Traces and metrics for OpenTelemetry (the extra `otel`); without it, nothing is recorded and nothing imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from seq2see.errors import imported
from seq2see.studio.request_log import RequestRecord

NAME = "seq2see"
MOST_LINKS = 128
"""Requests that a batch's span names, which is what OpenTelemetry allows unless told otherwise."""


class BatchTracer:
    """Observes batches; this one does nothing."""

    def origin(self) -> object:
        """What connects an input with its request; called where the request is handled."""
        return None

    def batch(self, rows: int, origins: Sequence[object]) -> AbstractContextManager[object]:
        """Entered while a batch is computed, in the model's thread."""
        return nullcontext()


class Telemetry:
    """Records nothing."""

    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> AbstractContextManager[Any]:
        """Entered while a request is answered."""
        return nullcontext()

    def end_request(self, span: Any, record: RequestRecord) -> None:
        """Called before `request` is left."""

    def count_batch(self, model: str, rows: int) -> None:
        """Called for each batch."""

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Called with the function that tells the length of a model's queue."""

    def tracer(self, model: str) -> BatchTracer | None:
        """Of a model's batches."""
        return None

    def close(self) -> None:
        """Send what was recorded."""


class OpenTelemetry(Telemetry):
    """A span for each request, which goes on with the client's trace (`traceparent`), and one for each batch, linked to
    its requests; requests, seconds, inputs that wait and rows of batches as metrics.

    traces, meters: providers of OpenTelemetry's SDK, closed with this."""

    def __init__(self, traces: Any, meters: Any):
        self._api = imported("opentelemetry.trace", extra="otel")
        self._metrics = imported("opentelemetry.metrics", extra="otel")
        self._context = imported("opentelemetry.trace.propagation.tracecontext", extra="otel")
        self._traces, self._meters = traces, meters
        self._tracer, meter = traces.get_tracer(NAME), meters.get_meter(NAME)
        self._seconds = meter.create_histogram(
            "http.server.request.duration", unit="s", description="Seconds from a request to its answer."
        )
        self._requests = meter.create_counter("seq2see.requests", description="Requests answered.")
        self._rows = meter.create_histogram("seq2see.batch.rows", description="Inputs that were answered together.")
        self._queues: dict[str, Callable[[], int]] = {}
        meter.create_observable_gauge(
            "seq2see.waiting", callbacks=[self._observe], description="Inputs that wait for a model."
        )

    @contextmanager
    def request(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
        """Of the client's headers only `traceparent` and `tracestate` are read; malformed ones count as none."""
        given = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name.startswith(b"trace")
        }
        parent = self._context.TraceContextTextMapPropagator().extract(given)
        kind = self._api.SpanKind.SERVER
        options = {"record_exception": False, "set_status_on_exception": False}  # messages quote what clients sent
        with self._tracer.start_as_current_span(method, context=parent, kind=kind, **options) as span:
            yield span

    def end_request(self, span: Any, record: RequestRecord) -> None:
        attributes = {
            "http.request.method": record.method if record.method != "?" else "_OTHER",
            "http.route": record.path,
            "http.response.status_code": record.status,
        }
        span.update_name(f"{attributes['http.request.method']} {record.path}")
        more = {"seq2see.model": record.model, "seq2see.rows": record.rows, "seq2see.request_id": record.id}
        span.set_attributes(attributes | {key: value for key, value in more.items() if value is not None})
        if record.status >= 500:
            span.set_status(self._api.StatusCode.ERROR)
        self._requests.add(1, attributes)
        self._seconds.record(record.milliseconds / 1000, attributes)

    def count_batch(self, model: str, rows: int) -> None:
        self._rows.record(rows, {"seq2see.model": model})

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        self._queues[model] = waiting

    def tracer(self, model: str) -> BatchTracer:
        return _SpanOfBatch(self._api, self._tracer, model)

    def close(self) -> None:
        self._traces.shutdown()
        self._meters.shutdown()

    def _observe(self, _: Any) -> Iterator[Any]:
        for model, waiting in list(self._queues.items()):
            yield self._metrics.Observation(waiting(), {"seq2see.model": model})


class _SpanOfBatch(BatchTracer):
    def __init__(self, api: Any, tracer: Any, model: str):
        self._api, self._tracer, self._model = api, tracer, model

    def origin(self) -> object:
        return self._api.get_current_span().get_span_context()

    def batch(self, rows: int, origins: Sequence[object]) -> AbstractContextManager[object]:
        """In a trace of its own, as a batch belongs to several requests."""
        contexts = {getattr(origin, "span_id", 0): origin for origin in origins}  # one for each request
        links = [self._api.Link(context) for span, context in list(contexts.items())[:MOST_LINKS] if span]
        attributes = {"seq2see.model": self._model, "seq2see.rows": rows}
        options = {"record_exception": False, "set_status_on_exception": False}
        span: AbstractContextManager[object] = self._tracer.start_as_current_span(
            "batch", links=links, attributes=attributes, **options
        )
        return span


def open_telemetry() -> OpenTelemetry:
    """Sends to the collector that OpenTelemetry's own variables name (OTEL_EXPORTER_OTLP_ENDPOINT, ..)."""
    sdk = "opentelemetry.sdk"
    exporter = "opentelemetry.exporter.otlp.proto.http"
    trace, trace_export = imported(f"{sdk}.trace", extra="otel"), imported(f"{sdk}.trace.export", extra="otel")
    metrics, metrics_export = imported(f"{sdk}.metrics", extra="otel"), imported(f"{sdk}.metrics.export", extra="otel")
    resource = imported(f"{sdk}.resources", extra="otel").Resource.create({"service.name": NAME})
    spans = imported(f"{exporter}.trace_exporter", extra="otel").OTLPSpanExporter()
    values = imported(f"{exporter}.metric_exporter", extra="otel").OTLPMetricExporter()
    traces = trace.TracerProvider(resource=resource)
    traces.add_span_processor(trace_export.BatchSpanProcessor(spans))
    reader = metrics_export.PeriodicExportingMetricReader(values)
    return OpenTelemetry(traces, metrics.MeterProvider([reader], resource=resource))
