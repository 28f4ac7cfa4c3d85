"""A client that openapi-python-client generates from the document works against the server."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

pytestmark = pytest.mark.slow


def test_a_generated_client_lists_models_and_health(client: TestClient, site: str, tmp_path: Path) -> None:
    pytest.importorskip("openapi_python_client", reason="the extra `dev` is not installed")
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get("/openapi.json").json()), "utf-8")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document), "--meta", "none"]
    made = subprocess.run(
        [*command, "--output-path", str(tmp_path / "generated")], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    sys.path.insert(0, str(tmp_path))
    try:
        connection = importlib.import_module("generated").Client(base_url=site.rstrip("/"))
        models = importlib.import_module("generated.api.models.models").sync(client=connection)
        health = importlib.import_module("generated.api.watch.health").sync(client=connection)
    finally:
        sys.path.remove(str(tmp_path))
    assert "speller" in [model.name for model in models.models]
    assert health.status == "ok"
