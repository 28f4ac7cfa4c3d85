"""A shortlist is what IBM Model 1 learns, and the runtime searches among its symbols, with the model's own numbers."""

from __future__ import annotations

import itertools
import random
import re
import shutil
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch

from seq2see import Model, api
from seq2see.data.vocabulary import EOS, PAD, SOS, UNK
from seq2see.decoders import SoftmaxHead
from seq2see.errors import UserError
from seq2see.export import shortlist
from seq2see.export.shortlist import best_translations, check_shortlist, learn_shortlist, translation_table
from tests.commands import Commands
from tests.runtime.test_commands import call
from tests.runtime.test_page import PAGE

WORDS = 400
RECIPE: dict[str, Any] = {
    "task": "numbers in two languages",
    "inputs": {"source": {"column": "left", "tokens": "symbol", "max_length": 12}},
    "output": {"column": "right", "tokens": "symbol", "max_length": 16},
    "encoder": {"kind": "recurrent", "size": 16, "embedding": {"size": 12}},
    "decoder": {"kind": "recurrent", "size": 24, "embedding": {"size": 12}},
    "attention": {"score": "additive", "size": 16},
    "training": {"learning_rate": 0.005, "epochs": 0, "dev_rows": 10, "film": 0, "report_every": 1000},
    "search": {"max_length": 9},
}


def plain_model_1(pairs: list[tuple[list[int], list[int]]], rounds: int, empty: int) -> dict[tuple[int, int], float]:
    """IBM Model 1 as in its equations, one word after the other."""
    table = {(x, y): 1.0 for source, target in pairs for x in [*source, empty] for y in target}
    for _ in range(rounds):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for source, target in pairs:
            for y in target:
                whole = sum(table[x, y] for x in [*source, empty])
                for x in [*source, empty]:
                    counts[x, y] += table[x, y] / whole
                    totals[x] += table[x, y] / whole
        table = {(x, y): count / totals[x] for (x, y), count in counts.items()}
    return table


def test_translation_probabilities_are_those_of_ibm_model_1() -> None:
    draw = random.Random(3)
    pairs = [(draw.sample(range(9), draw.randint(1, 5)), draw.sample(range(11), draw.randint(1, 6))) for _ in range(40)]
    sources, targets = ([np.array(side) for side in sides] for sides in zip(*pairs, strict=True))
    keys, found = translation_table(sources, targets, size=9, symbols=11)
    wanted = plain_model_1(pairs, shortlist.ROUNDS, empty=9)
    assert {divmod(int(key), 11): pytest.approx(value, abs=1e-12) for key, value in zip(keys, found, strict=True)} == (
        wanted
    )
    best = best_translations(sources, targets, size=9, symbols=11, most=3)
    for x in range(9):
        ranked = sorted((-wanted[x, y], y) for y in range(11) if wanted.get((x, y), 0) >= shortlist.LEAST)[:3]
        assert [y for y in best[x] if y >= 0] == [y for _, y in ranked]


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Shortlists that are shorter than the vocabulary of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shortlist, "ALWAYS", 128)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of words x, whose translations are the words y of the same number, in reverse order."""
    draw, path = random.Random(1), tmp_path_factory.mktemp("shortlist") / "pairs.tsv"
    rows = [[draw.randrange(WORDS) for _ in range(draw.randint(2, 6))] for _ in range(900)]
    lines = [f"{' '.join(f'x{n}' for n in row)}\t{' '.join(f'y{n}' for n in reversed(row))}" for row in rows]
    path.write_text("\n".join(["left\tright", *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """With weights far from zero, so that its outputs differ."""
    made = api.train(RECIPE, table, out=tmp_path_factory.mktemp("model") / "run", updates=1, listeners=[])
    draw = torch.Generator().manual_seed(2)
    for parameter in made.bundle.network.parameters():
        parameter.data += torch.randn(parameter.shape, generator=draw) * 0.4
    cast(SoftmaxHead, made.bundle.network.head).c.data[[PAD, UNK, SOS]] = -30
    return made


@pytest.fixture(scope="module")
def folder(model: Model, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")
    from seq2see.export.onnx import export

    out = tmp_path_factory.mktemp("exported") / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks of the exporter about torch
        notes = export(model.bundle, out, pairs=model.rows_of(table))
    assert notes[-1].startswith("shortlist: 128 frequent symbols")
    return out


def loaded(folder: Path) -> Any:
    from seq2see_runtime import load

    return load(folder, threads=1)


INPUTS = ["x1 x2 x3", "x399 x17", "x5 x5 x200 x201 x202", "x8"]


def test_a_word_is_on_the_list_of_its_translation(model: Model, table: Path) -> None:
    learned = learn_shortlist(model.bundle, model.rows_of(table))
    source, output = model.bundle.fields.inputs["source"].vocabulary, model.bundle.fields.text_output.vocabulary
    right = [output.ids[f"y{x[1:]}"] in learned.translations["source"][i] for x, i in source.ids.items()]
    assert np.mean(right) > 0.95
    assert {EOS, UNK} <= set(learned.frequent.tolist())


def test_the_search_is_among_the_symbols_of_the_list_with_the_models_numbers(model: Model, folder: Path) -> None:
    """log P among the listed symbols is that of the model, less the log of what the listed ones have together."""
    runtime = loaded(folder)
    for value in INPUTS:
        listed = runtime.layer.symbols(runtime.read([runtime.row(value)]), 1)[0]
        words = {runtime.writer.vocabulary.symbols[i] for i in listed}
        assert len(words) < len(runtime.writer.vocabulary) / 2
        found = runtime.predict(value, beam=1)
        assert {token.text for token in found.tokens} <= words
        own = model.look(value, target=found.text)
        for token, exact in zip(found.tokens, own.tokens, strict=False):
            assert token.probability >= exact.probability - 1e-5
        first = first_step(model, value)
        assert found.tokens[0].probability == pytest.approx(first[listed].max() / first[listed].sum(), abs=1e-4)
        assert runtime.writer.vocabulary.ids[found.tokens[0].text] == listed[first[listed].argmax()]


def first_step(model: Model, value: str) -> np.ndarray:
    """P of every symbol at the first step, by the model itself."""
    network, fields = model.bundle.network, model.bundle.fields
    with torch.inference_mode():
        columns = fields.batch([{"source": value}]).inputs
        ready = network.ready(columns, 1)
        step = network.step(ready, network.begin(ready), torch.tensor([SOS]))
        found: np.ndarray = network.log_probs(step, ready)[0].exp().numpy()
    return found


@pytest.mark.parametrize("beam", [1, 4])
def test_without_the_list_predictions_are_the_models(beam: int, model: Model, folder: Path) -> None:
    runtime = loaded(folder)
    for ours, theirs in zip(
        model.predict(INPUTS, beam=beam), runtime.predict(INPUTS, beam=beam, shortlist=False), strict=True
    ):
        assert theirs.text == ours.text
        assert theirs.log_probability == pytest.approx(ours.log_probability, abs=1e-4)


def test_a_list_of_everything_changes_nothing(model: Model, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = loaded(folder)
    everything = np.arange(len(runtime.writer.vocabulary))

    def listed(_layer: Any, _columns: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
        return everything, np.ones((rows, len(everything)), dtype=bool)

    monkeypatch.setattr(type(runtime.layer), "symbols", listed)
    for ours, theirs in zip(model.predict(INPUTS, beam=3), runtime.predict(INPUTS, beam=3), strict=True):
        assert theirs.text == ours.text
        assert [other.text for other in theirs.alternatives] == [other.text for other in ours.alternatives]


def test_an_input_does_not_depend_on_its_batch(folder: Path) -> None:
    """Each input has its own list, though the batch multiplies the rows of all of them."""
    runtime = loaded(folder)
    for beam in (1, 3):
        for value, one in zip(INPUTS, runtime.predict(INPUTS, beam=beam), strict=True):
            alone = runtime.predict(value, beam=beam)
            assert alone.text == one.text
            assert alone.log_probability == pytest.approx(one.log_probability, abs=1e-4)


def test_given_outputs_and_samples_have_the_models_probability(model: Model, folder: Path) -> None:
    """A target need not be on the list: it is scored among all symbols."""
    runtime = loaded(folder)
    pairs = [(value, "y7 y300") for value in INPUTS]
    ours = model.score([{"left": value, "right": text} for value, text in pairs])
    assert sum(each.log_probability for each in runtime.score(pairs)) == pytest.approx(ours.log_probability, abs=1e-4)
    drawn = (each.predict(INPUTS[0], sample=True, seed=3).text for each in (model, runtime))
    assert len(set(drawn)) == 1


def test_int8_rounds_the_rows_of_the_output_layer(model: Model, table: Path, tmp_path: Path) -> None:
    """Weights of 8 bits times a scale for each symbol are V to half a step of rounding; outputs are found with them."""
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    from seq2see.export.onnx import export
    from seq2see.export.shortlist import BIAS, SCALES, WEIGHTS, output_layer

    head = cast(SoftmaxHead, model.bundle.network.head)
    layer = output_layer(head, int8=True)
    assert layer[WEIGHTS].dtype == np.int8
    V = head.V.detach().numpy()
    assert (np.abs(layer[WEIGHTS].T * layer[SCALES][:, None] - V) <= layer[SCALES][:, None] * 0.5001).all()
    np.testing.assert_array_equal(layer[BIAS], head.c.detach().numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(model.bundle, tmp_path / "int8", int8=True, pairs=model.rows_of(table))
    runtime = loaded(tmp_path / "int8")
    for value in INPUTS:
        listed = runtime.layer.symbols(runtime.read([runtime.row(value)]), 1)[0]
        chances = first_step(model, value)[listed]
        found = runtime.predict(value, beam=1).tokens[0]
        assert found.probability == pytest.approx(chances.max() / chances.sum(), rel=0.2)
    exact = model.score([{"left": value, "right": "y7 y300"} for value in INPUTS])
    rounded = runtime.score([(value, "y7 y300") for value in INPUTS])
    assert sum(each.log_probability for each in rounded) == pytest.approx(exact.log_probability, rel=0.02)


def test_the_command_of_the_page_about_it_runs(
    model: Model, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    monkeypatch.chdir(tmp_path)
    model.bundle.save(Path("runs/translation"))
    shutil.copy(table, "train.tsv")
    (command,) = re.findall(r"^seq2see (export .* --shortlist .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    done = Commands(capsys)(*command.split())
    assert done.code == 0, done.err
    out = command.split()[-1]
    exact = call(capsys, "predict", out, INPUTS[0], "--no-shortlist")
    assert exact[0] == call(capsys, "predict", out, INPUTS[0])[0] == 0
    assert exact[1].strip() == model.predict(INPUTS[0]).text


def test_damaged_lists_are_refused_by_name(folder: Path) -> None:
    from seq2see_runtime.shortlist import OutputLayer

    model = loaded(folder)
    symbols, size = len(model.writer.vocabulary), len(model.readers["source"].vocabulary)
    kept = {path: path.read_bytes() for path in folder.glob("*.npy")}
    assert {path.name for path in kept} == {
        "output_weights.npy",
        "output_bias.npy",
        "frequent.npy",
        "shortlist-source.npy",
    }
    bad: tuple[Any, ...] = (
        np.array([[99_999]], np.int32),
        np.zeros(3),
        np.array(["a"], dtype=object),
        b"no array",
        b"PK\x03\x04junk",
    )
    for path, one in itertools.product(kept, bad):
        path.write_bytes(one) if isinstance(one, bytes) else np.save(path, one, allow_pickle=True)
        with pytest.raises(UserError, match=path.name):
            OutputLayer(folder, {"source": size}, symbols, int8=False)
        path.write_bytes(kept[path])


def test_models_without_anything_to_choose_from_are_refused(model: Model) -> None:
    from tests.runtime.conftest import original

    with pytest.raises(UserError, match=r"output\.kind label"):
        check_shortlist(original("entailment").bundle)
    with pytest.raises(UserError, match="more than 144"):
        check_shortlist(original("transliteration").bundle)
    with pytest.raises(UserError, match="reads none"):
        check_shortlist(original("image-captioning").bundle)


def test_options_that_would_do_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
    from tests.runtime.conftest import SAVED

    commands = Commands(capsys)

    folder = str(SAVED / "translation-transformer")
    for arguments, key in (
        (["--to", "ctranslate2", "--shortlist", str(table)], "--shortlist"),
        (["--to", "onnx", "--columns", "left"], "--columns"),
    ):
        done = commands("export", folder, *arguments, "--out", str(tmp_path / "out"))
        assert done.code == 2
        assert key in done.err
        assert not (tmp_path / "out").exists()
