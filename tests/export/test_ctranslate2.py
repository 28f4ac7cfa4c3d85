"""An exported Transformer writes in CTranslate2 what it writes here, with the same probabilities."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from seq2see import Model, api
from seq2see.data.vocabulary import PAD, SOS
from seq2see.decoders import SoftmaxHead
from seq2see.errors import Notice, UserError
from seq2see.export.ctranslate2 import export, problems
from seq2see.files import new_folder
from seq2see.recipe import Recipe, load_recipe
from tests.commands import Commands

DOCS = Path(__file__).resolve().parents[2] / "docs"
LAYERS = {"kind": "transformer", "size": 32, "heads": 4, "layers": 2, "feedforward": 48, "embedding": {"size": 32}}
RECIPE: dict[str, Any] = {
    "task": "reversal",
    "inputs": {"source": {"column": "word", "tokens": "character", "max_length": 12}},
    "output": {"column": "reversed", "tokens": "symbol", "max_length": 16},
    "encoder": LAYERS,
    "decoder": LAYERS | {"tied": True},
    "attention": {"score": "scaled-dot", "heads": 4},
    "training": {"learning_rate": 0.005, "epochs": 0, "dev_rows": 10, "film": 0, "report_every": 1000},
    "search": {"max_length": 20},
}
OTHER_LAYERS: dict[str, dict[str, Any]] = {
    "learned positions, embeddings of another size, weights not tied": {
        "encoder": {"positions": "learned", "longest": 12},
        "decoder": {"positions": "learned", "longest": 24, "tied": False, "embedding": {"size": 12}},
    },
    "rotary positions, one-hot symbols": {
        "encoder": {"positions": "rotary", "embedding": {"kind": "one-hot"}},
        "decoder": {"positions": "rotary"},
    },
    "no positions": {"encoder": {"positions": "none"}, "decoder": {"positions": "none"}},
    "an encoder of another size": {"encoder": {"size": 48}},
}


@pytest.fixture(scope="module")
def engine() -> Any:
    return pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")


@pytest.fixture(scope="module")
def words() -> list[str]:
    draw = random.Random(1)
    drawn = {"".join(draw.choice("abcdef") for _ in range(draw.randint(2, 6))) for _ in range(400)}
    return sorted(drawn)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, words: list[str]) -> Path:
    path = tmp_path_factory.mktemp("reversal") / "pairs.tsv"
    rows = [f"{word}\t{' '.join(reversed(word.upper()))}" for word in words]
    path.write_text("\n".join(["word\treversed", *rows]) + "\n", encoding="utf-8")
    return path


def recipe(**changes: Any) -> dict[str, Any]:
    return {key: value | changes[key] if key in changes else value for key, value in RECIPE.items()}


def random_model(table: Path, folder: Path, **changes: Any) -> Model:
    """A model with weights far from zero, so that its outputs differ, and to which <pad> and <sos> are as unlikely as
    to a trained one."""
    model = api.train(recipe(**changes), table, out=folder, updates=1, listeners=[])
    for parameter in model.bundle.network.parameters():
        parameter.data += torch.randn_like(parameter) * 0.2
    cast(SoftmaxHead, model.bundle.network.head).c.data[[PAD, SOS]] = -30
    return model


@pytest.fixture(scope="module")
def trained(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return api.train(RECIPE, table, out=tmp_path_factory.mktemp("trained"), updates=350, listeners=[])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "exported"
    shutil.rmtree(tmp_path / "exported", ignore_errors=True)


def open_exported(engine: Any, model: Model, folder: Path, *, int8: bool = False) -> Any:
    export(model.bundle, folder, int8=int8)
    return engine.Translator(str(folder), intra_threads=1, inter_threads=1)


def outputs(folder: Path, translator: Any, words: list[str], **changes: Any) -> list[Any]:
    arguments = json.loads((folder / "search.json").read_text("utf-8"))
    found: list[Any] = translator.translate_batch([list(word) for word in words], **(arguments | changes))
    return found


def texts(found: list[Any]) -> list[str]:
    return [" ".join(symbol for symbol in one.hypotheses[0] if symbol != "<eos>") for one in found]


@pytest.mark.parametrize("beam", [1, 5])
def test_a_trained_model_writes_the_same(
    beam: int, engine: Any, trained: Model, folder: Path, words: list[str]
) -> None:
    some = words[:60]
    # Without the suppression of <pad> and <sos>, which here are not written anyway: it changes the other probabilities.
    found = outputs(folder, open_exported(engine, trained, folder), some, beam_size=beam, suppress_sequences=None)
    own = trained.predict(some, beam=beam)
    pairs = list(zip(found, texts(found), own, strict=True))
    same = [(one, prediction) for one, text, prediction in pairs if text == prediction.text]
    assert len(same) == 60 if beam == 1 else len(same) >= 57
    assert len({prediction.text for prediction in own}) > 50
    for one, prediction in same:
        assert one.scores[0] == pytest.approx(prediction.score, abs=1e-4)
    # A beam that CTranslate2 ends sooner has found nothing better.
    assert all(one.scores[0] <= prediction.score + 1e-4 for one, _, prediction in pairs)


@pytest.mark.parametrize("changes", [{}, *OTHER_LAYERS.values()], ids=["as it is", *OTHER_LAYERS])
def test_any_layers_give_the_same_probabilities(
    changes: dict[str, Any], engine: Any, table: Path, folder: Path, tmp_path: Path, words: list[str]
) -> None:
    model = random_model(table, tmp_path / "run", **changes)
    some = words[:40]
    translator = open_exported(engine, model, folder)
    found = outputs(folder, translator, some)
    assert texts(found) == [prediction.text for prediction in model.predict(some)]

    targets = [list("ABCDEF"[: len(word) % 6 + 1]) for word in some]
    scored = translator.score_batch([list(word) for word in some], targets)
    rows = [{"word": word, "reversed": " ".join(target)} for word, target in zip(some, targets, strict=True)]
    own = [score.log_probability for score in model.score(rows).each]
    assert [sum(one.log_probs) for one in scored] == pytest.approx(own, abs=1e-4)


def test_attention_is_that_of_our_looks(engine: Any, trained: Model, folder: Path) -> None:
    (found,) = outputs(folder, open_exported(engine, trained, folder), ["abcdef"], return_attention=True)
    looks = trained.predict("abcdef").looks
    assert looks is not None
    assert torch.tensor(found.attention[0]).numpy() == pytest.approx(looks.weights, abs=1e-4)


def test_int8_takes_less_and_writes_nearly_the_same(
    engine: Any, trained: Model, folder: Path, tmp_path: Path, words: list[str]
) -> None:
    small = tmp_path / "small"
    found = outputs(small, open_exported(engine, trained, small, int8=True), words[:60])
    export(trained.bundle, folder, int8=False)
    own = [prediction.text for prediction in trained.predict(words[:60])]
    assert sum(a == b for a, b in zip(texts(found), own, strict=True)) > 50
    assert (small / "model.bin").stat().st_size < 0.75 * (folder / "model.bin").stat().st_size


# ---------------------------------------------------------------- What is refused


@pytest.mark.parametrize(
    ("overrides", "key", "allowed"),
    [
        (["encoder.kind=recurrent"], "encoder.kind: recurrent", "transformer"),
        (["decoder.kind=recurrent", "attention.score=dot"], "decoder.kind: recurrent", "transformer"),
        (["attention.score=additive"], "attention.score: additive", "scaled-dot"),
        (["attention=none", "decoder.start=source"], "attention.score: none", "scaled-dot"),
        (["attention.scope=local-monotonic"], "attention.scope: local-monotonic", "global"),
        (["attention.normaliser=sparsemax"], "attention.normaliser: sparsemax", "softmax"),
        (["attention.choice=hard"], "attention.choice: hard", "soft"),
        (["attention.temperature=2"], "attention.temperature: 2.0", "1"),
        (["attention.heads=2"], "attention.heads: 2", "as many as decoder.heads (4)"),
        (["attention.heads=1", "decoder.heads=1"], "attention.heads: 1", "2 and more"),
        (["decoder.start=source"], "decoder.start: source", "none"),
        (["decoder.every_step=source"], "decoder.every_step: source", "none"),
        (["decoder.copy_from=source", "inputs.source.tokens=symbol"], "decoder.copy_from: source", "none"),
        (["decoder.memory=3"], "decoder.memory: 3", "none"),
        (["decoder.tied=false", "decoder.readout=7"], "decoder.readout: 7", "0"),
        (["decoder.embedding.size=8"], "decoder.embedding.size: 8", "decoder.size (32)"),
        (["loss.ctc=0.3", "search.ctc=0.3", "search.beam=2"], "search.ctc: 0.3", "0"),
        (["inputs.source.kind=texts", "encoder.kind=hierarchical"], "inputs.source.kind: texts", "text"),
        (["output.kind=label"], "output.kind: label", "text"),
    ],
)
def test_what_cannot_be_computed_is_named_by_its_key(overrides: list[str], key: str, allowed: str) -> None:
    (line,) = [line for line in problems(load_recipe(RECIPE, overrides=overrides)) if line.startswith(key)]
    assert line.endswith(allowed) or allowed in line.partition("allowed: ")[2]


@pytest.mark.parametrize("inputs", [{}, {"a": {"kind": "text"}, "b": {"kind": "text"}}])
def test_one_input_is_read(inputs: dict[str, Any]) -> None:
    settings = {**RECIPE, "inputs": inputs} if inputs else {"output": RECIPE["output"], "decoder": RECIPE["decoder"]}
    assert [line for line in problems(load_recipe(settings)) if line.startswith("inputs: ")]


def test_all_shipped_recipes_but_one_are_refused() -> None:
    assert not list(problems(load_recipe("translation-transformer")))
    refused: list[Recipe] = [load_recipe(name) for name in ("translation", "image-captioning", "language-model")]
    assert all(list(problems(recipe)) for recipe in refused)


def test_a_refused_model_leaves_no_folder(table: Path, tmp_path: Path) -> None:
    changes = recipe(attention={"score": "additive"})
    model = api.train(changes, table, out=tmp_path / "run", updates=1, listeners=[])
    with pytest.raises(UserError, match=re.escape("attention.score: additive; allowed: scaled-dot")):
        export(model.bundle, tmp_path / "exported", int8=False)
    assert not (tmp_path / "exported").exists()


# ---------------------------------------------------------------- Folders, command line, docs


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fill(*, fail: bool) -> None:
        with new_folder(tmp_path / "new" / "folder") as folder:
            (folder / "file").write_text("half", encoding="utf-8")
            if fail:
                raise UserError("the disk is full")

    with pytest.raises(UserError, match="disk"):
        fill(fail=True)
    assert not list((tmp_path / "new").iterdir())
    fill(fail=False)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]
    with pytest.raises(UserError, match="already exists"):
        fill(fail=False)


def test_the_command_says_what_it_cannot_do(call: Commands, table: Path, tmp_path: Path) -> None:
    api.train(recipe(decoder={"start": "source"}), table, out=tmp_path / "run", updates=1, listeners=[])
    done = call("export", tmp_path / "run", "--to", "ctranslate2", "--out", tmp_path / "exported")
    assert (done.code, done.out) == (2, "")
    assert "decoder.start: source; allowed: none" in done.err
    assert call("export", tmp_path / "run", "--to", "paper", "--out", tmp_path / "exported").code == 2


def test_the_page_about_it_is_true(engine: Any, call: Commands, here: Path, table: Path) -> None:
    """The commands and the script of docs/export.md, with a smaller model of the same recipe."""
    page = (DOCS / "export.md").read_text("utf-8")
    small = [
        f"{key}=16" for key in ("encoder.size", "encoder.embedding.size", "decoder.size", "decoder.embedding.size")
    ]
    api.train(
        "translation-transformer",
        table,
        columns=["word", "reversed"],
        out=Path("runs/translation-transformer"),
        updates=2,
        overrides=[*small, "search.beam=1"],
        listeners=[],
    )
    commands = re.findall(r"^seq2see (export .* --to ctranslate2 .*)$", page, flags=re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = call(*command.split())
        assert done.code == 0, done.err
    scripts = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    (script,) = [each for each in scripts if "import ctranslate2" in each]
    (here / "translate.py").write_text(script, encoding="utf-8")
    text, score = call.script(here / "translate.py").lines
    model = api.load("runs/translation-transformer")
    with pytest.warns(Notice, match="not known to the model"):
        own = model.predict(re.findall(r'"(A .*)"', script)[0], replace_unknown=False)
    assert text == own.text
    assert float(score) == pytest.approx(own.score, abs=0.2)  # a new model finds <pad> and <sos> as likely as others
