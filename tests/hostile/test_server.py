"""A server with models of every kind of input is as its OpenAPI document says, whatever it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from tests.studio.test_openapi import EVERY, QUIET, SMALL, failures, outside


@QUIET
@pytest.mark.timeout(600)
@EVERY
@pytest.mark.parametrize("kind", ["set", "vector", "label"])
def test_models_of_lists_are_as_the_document_says(models: dict[str, Path], kind: str, every: int) -> None:
    repository = load_models([str(models[kind])], SMALL, ServerMetrics())
    try:
        assert failures(outside(repository), phases=["coverage", "fuzzing"], examples=1, every=every) == []
    finally:
        repository.close()


@pytest.mark.parametrize(
    ("kind", "value", "status"),
    [
        ("set", ["one", "two"], 200),
        ("set", [False], 422),
        ("set", [1, 2.5], 422),
        ("set", ["one two"], 409),
        ("label", ["one two", "two"], 200),
        ("label", [1], 422),
        ("vector", [1, 2.5], 200),
        ("vector", ["1", "2"], 422),
        ("vector", [], 422),
        ("vector", [1], 409),
        ("vector", [1e300, 1], 409),
        ("vector", [1e38, 1e38], 409),
        ("vector", {"x": 1}, 422),
        ("word", ["one"], 422),
    ],
)
def test_the_form_of_a_value_is_422_and_its_content_409(
    models: dict[str, Path], kind: str, value: Any, status: int
) -> None:
    repository = load_models([str(models[kind])], SMALL, ServerMetrics())
    client = TestClient(create_app(repository, SMALL, ServerMetrics()), base_url="http://127.0.0.1:8000")
    answer = client.post("/api/predict", json={"input": value})
    repository.close()
    assert answer.status_code == status, answer.text
