"""A packed model takes the place of a model's folder."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import seq2see
from seq2see.errors import UserError
from seq2see.pipeline import packing
from seq2see.pipeline.bundle import model_checksums
from seq2see.pipeline.packing import FILES, model_folder
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import fingerprint, load_models, parse_names
from seq2see.training.checkpoints import SOURCES
from tests.commands import Run

Call = Callable[..., Run]


@pytest.fixture(scope="module")
def packed(speller: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return seq2see.pack(speller, tmp_path_factory.mktemp("packed") / "speller.seq2see")


def test_what_a_packed_model_holds(speller: Path, packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
    assert names == {*FILES, "vocabulary-source.txt", "vocabulary-output.txt"}
    assert (speller / SOURCES).is_file()
    assert model_checksums(packed) == model_checksums(speller)


def test_equal_models_give_equal_files(speller: Path, packed: Path, tmp_path: Path) -> None:
    again = seq2see.pack(packed, tmp_path / "again.seq2see")
    assert again.read_bytes() == packed.read_bytes() == seq2see.pack(speller, again).read_bytes()


def test_every_command_takes_it(call: Call, speller: Path, packed: Path, pairs: Path, tmp_path: Path) -> None:
    commands: list[list[object]] = [
        ["predict", "MODEL", "abcd", "--json"],
        ["predict", "MODEL+MODEL", "abcd"],
        ["evaluate", "MODEL", "--data", pairs, "--json"],
        ["score", "MODEL", "--data", pairs, "--json"],
        ["explain", "MODEL", "abcd"],
        ["encode", "MODEL", "abcd", "--json"],
        ["faithful", "MODEL", "--data", pairs, "--rows", 2, "--json"],
        ["look", "MODEL", "abcd", "--out", tmp_path / "look.json"],
        ["show", "MODEL", "--json"],
        ["figure", "curve", "run=MODEL", "--out", tmp_path / "curve.json", "--json"],
        ["figure", "lengths", "one=MODEL", "--data", pairs, "--out", tmp_path / "lengths.json", "--json"],
    ]
    for words in commands:
        runs = [call(*(str(word).replace("MODEL", str(model)) for word in words)) for model in (speller, packed)]
        assert [run.code for run in runs] == [0, 0], (words, runs[1].err)
        assert runs[0].out == runs[1].out, words


def test_training_starts_from_it(call: Call, spelling: Path, packed: Path, pairs: Path, tmp_path: Path) -> None:
    run = call("train", spelling, "--data", pairs, "--from", packed, "--out", tmp_path / "tuned", "--updates", 1)
    assert run.code == 0, run.err
    student = ["--data", pairs, "--out", tmp_path / "student", "--updates", 1]
    run = call("distill", packed, *student)
    assert run.code == 0, run.err


def test_it_is_served(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(packed.parent)
    assert list(parse_names([packed.name, f"other={packed.name}"])) == ["speller", "other"]
    repository = load_models([packed.name], Limits(), ServerMetrics())
    (served,) = repository
    assert served.name == "speller"
    assert served.run is not None
    assert served.run.recorded
    assert served.examples
    repository.close()


def test_a_plus_in_its_name(call: Call, packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "a+b.seq2see"
    path.write_bytes(packed.read_bytes())
    assert call("predict", path, "abcd").code == call("encode", path, "abcd", "--json").code == 0


def test_a_file_written_anew_is_noticed(speller: Path, other: Path, tmp_path: Path) -> None:
    path = seq2see.pack(speller, tmp_path / "model.seq2see")
    before, folder = fingerprint(str(path)), model_folder(path)
    assert model_folder(path) == folder
    first = seq2see.load(path).predict("abcd").text
    seq2see.pack(other, path)
    assert fingerprint(str(path)) != before
    assert seq2see.load(path).predict("abcd").text != first
    assert not folder.exists()


def test_temporary_folders_are_removed(speller: Path, tmp_path: Path) -> None:
    path = seq2see.pack(speller, tmp_path / "model.seq2see")
    folder = model_folder(path)
    packing._remove_all(owner=0)
    assert folder.is_dir()
    packing._remove_all(owner=os.getpid())
    assert not folder.exists()
    assert model_folder(path).is_dir()


def test_where_it_is_written(call: Call, speller: Path, tmp_path: Path) -> None:
    run = call("pack", speller, "--out", tmp_path / "new" / "model.seq2see")
    assert run.code == 0
    assert run.out == f"{tmp_path}/new/model.seq2see\n"
    assert call("pack", speller, "--out", tmp_path / "new" / "model.seq2see").code == 0
    (tmp_path / "table.csv").write_text("a,b\n", encoding="utf-8")
    for out in ("table.csv", "new", "table.csv/model.seq2see"):
        run = call("pack", speller, "--out", tmp_path / out)
        assert run.code == 2
        assert str(tmp_path / out) in run.err
    assert (tmp_path / "table.csv").read_text("utf-8") == "a,b\n"
    run = call("pack", f"{speller}+{speller}", "--out", tmp_path / "two.seq2see")
    assert run.code == 2
    assert "ensemble" in run.err


def test_errors_name_the_file(speller: Path, tmp_path: Path) -> None:
    path = seq2see.pack(speller, tmp_path / "model.seq2see")
    content = path.read_bytes()
    at = content.index(b'"algorithm"')
    path.write_bytes(content[:at] + b'"ALGORITHM"' + content[at + 11 :])
    with pytest.raises(UserError, match=r"model\.seq2see"):
        seq2see.load(path)


def test_what_is_packed_is_checked_first(speller: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(speller, tmp_path / "damaged"))
    listed = json.loads((folder / "checksums.json").read_text("utf-8"))["files"]
    assert "vocabulary-source.txt" in listed
    (folder / "vocabulary-source.txt").write_text("x\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"vocabulary-source\.txt"):
        seq2see.pack(folder, tmp_path / "model.seq2see")
    assert not (tmp_path / "model.seq2see").exists()
