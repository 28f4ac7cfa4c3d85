"""Models on the Hub: uploaded to and downloaded from a server in this process that speaks the Hub's protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

import seq2see
from seq2see import api
from seq2see.errors import MissingExtra, UserError
from tests.commands import Run
from tests.hostile.models import KINDS, SMALL, write_rows

pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")
Call = Callable[..., Run]
REPO = "ada/names"


class FakeHub(ThreadingHTTPServer):
    """A Hub that keeps the files of its repositories in memory. requests: (method, path) of all requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.created: list[dict[str, Any]] = []
        self.status: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub

    def log_message(self, *_: Any) -> None:
        """Nothing on stderr."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        if self.server.status is not None:
            self._json({"error": "no"}, self.server.status)
        elif path == "/api/repos/create":
            made = json.loads(body)
            self.server.created.append(made)
            owner = made.get("organization") or "ada"
            self.server.files.setdefault(f"{owner}/{made['name']}", {})
            self._json({"url": f"{self.server.url}/{owner}/{made['name']}"})
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            names = [file["path"] for file in json.loads(body)["files"]]
            self._json({"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]})
        elif "/commit/" in path:
            repo = path.removeprefix("/api/models/").partition("/commit/")[0]
            files = self.server.files[repo]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self._json({"commitUrl": f"{self.server.url}/{repo}/commit/{_commit(files)}", "commitOid": _commit(files)})
        else:
            self._json({"error": path}, 404)

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if path.startswith("/api/models/"):
            repo = path.removeprefix("/api/models/").partition("/revision/")[0]
            if repo not in self.server.files or self.server.status is not None:
                self._missing()
                return
            files = self.server.files[repo]
            siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
            self._json({"id": repo, "modelId": repo, "sha": _commit(files), "siblings": siblings, "tags": []})
            return
        repo, _, rest = path.removeprefix("/").partition("/resolve/")
        commit, _, name = rest.partition("/")
        content = self.server.files.get(repo, {}).get(name)
        if content is None:
            self._missing()
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _missing(self) -> None:
        self._json({"error": "Repository not found"}, 404, **{"X-Error-Code": "RepoNotFound"})

    def _json(self, value: Any, status: int = 200, **headers: str) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _commit(files: dict[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    fake = FakeHub()
    thread = threading.Thread(target=fake.serve_forever, daemon=True)
    thread.start()
    constants = import_module("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", fake.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", fake.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    yield fake
    fake.shutdown()
    fake.server_close()
    thread.join()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub")
    recipe = {**SMALL, **KINDS["word"], "task": "names", "training": {**SMALL["training"], "samples": 2}}
    api.train(recipe, write_rows(folder), out=folder / "model", listeners=[])
    return folder / "model"


def test_a_model_there_and_back(call: Call, server: FakeHub, model: Path, tmp_path: Path) -> None:
    run = call("push", model, REPO, "--license", "apache-2.0", "--private")
    assert run.code == 0, run.err
    assert "private" in (server.created[0].get("visibility"), *server.created[0])
    files = server.files[REPO]
    assert {"README.md", "look.png", "recipe.yaml", "model.safetensors", "checksums.json"} <= files.keys()
    assert not {"examples.jsonl", "sources.json"} & files.keys()
    assert b'"samples"' not in files["metrics.jsonl"]
    assert b'"samples"' in (model / "metrics.jsonl").read_bytes()
    assert b"hf_secret" not in b"".join(files.values())

    run = call("pull", REPO, "--out", tmp_path / "pulled")
    assert run.code == 0, run.err
    assert run.out == f"{tmp_path}/pulled\n"
    pulled = tmp_path / "pulled"
    assert not (pulled / "README.md").exists()
    given = "one two"
    assert seq2see.load(pulled).predict(given).score == seq2see.load(model).predict(given).score
    run = call("pull", REPO, "--out", pulled)
    assert run.code == 2
    assert str(pulled) in run.err


def test_the_card(server: FakeHub, model: Path) -> None:
    seq2see.push(model, REPO, license="cc-by-4.0", example="two three")
    _, head, body = server.files[REPO]["README.md"].decode().split("---\n", 2)
    metadata = yaml.safe_load(head)
    assert metadata["license"] == "cc-by-4.0"
    assert metadata["library_name"] == "seq2see"
    assert "names" in metadata["tags"]
    answers = seq2see.load(model).describe()
    assert answers.text().rstrip() in body
    assert "](look.png)" in body
    assert f"seq2see pull {REPO}" in body
    last = json.loads((model / "metrics.jsonl").read_text("utf-8").splitlines()[-1])
    assert all(f"| {name} | " in body for name in last["dev"])
    assert "| `source` | text | input `source` |" in body
    assert "| `output` | text | output |" in body


def test_only_files_of_a_model_are_kept(server: FakeHub, model: Path, tmp_path: Path) -> None:
    seq2see.push(model, REPO, license="mit")
    more = ["code.py", "pytorch_model.bin", "../up.txt", "deep/recipe.yaml", "sources.json", "examples.jsonl"]
    server.files[REPO] |= dict.fromkeys(more, b"x")
    folder = seq2see.pull(REPO, tmp_path / "pulled")
    kept = {path.name for path in folder.rglob("*")}
    assert kept == server.files[REPO].keys() - {*more, "README.md", "look.png"}
    assert not (tmp_path / "up.txt").exists()


def test_damaged_models_leave_no_folder(server: FakeHub, model: Path, tmp_path: Path) -> None:
    seq2see.push(model, REPO, license="mit")
    server.files[REPO]["vocabulary-source.txt"] += b"new\n"
    with pytest.raises(UserError, match=r"ada/names/vocabulary-source\.txt"):
        seq2see.pull(REPO, tmp_path / "pulled")
    del server.files[REPO]["model.safetensors"]
    with pytest.raises(UserError, match=r"model\.safetensors"):
        seq2see.pull(REPO, tmp_path / "pulled")
    assert not [path for path in tmp_path.iterdir() if "pulled" in path.name]


@pytest.mark.parametrize("status", [403, 404])
def test_errors_of_the_hub(call: Call, server: FakeHub, model: Path, tmp_path: Path, status: int) -> None:
    server.status = status
    for words in (["push", model, REPO, "--license", "mit"], ["pull", REPO, "--out", tmp_path / "x"]):
        run = call(*words)
        assert run.code == 2
        assert REPO in run.err
        assert "hf_secret" not in run.err


@pytest.mark.parametrize("repo", ["names", "a/b/c", "../x", "a/", "/b", "a b/c", "-a/b", "", "a/b?x=1"])
def test_names_that_are_no_repository(model: Path, repo: str) -> None:
    with pytest.raises(UserError, match="REPO"):
        seq2see.push(model, repo, license="mit")
    with pytest.raises(UserError, match="REPO"):
        seq2see.pull(repo)


def test_licences(call: Call, model: Path) -> None:
    for name in ("", "MIT licence", "a\nb", "x" * 100):
        run = call("push", model, REPO, "--license", name)
        assert run.code == 2
        assert "--license" in run.err


def test_without_the_extra(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"seq2see\[hub\]"):
        seq2see.pull(REPO)
    with pytest.raises(MissingExtra, match=r"seq2see\[hub\]"):
        seq2see.push(model, REPO, license="mit")
