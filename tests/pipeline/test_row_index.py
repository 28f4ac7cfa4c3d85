"""The index of training rows: against NumPy by brute force, and what is refused of folders that strangers wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.data.vocabulary import EOS
from seq2see.errors import UserError
from seq2see.pipeline import nearest_rows, row_index
from seq2see.pipeline.bundle import ROW_INDEX, WEIGHTS
from seq2see.pipeline.row_index import RowIndex
from seq2see.pipeline.weights import read_header, read_tensors, write_tensors
from seq2see.search import evaluating


@pytest.fixture
def indexed(model: Model, table: Path, tmp_path: Path) -> Model:
    """A model in a folder of its own, with an index."""
    model.save(tmp_path / "run")
    loaded = seq2see.load(tmp_path / "run")
    assert loaded.index_rows(table) == tmp_path / "run" / ROW_INDEX
    return seq2see.load(tmp_path / "run")


def index(model: Model) -> RowIndex:
    found = model.bundle.row_index
    assert found is not None
    return found


def inputs(model: Model) -> list[dict[str, str]]:
    """The inputs of all rows of its index."""
    model.nearest_rows("bex")  # reads the index
    return [index(model).row(number) for number in range(len(index(model)))]


def cosines(vectors: Any, vector: Any) -> np.ndarray:
    vectors, vector = np.asarray(vectors, dtype=np.float64), np.asarray(vector, dtype=np.float64)
    return np.asarray(vectors @ vector / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vector))


def states(model: Model, word: str, output: str) -> np.ndarray:
    """What the output layer sees at every step, one step of the decoder after the other: (steps, size)."""
    bundle = model.bundle
    ids = [*bundle.fields.output.ids(output), EOS]
    features = []
    with evaluating([bundle.network]):
        ready = bundle.network.ready(bundle.fields.batch([model.row(word)]).inputs, 1)
        state = bundle.network.begin(ready)
        for token in [2, *ids[:-1]]:
            step = bundle.network.step(ready, state, torch.tensor([token]))
            state = step.state
            features.append(step.features[0].numpy())
    return np.stack(features)


@pytest.mark.parametrize("block", [7, 1 << 14])
def test_nearest_inputs_are_those_of_brute_force(indexed: Model, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_index, "BLOCK_ROWS", block)
    near = indexed.nearest_rows("bex", k=6)
    rows = inputs(indexed)
    expected = cosines(indexed.encode([row["source"] for row in rows]), indexed.encode(["bex"])[0])
    best = np.argsort(-expected)[:6]
    assert [each.cosine for each in near] == pytest.approx(expected[best].tolist(), abs=2e-3)
    for each in near:
        assert isinstance(each.input, str)
        assert each.output == each.input.upper()
        place = rows.index({"source": each.input})
        assert each.cosine == pytest.approx(expected[place], abs=2e-3)


def test_nearest_steps_are_those_of_brute_force(indexed: Model) -> None:
    near = indexed.nearest_rows("bex", step=1, target="BEX", k=4)
    vector = states(indexed, "bex", "BEX")[1]
    best = {}
    for row in inputs(indexed):
        word = row["source"]
        similar = cosines(states(indexed, word, word.upper()), vector)
        best[word] = (float(similar.max()), int(similar.argmax()))
    ranked = sorted(best.values(), reverse=True)[:4]
    assert [each.cosine for each in near] == pytest.approx([cosine for cosine, _ in ranked], abs=2e-3)
    for each in near:
        assert isinstance(each.input, str)
        assert each.cosine == pytest.approx(best[each.input][0], abs=2e-3)
        assert each.step is not None
        assert each.symbol == [*each.input.upper(), "<eos>"][each.step]


def test_a_training_row_is_nearest_to_itself(indexed: Model) -> None:
    word = inputs(indexed)[3]["source"]
    for step in (None, 0, 3):
        (first, *_) = indexed.nearest_rows(word, step=step, target=None if step is None else word.upper())
        assert (first.input, round(first.cosine, 2)) == (word, 1.0)
    assert len(indexed.nearest_rows(word)) == 5


def test_rows_that_were_set_aside_are_not_indexed(indexed: Model, table: Path) -> None:
    rows = {row["source"] for row in inputs(indexed)}
    words = {line.split("\t")[0] for line in table.read_text("utf-8").splitlines()[1:]}
    assert rows < words
    assert indexed.bundle.trained is not None
    assert len(rows) == len(indexed.bundle.trained.pairs)
    with pytest.raises(UserError, match="none of these rows"):
        indexed.index_rows([{"source": "never", "output": "SEEN"}])


@pytest.mark.parametrize("rows", [1, 10, 40, 61, 63, 64])
def test_large_tables_are_sampled_evenly(indexed: Model, table: Path, rows: int) -> None:
    every = [row["source"] for row in inputs(indexed)]
    assert len(every) > 60
    indexed.index_rows(table, rows=rows)
    places = [every.index(row["source"]) for row in inputs(indexed)]
    assert len(places) == min(rows, len(every))
    assert {*np.diff(places)} <= {len(every) // rows, len(every) // rows + 1}


def test_steps_of_all_rows_are_limited_however_long_each_is(indexed: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second output is long: of every second row all might be."""
    indexed.bundle.trained = indexed.bundle.folder = None
    rows = [{"source": "aex", "output": "A" if number % 2 else "AEXAEXA"} for number in range(60)]  # 300 steps
    for most in (300, 299, 200, 40, 8):
        monkeypatch.setattr(row_index, "EXACT_VECTORS", most)
        indexed.index_rows(rows)
        assert most // 4 <= len(index(indexed).steps) <= most


def test_texts_of_all_rows_are_limited_and_so_is_each(
    indexed: Model, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAX_VALUE", "MAX_STEPS"):
        monkeypatch.setattr(nearest_rows, name, 2)
        monkeypatch.setattr(row_index, name, 2)
    monkeypatch.setattr(row_index, "MAX_TEXTS", 100)
    indexed.index_rows(table)
    again = seq2see.load(indexed.bundle.folder)
    (near,) = again.nearest_rows("bex", step=0, target="BEX", k=1)
    assert [len(near.input), len(near.output), near.symbols] == [2, 2, [*near.output]]
    assert len(index(again)) == 25, "of 64 rows with four bytes each"


def test_the_whole_file_is_limited(indexed: Model, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_index, "MEBIBYTE", row_index.MAX_BYTES - 7_000)
    with pytest.raises(UserError, match=r"takes more than .* bytes; index fewer rows"):
        indexed.index_rows(table)
    monkeypatch.setattr(row_index, "MAX_BYTES", 9_000)
    monkeypatch.setattr(row_index, "MEBIBYTE", 0)
    path = indexed.index_rows(table)
    assert path is not None
    assert 6_000 < sum(tensor.nbytes for tensor in read_tensors(path).values()) <= 9_000


def test_an_index_has_the_vectors_of_encode(tmp_path: Path) -> None:
    """Also where the decoder replaces the summaries by its own."""
    rows = [
        {"premise": f"{a} {b}", "hypothesis": f"{b} {a}", "label": "same" if a == b else "other"}
        for a in "abcd"
        for b in "abcd"
    ]
    sizes = [f"{part}.size=8" for part in ("encoder", "encoder.embedding", "attention", "decoder")]
    model = seq2see.train(
        "entailment",
        rows,
        dev=rows,
        overrides=[*sizes, "inputs.premise.min_count=1"],
        updates=1,
        out=tmp_path / "run",
        listeners=[],
    )
    model.index_rows(rows)
    (near,) = model.nearest_rows(["a b", "b a"], k=1)
    assert (near.input, round(near.cosine, 2)) == ({"premise": "a b", "hypothesis": "b a"}, 1.0)
    assert len(model.nearest_rows(["a b", "b a"], step=0)) == 5


def test_vectors_without_numbers_have_no_cells() -> None:
    assert row_index.is_large((row_index.EXACT_VECTORS + 1, 4))
    assert not row_index.is_large((row_index.EXACT_VECTORS, 4))
    assert not row_index.is_large((row_index.EXACT_VECTORS + 1, 0)), "the inputs of a language model"


@pytest.mark.parametrize("mistake", [{"k": "3"}, {"k": 2.5}, {"k": True}, {"step": 1.0}, {"step": "1"}])
def test_numbers_that_cannot_be_are_refused(indexed: Model, mistake: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="whole number"):
        indexed.nearest_rows("bex", **{"target": "BEX" if "step" in mistake else None, **mistake})


@pytest.mark.parametrize("limit", ["MOST_VECTORS", "MAX_TEXTS"])
def test_what_could_not_be_read_again_is_not_written(
    indexed: Model, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    before = (folder / ROW_INDEX).read_bytes()
    inputs(indexed)
    monkeypatch.setattr(row_index, limit, 30)
    with pytest.raises(UserError, match=r"at most 30; index fewer rows \(--rows\)"):
        nearest_rows.save_index(indexed.bundle, index(indexed))
    assert (folder / ROW_INDEX).read_bytes() == before
    with pytest.raises(UserError, match=f"^{ROW_INDEX}: damaged: .* entries; allowed: at most 30"):
        seq2see.load(folder).nearest_rows("bex")


def test_labels_have_one_step(labels: Model, tmp_path: Path) -> None:
    rows = [{"one": "a x", "two": "a y", "label": "other"}, {"one": "b x", "two": "b x", "label": "same"}]
    labels.bundle.trained = None
    assert labels.index_rows(rows) is None, "it has no folder"
    (near,) = labels.nearest_rows({"one": "b x", "two": "b x"}, step=0, k=1)
    assert (near.input, near.output, near.step, near.symbol) == ({"one": "b x", "two": "b x"}, "same", 0, "same")


def test_what_cannot_be_asked_is_told(indexed: Model, model: Model) -> None:
    for options, message in (
        ({"step": 9, "target": "BEX"}, "step 9: the output has 4 steps"),
        ({"k": 0}, "k must be a number from 1"),
        ({"target": "BEX"}, "target: needs a step"),
    ):
        with pytest.raises(UserError, match=message):
            indexed.nearest_rows("bex", **options)
    with pytest.raises(UserError, match=r"no index .* seq2see nearest MODEL --data TABLE"):
        model.nearest_rows("bex")


def test_an_index_of_other_weights_is_refused(indexed: Model) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    tensors = read_tensors(folder / WEIGHTS)
    write_tensors(folder / WEIGHTS, {name: tensor + 0.5 for name, tensor in tensors.items()})
    with pytest.raises(UserError, match="that of other weights"):
        seq2see.load(folder).nearest_rows("bex")


def changed(name: str, **values: Any) -> Any:
    """Damage: entries of a tensor by place."""

    def change(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tensor = tensors[name].clone()
        for place, value in values.items():
            tensor[int(place.removeprefix("at"))] = value
        return tensors | {name: tensor}

    return change


DAMAGE: dict[str, Any] = {
    "a tensor less": lambda tensors: {name: tensor for name, tensor in tensors.items() if name != "steps"},
    "a tensor more": lambda tensors: tensors | {"more": tensors["starts"].clone()},
    "another type": lambda tensors: tensors | {"inputs": tensors["inputs"].float()},
    "another shape": lambda tensors: tensors | {"steps": tensors["steps"][0]},
    "not numbers": lambda tensors: tensors | {"inputs": tensors["inputs"] * torch.nan},
    "fewer steps": lambda tensors: tensors | {"steps": tensors["steps"][1:]},
    "fewer steps and symbols": lambda tensors: tensors | {name: tensors[name][1:] for name in ("steps", "symbols")},
    "fewer inputs": lambda tensors: tensors | {"inputs": tensors["inputs"][1:]},
    "fewer symbols": lambda tensors: tensors | {"symbols": tensors["symbols"][1:]},
    "starts that fall": lambda tensors: tensors | {"starts": tensors["starts"].flip(0)},
    "starts that overflow": changed("starts", at1=(1 << 63) - 1, at2=-(1 << 63)),
    "no starts": lambda tensors: tensors | {"starts": tensors["starts"][:0]},
    "symbols below 0": changed("symbols", at1=-1),
    "symbols beyond the vocabulary": changed("symbols", at0=99),
    "no vocabulary": lambda tensors: tensors | {"vocabulary_bounds": tensors["vocabulary_bounds"][:0]},
    "a vocabulary larger than the steps": lambda tensors: (
        tensors | {"vocabulary_bounds": torch.zeros(9999, dtype=torch.int64)}
    ),
    "fewer values": lambda tensors: tensors | {"values_bounds": tensors["values_bounds"][1:]},
    "values that end before the texts": lambda tensors: tensors | {"values": tensors["values"].repeat(2)},
    "one long value": lambda tensors: (
        tensors
        | {
            "values": torch.zeros(9000, dtype=torch.uint8),
            "values_bounds": torch.where(torch.arange(len(tensors["values_bounds"])) > 0, 9000, 0),
        }
    ),
}


def written(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    return read_tensors(path), read_header(path)[0]


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_indices_are_refused(indexed: Model, how: str) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    path = folder / ROW_INDEX
    tensors, metadata = written(path)
    write_tensors(path, DAMAGE[how](tensors), metadata=metadata)
    with pytest.raises(UserError, match=f"^{ROW_INDEX}: damaged"):
        seq2see.load(folder).nearest_rows("bex")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "1", "another format"),
        ("columns", '["x", "y"]', "that of another model, with other inputs"),
        ("weights", "0", "that of other weights"),
    ],
)
def test_an_index_of_something_else_is_refused_by_its_header(
    indexed: Model, key: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read once, whatever it holds, until it is written anew."""
    folder = indexed.bundle.folder
    assert folder is not None
    path = folder / ROW_INDEX
    tensors, metadata = written(path)
    write_tensors(path, tensors, metadata=metadata | {key: value})
    opened = []
    monkeypatch.setattr(row_index, "read_tensors", opened.append)
    monkeypatch.setattr(row_index, "read_header", lambda path: (opened.append(path), read_header(path))[1])
    model = seq2see.load(folder)
    for _ in range(3):
        with pytest.raises(UserError, match=f"^{ROW_INDEX}: .*{message}.*seq2see nearest MODEL --data TABLE"):
            model.nearest_rows("bex")
    assert opened == [path], "its header, once"
    monkeypatch.undo()
    write_tensors(path, tensors, metadata=metadata)
    assert model.nearest_rows("bex")


def test_an_index_that_is_cut_short_after_it_was_read_ends_nothing(indexed: Model) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    model = seq2see.load(folder)
    before = model.nearest_rows("bex")
    os.truncate(folder / ROW_INDEX, 0)
    assert model.nearest_rows("bex") == before


def test_a_changed_byte_is_noticed(indexed: Model) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    path = folder / ROW_INDEX
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="do not match its checksum"):
        seq2see.load(folder).nearest_rows("bex")
