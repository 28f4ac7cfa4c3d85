"""One request cannot keep a model from everybody else; what people ordinarily ask for passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.errors import UserError
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from seq2see.studio.service import check_work

SPELLER = {"model": "speller"}


@pytest.fixture(scope="module")
def usual(speller: Path, reviews: Path, judge: Path) -> Iterator[TestClient]:
    """A server with the limits that it has unless somebody says otherwise."""
    repository = load_models([str(speller), str(reviews), str(judge)], Limits(), ServerMetrics())
    yield TestClient(create_app(repository, Limits(), ServerMetrics()), base_url="http://127.0.0.1:8000")
    repository.close()


@pytest.mark.parametrize(
    ("what", "body", "said"),
    [
        (
            "predict",
            {"inputs": ["a" * 50_000] * 8, "beam": 8},
            "input 'source': 50,000 symbols; allowed: at most 20,000 symbols (serve --max-symbols)",
        ),
        (
            "predict",
            {"inputs": ["a" * 15_000] * 8, "beam": 8},
            "8 outputs of up to 12 symbols for each is the work of 235,968 symbols; allowed: at most 200,000 (serve",
        ),
        ("predict", {"input": "a" * 15_000, "beam": 8, "max_length": 2000}, "8 outputs of up to 2,000 symbols"),
        ("predict", {"input": "a", "prefix": "A " * 30_000}, "prefix: 60,000 characters; allowed: at most 50,000"),
        ("predict", {"input": "a", "avoid_prefixes": ["A " * 30_000]}, "avoid_prefixes.0: 60,000 characters; allowed"),
        ("predict", {"input": "a", "avoid_prefixes": ["A " * 9_000] * 9}, "162,000 in all"),
        ("predict", {"inputs": ["a"] * 64, "avoid_prefixes": [["A"] * 3_200]}, "3,200 symbols for each of 64 inputs"),
        ("predict", {"input": "a", "target": "A " * 30_000}, "target: 60,000 characters; allowed: at most 50,000"),
        ("predict", {"input": "a" * 15_000, "target": "A " * 2000}, "1 output of up to 2,001 symbols for each"),
        ("explain", {"input": "a" * 20_001}, "20,001 symbols; allowed: at most 20,000"),
        ("explain", {"input": "a" * 15_000, "target": ["A"] * 2000}, "too much for one request: 1 input, 15,000"),
        ("oracle", {"input": "a" * 20_001, "oracle": {"0": [1]}}, "20,001 symbols; allowed: at most 20,000"),
        ("score", {"rows": [{"input": "a" * 10_000, "output": "A " * 50}] * 50}, "50 inputs, 500,000 symbols in total"),
        ("score", {"input": "a", "output": "A " * 30_000}, "output: 60,000 characters; allowed: at most 50,000"),
    ],
)
def test_what_would_take_too_long_is_refused_before_it_begins(
    usual: TestClient, what: str, body: dict[str, Any], said: str
) -> None:
    answer = usual.post(f"/api/{what}", json=SPELLER | body)
    status = 422 if "characters" in said else 409  # how long a text may be is in the schema, symbols are the model's
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text


def test_a_long_review_is_read(usual: TestClient) -> None:
    review = "It was good, I saw 5. " * 400  # 2,400 words and more
    answer = usual.post("/api/predict", json={"model": "reviews", "input": review, "looks": False, "shown": False})
    assert answer.status_code == 200, answer.text
    check_work([20_000], Limits(), width=5, steps=100)
    check_work([3000] * 64, Limits(), width=1, steps=1)
    check_work([200] * 64, Limits(), width=3, steps=200)


def test_models_of_an_ensemble_work_each() -> None:
    check_work([20_000], Limits(), width=5, steps=100)
    with pytest.raises(UserError, match=r"100 symbols for each, 2 models is the work of 241,000 symbols"):
        check_work([20_000], Limits(), width=5, steps=100, models=2)


def test_a_beam_tree_holds_the_outputs_and_any_node_can_be_continued(usual: TestClient) -> None:
    body = SPELLER | {"input": "abc", "beam": 3, "max_length": 6}
    (prediction,) = usual.post("/api/predict", json=body | {"tree": True}).json()["predictions"]
    nodes = prediction["tree"]["nodes"]
    ends = {node["output"]: node for node in nodes if "output" in node}
    assert sorted(ends) == list(range(1 + len(prediction["alternatives"])))
    for rank, output in enumerate([prediction, *prediction["alternatives"]]):
        assert ends[rank]["log_probability"] == pytest.approx(output["log_probability"], abs=1e-4)
    pruned = next(node for node in nodes if node["parent"] == -1 and node["state"] == "pruned")
    (other,) = usual.post("/api/predict", json=body | {"prefix": [pruned["text"]]}).json()["predictions"]
    assert other["tokens"][0]["text"] == pruned["text"]
    assert "tree" not in other


@pytest.mark.parametrize("more", [{"beam": 1}, {"target": "A B"}])
def test_a_tree_without_a_beam_is_refused(usual: TestClient, more: dict[str, Any]) -> None:
    answer = usual.post("/api/predict", json=SPELLER | {"input": "abc", "tree": True} | more)
    assert (answer.status_code, "tree" in answer.json()["error"]) == (409, True), answer.text
