"""A model's folder that somebody else has written: a message with the file's name, and nothing allocated before."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load, save
from safetensors.torch import load_file, save_file

import seq2see
from seq2see.errors import Notice, UserError
from seq2see.pipeline import weights
from seq2see.pipeline.bundle import WEIGHTS
from seq2see.pipeline.trained_rows import FILE as TRAINED_ROWS
from seq2see.pipeline.weights import CHECKSUMS
from tests.hostile.mutations import SEED, mutate_bytes, mutate_settings, survived

Call = Callable[..., tuple[int, str, str]]
LEFT_OUT = shutil.ignore_patterns("checkpoints", "*.jsonl", "sources.json", "checksums.json")


@pytest.fixture
def copy_of(models: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def copied(kind: str) -> Path:
        """Without checksums: a stranger's would match what the stranger wrote."""
        shutil.rmtree(tmp_path / kind, ignore_errors=True)
        folder = Path(shutil.copytree(models[kind], tmp_path / kind, ignore=LEFT_OUT))
        save_file(load_file(folder / WEIGHTS), folder / WEIGHTS)
        return folder

    return copied


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        yield


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        seq2see.load(folder)
    return str(caught.value)


def change(folder: Path, key: str, value: Any) -> None:
    path = folder / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text("utf-8"))
    *above, last = key.split(".")
    group = recipe
    for part in above:
        group = group[part]
    group[last] = value
    path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("encoder.size", 6000, "encoders.source"),
        ("encoder.size", 1_000_000, "encoders.source"),
        ("decoder.size", 1_000_000, "decoder"),
        ("encoder.embedding.size", 1_000_000, "encoders.source"),
        ("encoder.layers", 500, "encoders.source"),
        ("encoder.layers", 100_000, "encoder.layers"),
        ("encoder.size", 2_000_000, "encoder.size"),
        ("attention.size", 900_000, "attention"),
    ],
)
def test_sizes_are_compared_before_anything_is_built(
    copy_of: Callable[[str], Path], key: str, value: int, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read of the weights is their header, and no network with numbers is made."""
    folder = copy_of("word")
    change(folder, key, value)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the weights were read")

    monkeypatch.setattr("seq2see.pipeline.bundle.read_tensors", never)
    monkeypatch.setattr("seq2see.pipeline.bundle.Bundle.create", never)
    message = refused(folder)
    assert named in message or "looking" in message
    assert "model.safetensors" in message or "recipe.yaml" in message
    assert len(message) < 1500


def test_a_header_that_lies(copy_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of("word")
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + size])
    first = next(name for name in header if name != "__metadata__")
    lies: list[dict[str, Any]] = [
        {"shape": [2**62, 2**62]},
        {"shape": [-1]},
        {"dtype": "F99"},
        {"data_offsets": [0, 2**60]},
        {"shape": [[1]]},
    ]
    for lie in lies:
        changed = json.dumps({**header, first: {**header[first], **lie}}).encode()
        path.write_bytes(struct.pack("<Q", len(changed)) + changed + whole[8 + size :])
        assert refused(folder).startswith(f"{path}: ")
    for claimed in (2**63, 2**40, len(whole)):
        path.write_bytes(struct.pack("<Q", claimed) + whole[8:])
        assert refused(folder).startswith(f"{path}: damaged")
    path.write_bytes(b"")
    assert refused(folder).startswith(f"{path}: damaged")
    path.write_bytes(whole)
    monkeypatch.setattr(weights, "machine_memory", lambda: 1000)
    assert "this machine has" in refused(folder)


def test_weights_that_are_no_numbers(copy_of: Callable[[str], Path]) -> None:
    folder = copy_of("word")
    path = folder / "model.safetensors"
    whole = load_file(path)
    name = next(iter(whole))
    save_file({**whole, name: torch.full_like(whole[name], torch.nan)}, path)
    assert f"{name} holds numbers that are not finite" in refused(folder)
    save_file({**whole, name: whole[name].to(torch.int64)}, path)
    assert f"{name} is of type I64" in refused(folder)


# ---------------------------------------------------------------- other files

BAD_FILES: dict[str, tuple[str, str, Any]] = {
    "counts of digits that are none": ("word", "vocabulary-source.txt", "# symbols\t²\n"),
    "counts below 0": ("word", "vocabulary-source.txt", "# symbols\t1\n<pad>\t-3\n"),
    "thousands of digits": ("word", "vocabulary-source.txt", f"# symbols\t1\n<pad>\t{'9' * 5000}\n"),
    "bpe that is a list": ("bpe", "bpe-source.json", []),
    "bpe without a model": ("bpe", "bpe-source.json", {"model": None}),
    "bpe with ids that are text": ("bpe", "bpe-source.json", {"model": {"vocab": {"<unk>": "0"}, "merges": []}}),
    "bpe with one id twice": ("bpe", "bpe-source.json", {"model": {"vocab": {"<unk>": 0, "a": 0}, "merges": []}}),
    "bpe with merges of nothing": (
        "bpe",
        "bpe-source.json",
        {"model": {"vocab": {"<unk>": 0}, "merges": [["a", "b"]]}},
    ),
    "bpe nested deeply": ("bpe", "bpe-source.json", "[" * 100_000),
    "bpe with half a pair": (
        "bpe",
        "bpe-source.json",
        '{"model": {"vocab": {"<unk>": 0, "\\ud800": 1}, "merges": []}}',
    ),
    "means that are text": ("vector", "numbers-source.json", {"mean": ["1", "2"], "deviation": [1, 1]}),
    "means beyond numbers": ("vector", "numbers-source.json", {"mean": [10**400, 1], "deviation": [1, 1]}),
    "means that are not finite": ("vector", "numbers-source.json", '{"mean": [NaN, 1], "deviation": [1, 1]}'),
    "deviations of 0": ("vector", "numbers-source.json", {"mean": [1, 1], "deviation": [0, 1]}),
    "a list of numbers": ("vector", "numbers-source.json", [1]),
    "baselines that are a mapping": ("word", "baselines.json", {"name": "copy"}),
    "a baseline that is none": ("word", "baselines.json", [{"name": ["copy"]}]),
    "a baseline of numbers": ("word", "baselines.json", [{"name": "majority", "output": 5}]),
    "counts that are text": ("word", "baselines.json", [{"name": "unigram", "counts": {"a": "b"}}]),
    "counts below -1": ("word", "baselines.json", [{"name": "unigram", "counts": {"a": -50}}]),
    "labels without rows": ("word", "baselines.json", [{"name": "bag-of-words", "labels": {}, "counts": {"a": [1]}}]),
    "counts of no label": (
        "word",
        "baselines.json",
        [{"name": "bag-of-words", "labels": {"a": 1}, "counts": {"b": []}}],
    ),
    "baselines nested deeply": ("word", "baselines.json", "[" * 100_000),
}


@pytest.mark.parametrize(("kind", "name", "content"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_named(copy_of: Callable[[str], Path], kind: str, name: str, content: Any) -> None:
    path = copy_of(kind) / name
    assert path.is_file()
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    message = refused(path.parent)
    assert message.startswith(f"{path}")
    assert len(message) < 1000


@pytest.mark.parametrize(
    "name",
    [
        "recipe.yaml",
        "model.safetensors",
        "bpe-source.json",
        "vocabulary-source.txt",
        "baselines.json",
        "trained_rows.safetensors",
    ],
)
def test_what_is_no_file_is_not_opened(copy_of: Callable[[str], Path], name: str) -> None:
    path = copy_of("bpe") / name
    for make in (lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"), path.mkdir):
        path.unlink()
        make()
        assert name in refused(path.parent)
        if path.is_dir():
            path.rmdir()
            path.touch()


@pytest.mark.parametrize("listed", [True, False])
def test_a_file_too_large_is_not_read(copy_of: Callable[[str], Path], models: dict[str, Path], listed: bool) -> None:
    """listed: with its checksum, which is not worth computing then."""
    folder = copy_of("bpe")
    if listed:
        shutil.copy(models["bpe"] / CHECKSUMS, folder)
    for name in ("recipe.yaml", "vocabulary-source.txt", "bpe-source.json", "baselines.json", TRAINED_ROWS):
        whole = (folder / name).read_bytes()
        os.truncate(folder / name, 1 << 40)  # a hole: it takes no room on the disk
        tracemalloc.start()
        message = refused(folder)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert name in message
        assert peak < 50_000_000
        (folder / name).write_bytes(whole)


U64 = np.array([1, 2], np.uint64)
BAD_HASHES: dict[str, dict[str, Any]] = {
    "an infinite highest": {"highest": np.array([np.inf])},
    "a highest below 0": {"highest": np.array([-1])},
    "no highest": {"highest": U64[:0]},
    "two highest": {"highest": U64},
    "fewer pairs than inputs": {"pairs": U64[:1]},
    "inputs in two dimensions": {"inputs": U64.reshape(1, 2)},
    "hashes that are fractions": {"inputs": np.array([0.5, 1.5]), "pairs": np.array([0.5, 1.5])},
}


@pytest.mark.parametrize("changed", BAD_HASHES.values(), ids=BAD_HASHES)
def test_bad_hashes_of_rows_are_refused(copy_of: Callable[[str], Path], changed: dict[str, Any]) -> None:
    path = copy_of("word") / TRAINED_ROWS
    path.write_bytes(save({"inputs": U64, "pairs": U64, "highest": U64[:1]}))
    seq2see.load(path.parent)
    path.write_bytes(save({"inputs": U64, "pairs": U64, "highest": U64[:1], **changed}))
    assert refused(path.parent).startswith(f"{path}: damaged")


def test_many_small_lists_of_baselines_are_not_read(copy_of: Callable[[str], Path]) -> None:
    """Each takes many times more memory than the two characters it is written with."""
    path = copy_of("word") / "baselines.json"
    path.write_bytes(b'[{"name":"x","a":[' + b"[]," * 20_000_000 + b"[]]}]")
    assert refused(path.parent).startswith(f"{path}: ")


def test_only_pieces_and_merges_are_taken_from_a_tokenizer(copy_of: Callable[[str], Path]) -> None:
    """A pattern in the file, which might take for ever, is not run; what was learned is the same."""
    folder = copy_of("bpe")
    before = seq2see.load(folder)
    path = folder / "bpe-source.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["normalizer"] = {"type": "Replace", "pattern": {"Regex": "."}, "content": "z"}
    path.write_text(json.dumps(stored), encoding="utf-8")
    after = seq2see.load(folder)
    assert after.places("one two three") == before.places("one two three")
    after.save(folder.parent / "again")
    before.save(folder.parent / "first")
    for name in ("bpe-source.json", "vocabulary-source.txt"):
        assert (folder.parent / "again" / name).read_bytes() == (folder.parent / "first" / name).read_bytes()


# ---------------------------------------------------------------- mutated at random


def mutate_file(path: Path, draw: random.Random) -> None:
    """Change one file of a folder: settings where it holds some, otherwise bytes."""
    if path.suffix == ".yaml" and draw.random() < 0.7:
        changed = mutate_settings(yaml.safe_load(path.read_text("utf-8")), draw)
        path.write_bytes(yaml.safe_dump(changed, sort_keys=False).encode("utf-8", "replace"))
    elif path.suffix == ".json" and draw.random() < 0.7:
        whole = mutate_settings({"whole": json.loads(path.read_text("utf-8"))}, draw)
        path.write_text(json.dumps(whole.get("whole"), default=str, skipkeys=True), encoding="utf-8")
    else:
        path.write_bytes(mutate_bytes(path.read_bytes(), draw))


def answers(kind: str, folder: Path) -> bool:
    """Whether the model of a folder can be loaded and asked."""
    given = {"vector": "1 2", "language": None}.get(kind, "one two")
    how: dict[str, Any] = {"sample": True} if kind == "language" else {}
    return survived(lambda: seq2see.load(folder).predict(given, **how))


def load_mutated(copy_of: Callable[[str], Path], kinds: list[str], number: int, seed: int) -> int:
    """How many of so many folders with one mutated file still hold a model."""
    draw, sound = random.Random(seed), 0
    for _ in range(number):
        kind = draw.choice(kinds)
        folder = copy_of(kind)
        mutate_file(draw.choice(sorted(path for path in folder.iterdir() if path.is_file())), draw)
        sound += answers(kind, folder)
    return sound


def test_mutated_folders(copy_of: Callable[[str], Path], models: dict[str, Path]) -> None:
    assert 0 < load_mutated(copy_of, sorted(models), 40, seed=1) < 40


@pytest.mark.slow
def test_many_mutated_folders(copy_of: Callable[[str], Path], models: dict[str, Path]) -> None:
    assert load_mutated(copy_of, sorted(models), 4000, seed=SEED)


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_mutated_hashes_of_rows(copy_of: Callable[[str], Path], table: Path, call: Call, command: str) -> None:
    """The file that only `evaluate` looks into, bytes and whole tensors of it."""
    draw, codes, folder = random.Random(7), [], copy_of("word")
    path = folder / TRAINED_ROWS
    whole = path.read_bytes()
    stored = load(whole)
    for number in range(12):
        if number % 2:
            name, kind = draw.choice(sorted(stored)), draw.choice([np.float64, np.int64, np.uint8, np.uint64])
            changed = stored[name].astype(kind)[: draw.randrange(3)]
            path.write_bytes(save({**stored, name: changed}))
        else:
            path.write_bytes(mutate_bytes(whole, draw))
        code, _, err = call(command, folder, *(["--data", table] if command == "evaluate" else ["one two"]))
        codes.append(code)
        assert code in (0, 2), err
        assert "Traceback" not in err
        assert code == 0 or TRAINED_ROWS in err
    assert 2 in codes


def test_mutated_folders_on_the_command_line(copy_of: Callable[[str], Path], call: Call) -> None:
    draw, codes = random.Random(4), []
    for _ in range(10):
        folder = copy_of("bpe")
        path = draw.choice(sorted(path for path in folder.iterdir() if path.is_file()))
        path.write_bytes(mutate_bytes(path.read_bytes(), draw))
        code, _, err = call("predict", folder, "one two")
        codes.append(code)
        assert code in (0, 2), err
        assert "Traceback" not in err
        assert code == 0 or folder.name in err
    assert 2 in codes
