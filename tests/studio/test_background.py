"""`seq2see.serve`: a server in a thread, which ends with its block."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

import seq2see
from seq2see.errors import UserError


def test_models_are_served_while_inside_the_block(speller: Path) -> None:
    model = seq2see.load(speller)
    with seq2see.serve(f"words={speller}") as url:
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/health").status_code == 200
        answer = httpx.post(f"{url}/api/predict", json={"model": "words", "input": "abc"}).json()
        assert answer["predictions"][0]["text"] == model.predict("abc").text
    assert "seq2see.serve" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_an_error_inside_the_block_ends_the_server_too(speller: Path) -> None:
    with pytest.raises(ZeroDivisionError), seq2see.serve(speller):
        raise ZeroDivisionError
    assert "seq2see.serve" not in [thread.name for thread in threading.enumerate()]


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing"), seq2see.serve(tmp_path / "nothing"):
        pass
