"""A client that openapi-python-client generates from the document works against the server."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

ASKED = {
    "predict": {"input_": "face", "beam": 2},
    "explain": {"input_": "face", "step": 1},
    "score": {"input_": "face", "output": "F A"},
    "stream": {"input_": "face"},
}


def test_a_generated_client_asks_for_everything(client: TestClient, site: str, tmp_path: Path) -> None:
    pytest.importorskip("openapi_python_client", reason="the extra `dev` is not installed")
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get("/openapi-client.json").json()), "utf-8")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document), "--meta", "none"]
    made = subprocess.run(
        [*command, "--output-path", str(tmp_path / "generated")], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "WARNING" not in made.stdout + made.stderr
    sys.path.insert(0, str(tmp_path))
    try:
        with importlib.import_module("generated").Client(base_url=site.rstrip("/")) as connection:
            models = importlib.import_module("generated.api.models.models").sync(client=connection)
            health = importlib.import_module("generated.api.watch.health").sync(client=connection)
            bodies = importlib.import_module("generated.models")
            answers = {}
            for name in ("oracle", "nearest"):
                importlib.import_module(f"generated.api.ask.{name}")
            for name, options in ASKED.items():
                body = getattr(bodies, f"{name.capitalize()}Request")(model="speller", **options)
                ask = importlib.import_module(f"generated.api.ask.{name}").sync_detailed
                answers[name] = ask(client=connection, body=body)
    finally:
        sys.path.remove(str(tmp_path))
        for module in [name for name in sys.modules if name.split(".")[0] == "generated"]:
            del sys.modules[module]
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(ASKED, 200)
    expected = client.post("/api/predict", json={"model": "speller", "input": "face", "beam": 2}).json()
    assert answers["predict"].parsed.predictions[0].text == expected["predictions"][0]["text"]
    assert answers["score"].parsed.score.tokens > 0
    assert b"event: done" in answers["stream"].content
    assert "speller" in [model.name for model in models.models]
    assert health.status == "ok"
