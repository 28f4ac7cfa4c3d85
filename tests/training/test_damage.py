"""Full disks and damaged folders: what was there stays, and the message names the file."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

import seq2see
from seq2see.errors import Notice, UserError
from seq2see.pipeline import weights as disk
from seq2see.pipeline.weights import CHECKSUMS, KEY, read_tensors
from seq2see.training import checkpoints
from seq2see.training.optimizer import existing_weights
from seq2see.training.reports import UpdateStatus
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, last_checkpoint, run, same, weights, words


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints, made once."""
    made = tmp_path_factory.mktemp("finished")
    run(ROWS, words(made / "words.tsv"), made / "model", ["training.checkpoint_every=10"], updates=20)
    return made / "model"


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """The same run, to be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "model"))


class Limiter(RecordingListener):
    """After 20 updates, no file may be larger than half a checkpoint."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def on_update(self, status: UpdateStatus) -> None:
        super().on_update(status)
        if status.updates == 20:
            size = max(path.stat().st_size for path in (self.folder / "checkpoints").glob("*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_a_checkpoint_that_does_not_fit_leaves_the_old_one(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    settings = ["training.checkpoint_every=15", "training.report_every=1000", "training.updates=60"]
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(UserError, match=r"update-000000030\.safetensors: cannot be written: File too large"):
            run(ROWS, data, folder, settings, listeners=[Limiter(folder)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == [
        "update-000000000.safetensors",
        "update-000000015.safetensors",
    ]
    run(ROWS, None, folder, resume=True, updates=20)
    assert last_checkpoint(folder).state.updates == 20


def test_a_full_disk_is_said_and_the_model_that_was_there_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "model.safetensors").read_bytes()
    model = seq2see.load(folder)

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"recipe\.yaml: the disk is full, [\d,]+ bytes do not fit; the file that was"):
        model.save(folder)
    with pytest.raises(UserError, match=r"model\.safetensors: the disk is full"):
        disk.write_tensors(folder / "model.safetensors", disk.tensors_of(model.bundle.network))
    assert (folder / "model.safetensors").read_bytes() == before
    assert not list(folder.glob(".*.part"))


def test_a_cut_checkpoint_is_passed_over(folder: Path) -> None:
    newest = max((folder / "checkpoints").glob("update-*"))
    newest.write_bytes(newest.read_bytes()[:-50])
    assert last_checkpoint(folder).state.updates == 10
    run(ROWS, None, folder, resume=True, updates=30)
    assert last_checkpoint(folder).state.updates == 30


def test_with_no_sound_checkpoint_all_are_named_and_nothing_is_changed(folder: Path) -> None:
    for path in (folder / "checkpoints").glob("update-*"):
        path.write_bytes(path.read_bytes()[:40])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"update-000000020\.safetensors: damaged or cut short.*000010.*--overwrite"):
        run(ROWS, None, folder, resume=True, updates=30)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def flipped(content: bytes, *, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


DAMAGES = {
    "cut": lambda content: content[:-50],
    "zeroed": lambda content: content[:-500] + bytes(500),
    "bit": lambda content: flipped(content, at=len(content) // 2),
    "bit of the header": lambda content: flipped(content, at=content.index(b'"updates') + 13),
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_left_for_the_one_before_and_this_is_said(
    folder: Path, finished: Path, damage: str
) -> None:
    newest, told = folder / "checkpoints" / "update-000000020.safetensors", RecordingListener()
    newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
    run(ROWS, None, folder, ["training.checkpoint_every=12"], resume=True, listeners=[told])
    [note] = [note for note in told.notes if newest.name in note]
    assert "damaged" in note
    assert "of update 10" in note
    assert any(note.startswith("resuming from update 10 ") for note in told.notes)
    resumed, whole = last_checkpoint(folder), last_checkpoint(finished)
    assert same(resumed.weights, whole.weights)
    assert same(resumed.optimizer, whole.optimizer)
    kept = [path.name for path in sorted((folder / "checkpoints").glob("update-*.safetensors"))]
    assert kept == ["update-000000012.safetensors", "update-000000020.safetensors"], "two that are sound"


def test_weights_for_the_mean_are_kept_for_the_checkpoint_before_too(tmp_path: Path) -> None:
    """The newest checkpoint may be damaged; the one before it counts other weights among the best."""
    data, settings = words(tmp_path / "words.tsv"), ["training.average=2", "training.report_every=10"]
    settings += ["training.checkpoint_every=10", "training.updates=60"]

    class Gone(Exception):
        pass

    class Leaver(RecordingListener):
        def on_update(self, status: UpdateStatus) -> None:
            if status.updates == 50:
                raise Gone

    run(ROWS, data, tmp_path / "whole", settings)
    with pytest.raises(Gone):
        run(ROWS, data, tmp_path / "cut", settings, listeners=[Leaver()])
    path = tmp_path / "cut" / "checkpoints" / "update-000000040.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    kept = last_checkpoint(tmp_path / "cut").state.kept
    assert len(kept) == 2
    assert existing_weights(path.parent, kept) == (kept, [])
    run(ROWS, None, tmp_path / "cut", resume=True)
    assert same(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_damaged_best_weights_are_told_on_resuming_and_replaced(folder: Path) -> None:
    path, told = folder / "model.safetensors", RecordingListener()
    path.write_bytes(path.read_bytes()[:-10] + bytes(10))
    run(ROWS, None, folder, resume=True, updates=30, listeners=[told])
    assert any("model.safetensors: damaged" in note and "lost" in note for note in told.notes)
    assert seq2see.load(folder).predict("ab").text is not None


def without_checksums(path: Path) -> None:
    """The file as earlier versions wrote it."""
    with safe_open(path, framework="pt") as file:
        metadata = {key: value for key, value in (file.metadata() or {}).items() if key != KEY}
    path.write_bytes(save(read_tensors(path), metadata))


def test_a_folder_of_an_earlier_version_loads_and_resumes(folder: Path, finished: Path) -> None:
    (folder / CHECKSUMS).unlink()
    for path in folder.rglob("*.safetensors"):
        without_checksums(path)
        assert KEY.encode() not in path.read_bytes()
    recipe = yaml.safe_load((folder / "recipe.yaml").read_text("utf-8"))
    del recipe["training"]["checkpoint_seconds"]
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    expected = seq2see.load(finished).predict("ab").text
    assert seq2see.load(folder).predict("ab").text == expected
    run(ROWS, None, folder, resume=True, updates=22)
    assert last_checkpoint(folder).state.updates == 22


def test_cut_weights_are_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(UserError, match=r"model\.safetensors: damaged or cut short"):
        seq2see.load(folder)


@pytest.mark.parametrize("name", ["recipe.yaml", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"not a whole model, {name} is missing"):
        seq2see.load(folder)


def vocabulary_of(folder: Path, name: str) -> Path:
    [path] = [path for path in folder.glob(f"*{name}*") if path.is_file()]
    return path


def test_a_missing_vocabulary_is_named(folder: Path) -> None:
    path = vocabulary_of(folder, "source")
    path.unlink()
    with pytest.raises(UserError, match=path.name):
        seq2see.load(folder)


def test_weights_of_another_vocabulary_are_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("source\toutput\n" + "".join(f"x{c}y\tx{c}y\n" for c in "abcdefghijklmnop"), encoding="utf-8")
    run(ROWS, other, tmp_path / "other", updates=1)
    vocabulary_of(folder, "source").write_bytes(vocabulary_of(tmp_path / "other", "source").read_bytes())
    with pytest.raises(UserError, match=r"vocabulary-source\.txt: damaged, or changed by hand"):
        seq2see.load(folder)
    (folder / CHECKSUMS).unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: .*does not fit the weights"):
        seq2see.load(folder)


def test_a_line_of_the_journal_cut_by_a_kill_is_dropped(folder: Path) -> None:
    path = folder / "metrics.jsonl"
    whole = journal(folder)
    path.write_text(path.read_text("utf-8") + '{"update": 2', encoding="utf-8")
    run(ROWS, None, folder, ["training.report_every=10"], resume=True, updates=30)
    assert journal(folder)[: len(whole)] == whole
    assert [line["update"] for line in journal(folder)][-1] == 30


SETUP = ("recipe.yaml", "data.json", "baselines.json", "vocabulary-source.txt", "vocabulary-output.txt")


def written(folder: Path) -> dict[str, int]:
    """When each file of the setup was put in its place."""
    return {name: (folder / name).stat().st_mtime_ns for name in SETUP}


def test_resuming_leaves_the_setup_as_it_is(folder: Path) -> None:
    before = written(folder)
    run(ROWS, None, folder, resume=True)
    assert written(folder) == before
    run(ROWS, None, folder, resume=True, updates=22)
    assert seq2see.load(folder).recipe.training.updates == 22
    assert (folder / "recipe.yaml").stat().st_mtime_ns > before["recipe.yaml"]


def test_a_disk_that_is_full_while_resuming_costs_no_vocabulary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: (folder / name).read_bytes() for name in SETUP}
    whole = os.fsync
    calls = 0

    def nearly_full(number: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(number)

    monkeypatch.setattr(os, "fsync", nearly_full)
    with pytest.raises(UserError, match=r"vocabulary-source\.txt: the disk is full"):
        run(ROWS, None, folder, resume=True, updates=22)
    monkeypatch.undo()
    assert {name: (folder / name).read_bytes() for name in SETUP[1:]} == {name: before[name] for name in SETUP[1:]}
    with pytest.warns(Notice, match=r"recipe\.yaml: edited since"):
        assert seq2see.load(folder).predict("ab").text is not None


def test_a_new_run_begins_without_the_weights_of_the_old(folder: Path, tmp_path: Path) -> None:
    class Gone(Exception):
        pass

    class Leaver(RecordingListener):
        def on_update(self, status: object) -> None:
            raise Gone

    late = ["training.report_every=1000"]
    with pytest.raises(Gone):
        run(ROWS, words(tmp_path / "words.tsv", seed=9), folder, late, updates=20, listeners=[Leaver()], overwrite=True)
    with pytest.raises(UserError, match=r"not a whole model, model\.safetensors is missing"):
        seq2see.load(folder)


def test_a_checkpoint_is_read_once_when_a_run_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> dict[str, Tensor]:
        read.append(path)
        return read_tensors(path)

    monkeypatch.setattr(checkpoints, "read_tensors", counted)
    run(ROWS, None, folder, resume=True, updates=21)
    assert [path.name for path in read] == ["update-000000020.safetensors"]


BAD_PARTS: dict[str, tuple[dict[str, Tensor | None], dict[str, object]]] = {
    "half of a parameter's optimiser state": ({"optimizer/0.exp_avg_sq": None}, {}),
    "optimiser tensors of another shape": ({"optimizer/0.exp_avg": torch.zeros(1)}, {}),
    "optimiser tensors of no parameter": ({"optimizer/9999.step": torch.zeros(())}, {}),
    "optimiser tensors without a number": ({"optimizer/x": torch.zeros(())}, {}),
    "a random state that is none": ({"random": torch.zeros(3)}, {}),
    "updates that are a text": ({}, {"updates": "many"}),
    "updates below 0": ({}, {"updates": -1}),
    "a best that is a list": ({}, {"best": [1]}),
    "kept weights that are no pairs": ({}, {"kept": [[1.0]]}),
    "an unknown number": ({}, {"unknown": 1}),
}


@pytest.mark.parametrize(("tensors", "state"), BAD_PARTS.values(), ids=BAD_PARTS)
def test_parts_of_a_checkpoint_under_a_checksum_that_fits(
    folder: Path, tensors: dict[str, Tensor | None], state: dict[str, object]
) -> None:
    """`make fuzz` found the first of these, which ended in a KeyError at the first update."""
    newest, *others = checkpoints.checkpoint_paths(folder / "checkpoints")
    for path in others:
        path.unlink()
    with safe_open(newest, framework="pt") as file:
        stored = json.loads(file.metadata()[checkpoints.STATE_KEY])
    whole = {name: value for name, value in {**read_tensors(newest), **tensors}.items() if value is not None}
    disk.write_tensors(newest, whole, metadata={checkpoints.STATE_KEY: json.dumps(stored | state)})
    with pytest.raises(UserError, match=r"checkpoints.*(damaged|not a checkpoint)"):
        seq2see.train(None, out=folder, resume=True, overrides=["training.updates=21"], listeners=[])
