"""Spans and metrics for OpenTelemetry, read from its own exporters in memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.cli import main
from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from seq2see.studio.telemetry import OpenTelemetry
from tests.studio.conftest import LIMITS

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_spans_of_requests_and_batches_and_the_metrics(speller: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    metrics = ServerMetrics(OpenTelemetry(provider, MeterProvider([reader])))
    repository = load_models([str(speller)], LIMITS, metrics)
    app = create_app(repository, LIMITS, metrics)
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        parent = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-ID": "mine"}
        assert client.post("/api/predict", json={"inputs": ["face", "deaf"]}, headers=parent).status_code == 200
        assert client.get("/secret/path", headers={"traceparent": "nonsense"}).status_code == 404

    batch, other, request = sorted(spans.get_finished_spans(), key=lambda span: span.name.lower())
    assert (batch.name, dict(batch.attributes)) == ("batch", {"seq2see.model": "speller", "seq2see.rows": 2})
    assert [link.context.span_id for link in batch.links] == [request.context.span_id]
    assert request.name == "POST /api/predict"
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == SPAN
    assert request.attributes["seq2see.rows"] == 2
    assert request.attributes["seq2see.request_id"] == "mine"
    assert (other.name, other.parent, other.attributes["http.response.status_code"]) == ("GET other", None, 404)
    assert "secret" not in "".join(span.to_json() for span in (batch, request, other))

    data: Any = reader.get_metrics_data()
    found = {
        metric.name: metric.data.data_points
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert sum(point.value for point in found["seq2see.requests"]) == 2
    assert sum(point.count for point in found["http.server.request.duration"]) == 2
    assert [(point.sum, point.count) for point in found["seq2see.batch.rows"]] == [(2, 1)]
    assert [point.value for point in found["seq2see.waiting"]] == [0]


def test_without_the_extra_the_error_names_it(
    speller: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(SystemExit, match="2"):
        main(["serve", str(speller), "--otel"])
    assert "opentelemetry is not installed: pip install 'seq2see[otel]'" in capsys.readouterr().err
