"""Examples of a model that was moved: what is gone is not offered, and nothing else of the machine can be had."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

import seq2see
from seq2see import api
from seq2see.cli import main
from seq2see.data.tables import VARIABLE
from seq2see.errors import UserError
from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import find_examples, load_models
from seq2see.training.checkpoints import SOURCES
from seq2see.training.reports import EXAMPLES, METRICS, MOST_EXAMPLES, write_examples
from tests.studio.conftest import LIMITS, SMALL

Serve = Callable[..., TestClient]
SIDES = ("left", "right")


@pytest.fixture
def serve() -> Iterator[Serve]:
    shelves = []

    def served(folder: Path, *files: Path) -> TestClient:
        shelves.append(load_models([f"model={folder}"], LIMITS, ServerMetrics(), files=files))
        app = create_app(shelves[-1], LIMITS, ServerMetrics())
        return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)

    yield served
    for repository in shelves:
        repository.close()


def moved(model: Path, folder: Path, samples: list[Path]) -> Path:
    """The model without its rows and its table; its last report speaks of these files."""
    shutil.copytree(model, folder)
    (folder / EXAMPLES).unlink()
    (folder / SOURCES).unlink()
    report = {**json.loads((folder / METRICS).read_text("utf-8").splitlines()[-1])}
    report["samples"] = [{"input": str(path), "output": "", "reference": f"of {path.name}"} for path in samples]
    (folder / METRICS).write_text(json.dumps(report) + "\n", "utf-8")
    return folder


def test_only_files_that_the_model_reads_are_examples(serve: Serve, captions: Path, tmp_path: Path) -> None:
    picture, secret = tmp_path / "a.png", tmp_path / "secret.txt"
    Image.new("RGB", (16, 16), "red").save(picture)
    secret.write_text("a secret", "utf-8")
    shutil.copy(picture, tmp_path / "page.html")
    samples = [tmp_path / "gone.png", secret, picture, tmp_path / "page.html"]
    client = serve(moved(captions, tmp_path / "model", samples), tmp_path)
    told = client.get("/api/models/model").json()["examples"]
    assert [one["inputs"]["image"]["file"] for one in told] == ["a.png", "page.html"]
    kinds = [client.get(f"/api/models/model/examples/{n}/image").headers["content-type"] for n in (0, 1)]
    assert kinds == ["image/png", "application/octet-stream"]


def test_a_file_that_goes_later_is_said_to_be_gone(serve: Serve, captions: Path, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.new("RGB", (16, 16), "red").save(picture)
    client = serve(moved(captions, tmp_path / "model", [picture]), tmp_path)
    picture.unlink()
    answer = client.get("/api/models/model/examples/0/image")
    said = {"error": "example 0 of 'model': the file of 'image' is gone"}
    assert (answer.status_code, answer.json()) == (404, said)
    answer = client.post("/api/predict", json={"input": {"example": 0}})
    assert (answer.status_code, answer.json()) == (409, {"error": "input 'image': a.png: no such file"})


@pytest.fixture(scope="module")
def pairs(home: Path, captions: Path) -> Path:
    """Two pictures, a label."""
    rows = [f"{n}.png\t{n + 1}.png\t{'even' if n % 2 else 'odd'}\n" for n in range(20)]
    table = home / "two.tsv"
    table.write_text("left\tright\tverdict\n" + "".join(rows), "utf-8")
    picture = {"kind": "image", "height": 16, "width": 16}
    recipe: dict[str, Any] = {
        "task": "pairs",
        "inputs": {"left": picture, "right": picture},
        "encoder": {"kind": "convolutional", "channels": [4, 8], "size": 8},
        "output": {"kind": "label", "column": "verdict"},
        "decoder": {"kind": "label", "size": 8, "start": "left"},
        "attention": {"score": "additive", "size": 8, "over": "right"},
        "training": SMALL["training"],
    }
    api.train(recipe, table, out=home / "pairs", listeners=[])
    return home / "pairs"


def test_a_form_may_hold_an_example_beside_an_upload(serve: Serve, pairs: Path, home: Path) -> None:
    client = serve(pairs, home)
    first, second = (client.get("/api/models/model").json()["examples"][0]["inputs"][name]["file"] for name in SIDES)
    files = {"right": ("mine.png", (home / second).read_bytes(), "image/png")}
    answer = client.post("/api/predict", data={"left": '{"example":0}'}, files=files)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"][0]["input"] == {"left": first, "right": "mine.png"}
    both = client.post("/api/predict", json={"input": {"example": 0}}).json()["predictions"][0]
    assert answer.json()["predictions"][0]["log_probability"] == pytest.approx(both["log_probability"], abs=1e-5)
    for wrong in ('{"example":99}', '{"example":', '{"file": "/etc/passwd"}', "0"):
        answer = client.post("/api/predict", data={"left": wrong}, files=files)
        assert answer.status_code == 422, answer.text


def rows_of(client: TestClient) -> list[dict[str, Any]]:
    return [one["inputs"] for one in client.get("/api/models/model").json()["examples"]]


def test_rows_are_kept_with_the_model(serve: Serve, speller: Path, tmp_path: Path) -> None:
    shutil.copytree(speller, tmp_path / "model")
    (tmp_path / "model" / SOURCES).unlink()
    told = rows_of(serve(tmp_path / "model"))
    assert len(told) == len({one["source"] for one in told}) > 1
    kept = [json.loads(line) for line in (speller / EXAMPLES).read_text("utf-8").splitlines()]
    assert [one["source"] for one in told] == [one["source"] for one in kept]


def test_a_strange_folder_names_no_table_of_this_machine(serve: Serve, speller: Path, tmp_path: Path) -> None:
    """A table with the right columns, which may be anything."""
    strange, secrets = tmp_path / "model", tmp_path / "secrets"
    shutil.copytree(speller, strange)
    (strange / EXAMPLES).unlink()
    (strange / METRICS).unlink()
    secrets.mkdir()
    columns = Path(json.loads((speller / SOURCES).read_text("utf-8"))["data"]).read_text("utf-8").splitlines()[0]
    (secrets / "diary.tsv").write_text(f"{columns}\nabba\tABBA\n", "utf-8")
    for path in (secrets / "diary.tsv", strange / "link.tsv"):
        (strange / SOURCES).write_text(json.dumps({"data": str(path)}), "utf-8")
        if path.parent == strange:
            path.symlink_to(secrets / "diary.tsv")
        assert rows_of(serve(strange)) == []
        assert rows_of(serve(strange, secrets)) == [{"source": "abba"}]
    (strange / "own.tsv").write_text(f"{columns}\ndada\tDADA\n", "utf-8")
    (strange / SOURCES).write_text(json.dumps({"data": str(strange / "own.tsv")}), "utf-8")
    assert rows_of(serve(strange)) == [{"source": "dada"}]


def test_a_strange_folder_shows_no_picture_of_this_machine(serve: Serve, captions: Path, tmp_path: Path) -> None:
    strange, album = tmp_path / "model", tmp_path / "album"
    shutil.copytree(captions, strange)
    (strange / SOURCES).unlink()
    (strange / METRICS).unlink()
    album.mkdir()
    for folder in (album, strange):
        Image.new("RGB", (16, 16), "red").save(folder / "a.png")
    (strange / "link.png").symlink_to(album / "a.png")
    named = [album / "a.png", strange / "link.png", strange / ".." / "album" / "a.png"]
    lines = [json.dumps({"image": str(path), "output": "mine"}) + "\n" for path in named]
    (strange / EXAMPLES).write_text("".join(lines), "utf-8")
    client = serve(strange)
    assert rows_of(client) == []
    assert client.get("/api/models/model/examples/0/image").status_code == 404
    told = client.post("/api/predict", json={"input": {"example": 0}})
    assert told.status_code == 422
    assert "example: this model has some, files that may not be shown; `seq2see serve MODEL --files" in told.text
    assert str(album) not in told.text
    assert len(rows_of(serve(strange, album))) == 3
    (strange / EXAMPLES).write_text(json.dumps({"image": str(strange / "a.png"), "output": "own"}) + "\n", "utf-8")
    assert [one["image"]["file"] for one in rows_of(serve(strange))] == ["a.png"]
    (strange / EXAMPLES).write_text('{"image": 3, "output": []}\n[]\nno json\n', "utf-8")
    assert rows_of(serve(strange)) == []


def test_a_table_elsewhere_is_told_and_brought_back(serve: Serve, judge: Path, home: Path, tmp_path: Path) -> None:
    """Runs of earlier versions keep no rows: what their folder names is not read, and not forgotten either."""
    old = tmp_path / "model"
    shutil.copytree(judge, old)
    (old / EXAMPLES).unlink()
    (old / METRICS).unlink()
    table = Path(json.loads((old / SOURCES).read_text("utf-8"))["data"])
    model = seq2see.load(old)
    found = find_examples(model, old)
    assert (found.rows, found.outside) == ([], [table])
    assert find_examples(model, old, [home]).outside == []
    assert [one.keys() for one in rows_of(serve(old, home))] == [{"first", "second"}] * MOST_EXAMPLES
    (old / SOURCES).write_text(json.dumps({"data": str(tmp_path / "gone.tsv")}), "utf-8")
    assert find_examples(model, old).outside == [], "what is gone no folder brings back"


def test_samples_of_several_inputs_are_examples(serve: Serve, judge: Path, tmp_path: Path) -> None:
    old = tmp_path / "model"
    shutil.copytree(judge, old)
    (old / EXAMPLES).unlink()
    (old / SOURCES).unlink()
    told = [("aab | bab", "alike"), ("a | b | c", "no telling"), ("a | | b", "no telling")]
    samples = [{"input": given, "output": "", "reference": output} for given, output in told]
    (old / METRICS).write_text(json.dumps({"update": 1, "samples": samples}) + "\n", "utf-8")
    assert rows_of(serve(old)) == [{"first": "aab", "second": "bab"}]


@pytest.mark.parametrize("written", ["now", "once"])
def test_a_path_that_is_no_utf8_hides_no_other(
    serve: Serve, captions: Path, tmp_path: Path, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    folder, picture = tmp_path / "model", os.fsdecode(os.fsencode(tmp_path) + b"/model/\xff.png")
    shutil.copytree(captions, folder)
    try:
        Image.new("RGB", (16, 16), "red").save(picture)
    except OSError:
        pytest.skip("this file system has names in UTF-8 alone")
    Image.new("RGB", (16, 16), "blue").save(folder / "b.png")
    rows = [{"image": path, "output": "a\u2028square"} for path in (picture, str(folder / "b.png"))]
    if written == "now":
        write_examples(folder, seq2see.load(folder).recipe, rows)
        assert (folder / EXAMPLES).read_bytes().decode("utf-8").count("\\udcff") == 1
    else:  # the bytes as they are
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / EXAMPLES).write_bytes(lines.encode("utf-8", "surrogateescape"))
    client = serve(folder)
    assert len(rows_of(client)) == 2
    assert client.get("/api/models/model/examples/0/image").headers["content-type"] == "image/png"
    assert client.post("/api/predict", json={"input": {"example": 0}}).status_code == 200


def test_examples_whose_files_lie_with_the_model_move_with_it(serve: Serve, captions: Path, tmp_path: Path) -> None:
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere.png"
    shutil.copytree(captions, made)
    (made / "examples").mkdir()
    for picture in (made / "examples" / "a.png", elsewhere):
        Image.new("RGB", (16, 16), "red").save(picture)
    rows = [{"image": str(path), "output": "red"} for path in (made / "examples" / "a.png", elsewhere)]
    write_examples(made, seq2see.load(made).recipe, rows)
    made.rename(tmp_path / "moved")
    client = serve(tmp_path / "moved")
    assert [row["image"]["file"] for row in rows_of(client)] == ["a.png"]
    assert client.post("/api/predict", json={"input": {"example": 0}}).status_code == 200


def test_the_folder_of_data_sets_is_open_only_where_it_is_named(
    captions: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variable it is `../shared/data`, where a stranger's folder could look around."""
    working, data = tmp_path / "work", tmp_path / "shared" / "data"
    for folder in (working, data):
        folder.mkdir(parents=True)
    shutil.copytree(captions, tmp_path / "model")
    Image.new("RGB", (16, 16), "red").save(data / "a.png")
    kept = json.dumps({"image": str(data / "a.png"), "output": "red"}) + "\n"
    (tmp_path / "model" / EXAMPLES).write_text(kept, "utf-8")
    (tmp_path / "model" / SOURCES).unlink()
    (tmp_path / "model" / METRICS).unlink()
    model = seq2see.load(tmp_path / "model")
    monkeypatch.chdir(working)
    for said, open_to in (("", False), (None, False), (str(data), True)):
        monkeypatch.setenv(VARIABLE, said) if said is not None else monkeypatch.delenv(VARIABLE)
        found = find_examples(model, tmp_path / "model")
        assert (len(found.rows), len(found.outside)) == ((1, 0) if open_to else (0, 1))
    monkeypatch.delenv(VARIABLE)
    assert len(find_examples(model, tmp_path / "model", [data]).rows) == 1


def test_where_examples_lie_is_said_with_a_warning(
    captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a stranger's folder names is pasted into a shell by some."""
    monkeypatch.setattr("seq2see.studio.server.run_server", lambda *given, **options: None)
    for name, said in (("my album; ls", "'{}/my album; ls'; "), ("a\x1b[2Jb", r"'{}/a\x1b[2Jb'; ")):
        album, strange = tmp_path / name, tmp_path / f"model{len(name)}"
        album.mkdir()
        shutil.copytree(captions, strange)
        Image.new("RGB", (16, 16), "red").save(album / "a.png")
        (strange / EXAMPLES).write_text(json.dumps({"image": str(album / "a.png"), "output": "red"}) + "\n", "utf-8")
        (strange / SOURCES).unlink()
        (strange / METRICS).unlink()
        with pytest.raises(SystemExit, match="0"):
            main(["serve", str(strange), "--port", "0"])
        told = capsys.readouterr().err
        assert "only with --files " + said.format(tmp_path) in told
        assert "it is the model's folder that names this place: give it only if you trust that folder" in told


ARPA = """\\data\\
ngram 1=8

\\1-grams:
-1\t<unk>
-1\t</s>
-1\tA
-1\tB
-1\tC
-1\tD
-1\tE
-0.2\tF

\\end\\
"""


def test_the_operator_alone_names_a_language_model(serve: Serve, speller: Path, tmp_path: Path) -> None:
    path, folder = tmp_path / "letters.arpa", tmp_path / "model"
    path.write_text(ARPA, "utf-8")
    model = api.load(speller)
    plain = model.predict("abcd").score
    search = model.recipe.search.model_copy(update={"language_model": str(path), "language_model_weight": 0.5})
    model.bundle.recipe = model.recipe.model_copy(update={"search": search})
    model.save(folder)
    client = serve(folder)
    answer = client.post("/api/predict", json={"model": "model", "input": "abcd"}).json()
    expected = model.predict("abcd").score
    assert expected != pytest.approx(plain)
    assert answer["predictions"][0]["score"] == pytest.approx(expected, abs=1e-4)
    assert str(tmp_path) not in client.get("/api/models").text + client.get("/api/models/model").text
    refused = client.post("/api/predict", json={"model": "model", "input": "abcd", "language_model": str(path)})
    assert refused.status_code == 422
    path.unlink()
    assert client.post("/api/predict", json={"model": "model", "input": "dcba"}).status_code == 200
    with pytest.raises(UserError, match=r"search\.language_model"):
        load_models([f"model={folder}"], LIMITS, ServerMetrics())
