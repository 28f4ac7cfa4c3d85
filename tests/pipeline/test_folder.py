"""A model's folder: whole, or an error that says which file is at fault."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError
from seq2see.pipeline.bundle import WEIGHTS
from seq2see.pipeline.weights import CHECKSUMS, read_tensors, write_bytes, write_checksums
from seq2see.recipe import FORMAT, load_recipe


@pytest.fixture
def folder(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["recipe.yaml", "model.safetensors", "vocabulary-source.txt", "vocabulary-output.txt"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UserError, match=name):
        seq2see.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary-output.txt", "recipe.yaml", "baselines.json"])
def test_a_file_cut_short_is_named(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=name.split(".")[0]):
        seq2see.load(folder)


def test_a_vocabulary_that_does_not_fit_the_weights(folder: Path) -> None:
    path = folder / "vocabulary-output.txt"
    lines = path.read_text("utf-8").splitlines()
    header = lines[0].rsplit("\t", 1)[0] + f"\t{len(lines) - 2}"
    path.write_text("\n".join([header, *lines[1:-1]]) + "\n", encoding="utf-8")
    (folder / CHECKSUMS).unlink()
    with pytest.raises(UserError, match="vocabulary does not fit the weights"):
        seq2see.load(folder)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "vocabulary-source.txt", "vocabulary-output.txt", "baselines.json"]
)
def test_every_byte_of_weights_and_vocabularies_is_checked(folder: Path, name: str) -> None:
    path = folder / name
    whole = path.read_bytes()
    for at in {0, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(UserError, match=rf"{re.escape(name)}: "):
            seq2see.load(folder)
    path.write_bytes(whole)
    seq2see.load(folder)


def test_the_recipe_may_be_edited_and_this_is_said(folder: Path) -> None:
    path = folder / "recipe.yaml"
    path.write_text(path.read_text("utf-8").replace("beam: 1\n", "beam: 2\n"), encoding="utf-8")
    with pytest.warns(Notice, match=r"recipe\.yaml: edited since"):
        assert seq2see.load(folder).recipe.search.beam == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"files": {}}',
        '{"algorithm": "sha256", "files": []}',
        '{"algorithm": "md5", "files": {}}',
        '{"algorithm": "sha256", "files": {"../x": "0"}}',
        "[" * 100_000,
        "[" + " " * 2_000_000,
    ],
    ids=range(9),
)
def test_damaged_checksums_are_named(folder: Path, content: str) -> None:
    (folder / CHECKSUMS).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"checksums\.json: damaged: (?!list indices|'\w+';)"):
        seq2see.load(folder)


@pytest.mark.parametrize(("setting", "forged"), [("over", ["elsewhere"]), ("heads", 7)])
def test_a_forged_recipe_of_which_no_network_can_be_built_is_named(folder: Path, setting: str, forged: Any) -> None:
    path = folder / "recipe.yaml"
    record = yaml.safe_load(path.read_text("utf-8"))
    record["attention"][setting] = forged
    path.write_text(yaml.safe_dump(record, sort_keys=False), encoding="utf-8")
    listed = json.loads((folder / CHECKSUMS).read_text("utf-8"))["files"]
    write_checksums(folder, [folder / name for name in listed])
    with pytest.raises(UserError, match=rf"recipe\.yaml: attention\.{setting}: "):
        seq2see.load(folder)


def test_a_saved_model_lists_what_it_checks(folder: Path) -> None:
    listed = json.loads((folder / CHECKSUMS).read_text("utf-8"))
    assert listed["algorithm"] == "sha256"
    others = {path.name for path in folder.iterdir()} - {CHECKSUMS, WEIGHTS}
    assert listed["files"].keys() == others >= {"recipe.yaml", "vocabulary-source.txt", "trained_rows.safetensors"}
    for name, digest in listed["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_weights_of_another_recipe(folder: Path) -> None:
    path = folder / "recipe.yaml"
    path.write_text(path.read_text("utf-8").replace("cell: gru", "cell: rnn"), encoding="utf-8")
    with pytest.raises(UserError, match="do not belong to the recipe"):
        seq2see.load(folder)


def test_no_folder_and_no_model(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        seq2see.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match="a file"):
        seq2see.load(tmp_path / "file")
    with pytest.raises(UserError, match=r"recipe\.yaml is missing"):
        seq2see.load(tmp_path)


def test_a_moved_folder_still_loads(model: Model, folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "elsewhere")
    assert seq2see.load(moved).predict("aex").text == model.predict("aex").text


def test_a_full_disk_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    write_bytes(path, b"old")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"model\.safetensors: the disk is full.*kept"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"]


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="missing"):
        read_tensors(tmp_path / "model.safetensors")


@pytest.mark.parametrize("content", ["{}", "3", '["copy"]', '[{"name": "kopy"}]', '[{"name": "unigram", "counts": 4}]'])
def test_trivial_models_that_are_none(folder: Path, content: str) -> None:
    (folder / "baselines.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"baselines\.json: damaged"):
        seq2see.load(folder)


def test_a_recipe_cut_at_the_end_of_a_line_is_still_yaml_and_named(folder: Path) -> None:
    path = folder / "recipe.yaml"
    text = path.read_text("utf-8")
    path.write_text(text[: text.index("training:")], encoding="utf-8")
    with pytest.raises(UserError, match=r"recipe\.yaml: cut short: without training"):
        seq2see.load(folder)


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "meta"])
def test_a_device_that_is_not_there(folder: Path, device: str) -> None:
    with pytest.raises(UserError, match=rf"device: '{device}' cannot be used here: .*allowed: cpu"):
        seq2see.load(folder, device=device)


def test_a_folder_names_its_format_and_one_without_is_of_the_first(folder: Path) -> None:
    path = folder / "recipe.yaml"
    first, *others = path.read_text("utf-8").splitlines(keepends=True)
    assert first == f"format: {FORMAT}\n"
    (folder / CHECKSUMS).unlink()
    path.write_text("".join(others), encoding="utf-8")
    assert seq2see.load(folder).recipe == load_recipe(path)


@pytest.mark.parametrize("number", [str(FORMAT + 1), "999"])
def test_a_newer_format_is_refused(folder: Path, number: str) -> None:
    path = folder / "recipe.yaml"
    others = path.read_text("utf-8").partition("\n")[2]
    path.write_text(f"format: {number}\nsomething_new: true\n{others}", encoding="utf-8")
    for read in (seq2see.load, lambda folder: load_recipe(folder / "recipe.yaml")):
        with pytest.raises(UserError, match=rf"recipe\.yaml: format: {number}: .*newer version.*up to {FORMAT}"):
            read(folder)


@pytest.mark.parametrize("number", ["0", "-1", "two", "true", "1.5", "[2]", "null"])
def test_a_format_that_is_no_number_is_refused(folder: Path, number: str) -> None:
    path = folder / "recipe.yaml"
    others = path.read_text("utf-8").partition("\n")[2]
    path.write_text(f"format: {number}\n{others}", encoding="utf-8")
    with pytest.raises(UserError, match=rf"recipe\.yaml: format: .*; allowed: a whole number from 1 to {FORMAT}"):
        seq2see.load(folder)


def test_the_recipe_of_a_model_is_a_recipe_too(folder: Path, model: Model) -> None:
    stored = yaml.safe_load((folder / "recipe.yaml").read_text("utf-8"))
    assert load_recipe(stored) == load_recipe(folder / "recipe.yaml") == model.recipe
