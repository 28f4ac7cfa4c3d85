"""The OpenAPI document tells the truth: whatever it allows is answered, whatever it forbids is refused as it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.generation.meta import TestPhase
from starlette.testclient import TestClient

from seq2see.studio.app import create_app, create_run_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelLoader, ModelRepository, load_models
from seq2see.studio.reloading import Reloader
from seq2see.studio.training_runs import RunProgress, TrainingRun

TOKEN = "a-long-enough-token"
SMALL = Limits(body_bytes=300_000, text_characters=60, request_inputs=3, list_inputs=5, request_work=2_000)
"""Whatever is at its limit takes its time."""
CHECKS = {
    *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance"),
    *("response_schema_conformance", "positive_data_acceptance", "negative_data_rejection", "unsupported_method"),
    *("use_after_free", "ensure_resource_availability", "missing_required_header", "ignored_auth"),
}
QUIET = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""Forms that never end leave a temporary file to the garbage collector."""
EVERY = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
"""All bodies are sent by `make slow`."""


def failures(app: Any, *, phases: Sequence[str], examples: int, every: int = 1, token: str | None = None) -> list[str]:
    """What schemathesis finds, with all of its checks as they are by default, in this process.

    every: of the bodies that it makes for each key and kind of mistake, each so many-th is sent."""
    known = ("examples", "coverage", "fuzzing", "stateful")
    settings: dict[str, Any] = {
        "seed": 12,
        "checks": {"enabled": True},
        "generation": {"max-examples": examples, "database": "none"},
        "phases": {name: {"enabled": name in phases} for name in known},
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
    }
    config = SchemathesisConfig.from_dict(settings)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=config, headers=settings["headers"])
    made: Counter[str] = Counter()

    @schema.hook  # type: ignore[misc]
    def filter_case(context: schemathesis.HookContext, case: schemathesis.Case) -> bool:
        if case.meta is None or case.meta.phase.name != TestPhase.COVERAGE or case.method != "POST":
            return True
        if case.operation.path.endswith("/reload"):  # has no body, and so few cases
            return True
        made[case.operation.label] += 1
        return made[case.operation.label] % every == 0

    found, done = [], set()
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            found.append(repr(event))
        if isinstance(event, events.ScenarioFinished):
            for name, checks in event.recorder.checks.items():
                done |= {check.name for check in checks}
                response = event.recorder.interactions[name].response
                answer = "" if response is None else f"{response.status_code} {response.content[:300]!r}"
                found += [
                    f"{event.label}: {check.name}: {answer}\n{check.failure_info.code_sample[:2000]}"
                    for check in checks
                    if check.failure_info is not None and not any_bytes(event.recorder.cases[name].value)
                ]
    assert done >= CHECKS, "schemathesis has left checks out"
    return found


def any_bytes(case: schemathesis.Case) -> bool:
    """Whether the case breaks nothing but `format: binary`, which no bytes can break: a file may well be a picture."""
    phase = case.meta.phase.data if case.meta is not None else None
    return "violates `format` at /" in (getattr(phase, "description", None) or "")


@pytest.fixture(scope="module", params=["speller", "captions"])
def alone(request: pytest.FixtureRequest, home: Path) -> Iterator[ModelRepository]:
    """A server with one model: of text, and of pictures, which are uploaded."""
    folder = request.getfixturevalue(request.param)
    made = load_models([str(folder)], SMALL, ServerMetrics(), files=[home])
    yield made
    made.close()


def outside(repository: ModelRepository, token: str | None = None) -> Any:
    return create_app(repository, SMALL, ServerMetrics(), token=token, local=False)


@QUIET
@EVERY
def test_one_model_is_as_the_document_says(alone: ModelRepository, every: int) -> None:
    assert failures(outside(alone), phases=["coverage", "fuzzing"], examples=1, every=every) == []


@QUIET
@EVERY
def test_with_a_token_too(judge: Path, every: int) -> None:
    metrics = ServerMetrics()
    loader = ModelLoader([str(judge)], SMALL, metrics)
    repository = loader.load_all()
    reloader = Reloader(repository, loader, metrics)
    app = create_app(repository, SMALL, metrics, token=TOKEN, local=False, reloader=reloader)
    assert failures(app, phases=["coverage"], examples=1, every=every, token=TOKEN) == []
    assert repository.version > 0, "the model was loaded again among other things"
    repository.close()


@QUIET
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("token", [None, TOKEN])
def test_several_models_are_as_the_document_says(
    home: Path, speller: Path, captions: Path, judge: Path, babbler: Path, token: str | None
) -> None:
    folders = [str(folder) for folder in (speller, captions, judge, babbler)]
    repository = load_models(folders, SMALL, ServerMetrics(), files=[home])
    found = failures(outside(repository, token), phases=["coverage", "fuzzing", "stateful"], examples=100, token=token)
    repository.close()
    assert not found, "\n\n".join(found)  # whole: what random bodies find may not come again


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


@pytest.mark.parametrize("which", ["client", "live"])
def test_every_reference_leads_somewhere_and_every_refusal_has_its_shape(
    client: TestClient, which: str, tmp_path: Path
) -> None:
    if which == "live":
        app = create_run_app(TrainingRun("run", tmp_path, progress=RunProgress()))
        client = TestClient(app, base_url="http://127.0.0.1:8000")
    document = client.get("/openapi.json").json()
    for reference in references(document):
        part = document
        for key in reference.removeprefix("#/").split("/"):
            part = part[key]
    for path in document["paths"].values():
        for method, operation in path.items():
            needed = {"400", "403", "405", "408", "431", "500", "503"}
            needed |= {"404", "409", "413", "415", "422", "504"} if method == "post" else set()
            assert needed | {"200"} <= operation["responses"].keys()
            for status in needed - {"503"}:
                content = operation["responses"][status]["content"]
                assert content == {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}


def test_bodies_are_those_of_the_models_that_are_served(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    content = document["paths"]["/api/predict"]["post"]["requestBody"]["content"]
    bodies = {one["title"]: one for one in content["application/json"]["schema"]["anyOf"]}
    assert bodies.keys() == {"speller", "captions", "judge", "babbler"}
    assert bodies["speller"]["properties"]["model"]["enum"] == ["speller"]
    assert bodies["judge"]["properties"]["beam"]["type"] == "null"
    forms = {one["title"]: one for one in content["multipart/form-data"]["schema"]["anyOf"]}
    assert forms["captions"]["properties"]["image"]["format"] == "binary"
    assert forms["judge"]["required"] == ["model", "first", "second"]


def test_other_methods_are_refused_with_those_that_are_allowed(client: TestClient) -> None:
    for path, allowed in (("/api/predict", "POST"), ("/api/models", "GET"), ("/health", "GET")):
        for method in ("DELETE", "PATCH", "PUT", "OPTIONS", "TRACE", "HEAD", "POST" if allowed == "GET" else "GET"):
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
            assert method == "HEAD" or answer.json().keys() == {"error"}
    for path in ("/api/predict/", "/api/models/", "/health/"):
        assert client.get(path, follow_redirects=False).status_code == 404
