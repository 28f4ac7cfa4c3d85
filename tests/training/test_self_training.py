"""Rows without outputs: only confident answers are learned, dev rows stay real, finished stages are not repeated."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.data.batches import Sequences, pad_lists
from seq2see.data.vocabulary import UNK
from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.recipe.schema import NoiseSettings
from seq2see.training.dataset import read_corpus
from seq2see.training.denoising import NOISE, Pretraining
from seq2see.training.losses import noised
from seq2see.training.self_training import STAGES
from seq2see.training.unlabelled import read_labelled
from tests.commands import Run
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, rows_of, run, same, weights, words

QUICK = ["training.film=0", "training.report_every=500"]
PLAIN = [*QUICK, "encoder.dropout=0", "decoder.dropout=0", "encoder.size=16", "decoder.size=16"]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """Labelled words, and longer ones without outputs."""
    draw = random.Random(5)
    more = ["".join(draw.choices("abcd", k=4)) for _ in range(40)]
    return {"data": words(tmp_path / "words.tsv", count=100), "unlabelled": [{"source": word} for word in more]}


def test_only_confident_answers_are_learned(tmp_path: Path, tables: dict[str, Any]) -> None:
    told, out = RecordingListener(), tmp_path / "out"
    quiet = [*PLAIN, "training.learning_rate=0.02"]
    run(ROWS, tables["data"], out, quiet, unlabelled=tables["unlabelled"], confidence=0.7, updates=90, listeners=[told])
    teacher = seq2see.load(out / "teacher")
    asked = list(dict.fromkeys(row["source"] for row in tables["unlabelled"]))
    answers = teacher.predict(asked, beam=5, n_best=1, avoid_unknown=True)
    sure = {}
    for word, answer in zip(asked, answers, strict=True):
        product = torch.tensor([token.probability for token in answer.tokens], dtype=torch.float64).prod()
        if answer.tokens[-1].text == "<eos>" and float(product) ** (1 / len(answer.tokens)) >= 0.7:
            sure[word] = answer.text
    learned = {row["source"]: row["output"] for row in rows_of(out / "data" / "train.jsonl") if len(row["source"]) == 4}
    assert 0 < len(sure) < len(asked)
    assert learned == sure
    assert any(f"{len(sure)} of {len(asked)} rows" in note for note in told.notes)
    assert all(row["source"] == row["output"] for row in rows_of(out / "data" / "dev.jsonl"))
    dev = {row["source"] for row in rows_of(out / "data" / "dev.jsonl")}
    assert not dev & {row["source"] for row in rows_of(out / "data" / "train.jsonl")}


def test_a_killed_run_goes_on_with_the_stage_it_was_in(tmp_path: Path, tables: dict[str, Any]) -> None:
    given = {"unlabelled": tables["unlabelled"], "confidence": 0.0, "pretrain": 0.5, "updates": 8}

    class Killed(RecordingListener):
        """Ends the run when it says so much."""

        def __init__(self, word: str):
            super().__init__()
            self.word = word

        def on_message(self, message: str) -> None:
            super().on_message(message)
            if self.word in message:
                raise KeyboardInterrupt

    run(ROWS, tables["data"], tmp_path / "whole", PLAIN, **given)
    out = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        run(ROWS, tables["data"], out, PLAIN, **given, listeners=[Killed("of decoder")])
    assert (out / "pretraining" / "encoder" / "model.safetensors").is_file()
    resumed: dict[str, Any] = {"out": out, "resume": True}
    with pytest.raises(KeyboardInterrupt):
        seq2see.train(None, **resumed, listeners=[Killed("unlabelled:")])
    before = (out / "teacher" / "metrics.jsonl").stat().st_mtime_ns
    told = RecordingListener()
    seq2see.train(None, **resumed, listeners=[told])
    assert (out / "teacher" / "metrics.jsonl").stat().st_mtime_ns == before
    assert sum("already" in note for note in told.notes) == 2
    for stage in ("pretraining", "teacher", "."):
        assert same(weights(out / stage), weights(tmp_path / "whole" / stage)), stage
    seq2see.train(None, **resumed, updates=10, listeners=[told])  # the last stage is a run like any other
    assert journal(out)[-1]["update"] == 10


def test_the_model_begins_with_the_weights_of_the_autoencoders(tmp_path: Path, tables: dict[str, Any]) -> None:
    out, still = tmp_path / "out", [*PLAIN, "training.learning_rate=1e-12"]
    made = run(ROWS, tables["data"], out, still, pretrain=0.5, updates=4, unlabelled=None)
    parts = {half: weights(out / "pretraining" / half) for half in ("encoder", "decoder")}
    for name, tensor in weights(out).items():
        half = "encoder" if name.startswith("encoders.") else "decoder"
        assert torch.allclose(tensor, parts[half][name], atol=1e-9), name
    assert made.recipe.training.noise == NoiseSettings()
    assert seq2see.load(out / "pretraining" / "encoder").recipe.training.noise == NoiseSettings(**NOISE)
    assert not (out / "teacher").exists()
    inputs = {row["source"] for row in rows_of(out / "pretraining" / "encoder" / "data" / "train.jsonl")}
    dev = [row for row in words_of(tables["data"]) if row not in inputs]
    assert dev  # rows set aside are not learned by heart either


def words_of(path: Path) -> list[str]:
    return [line.split("\t")[0] for line in path.read_text("utf-8").splitlines()[1:]]


def test_autoencoders_are_of_what_the_model_has() -> None:
    shared = load_recipe({**ROWS, "output": {"tokens": "character", "share": "source"}})
    assert Pretraining(shared, ["ab"], ["cd"], 0.5).halves == ["both"]
    label = load_recipe({**ROWS, "output": {"kind": "label"}, "decoder": {"size": 6}, "search": {}, "evaluation": {}})
    pretraining = Pretraining(label, ["ab"], ["x"], 0.5)
    assert pretraining.halves == ["encoder"]
    made = pretraining.autoencoder("encoder")
    assert (made.output.kind, made.encoder) == ("text", label.encoder)
    fitted = Pretraining(load_recipe({**ROWS, "encoder": {"size": "auto"}, "attention": "none"}), ["ab"], ["cd"], 0.5)
    assert fitted.fit().fitted["encoder.size"]
    assert fitted.autoencoder("encoder").encoder.size == fitted.recipe.encoder.size
    copying = load_recipe({**ROWS, "decoder": {**ROWS["decoder"], "copy_from": "source"}})
    assert Pretraining(copying, ["ab"], ["cd"], 0.5).autoencoder("decoder").copied_from is None


# ---------------------------------------------------------------- noise

TEXTS = [[5, 6, 7, 8, 9, 10, 11, 12], [5, 6], [13]]


def lists(column: Sequences) -> list[list[int]]:
    return [row[real].tolist() for row, real in zip(column.ids, column.mask, strict=True)]


def many(settings: NoiseSettings) -> list[list[list[int]]]:
    torch.manual_seed(1)
    return [lists(noised(pad_lists(TEXTS, eos=False), settings)) for _ in range(300)]


def test_noise_masks_drops_and_swaps_as_many_symbols_as_it_says() -> None:
    masked = many(NoiseSettings(mask=0.3))
    assert all(
        new in (old, UNK)
        for draw in masked
        for row, text in zip(draw, TEXTS, strict=True)
        for new, old in zip(row, text, strict=True)
    )
    assert sum(row.count(UNK) for draw in masked for row in draw) / (300 * 11) == pytest.approx(0.3, abs=0.03)

    dropped = many(NoiseSettings(drop=0.25))
    assert all(
        row and row == [symbol for symbol in text if symbol in row]
        for draw in dropped
        for row, text in zip(draw, TEXTS, strict=True)
    )
    assert sum(len(draw[0]) for draw in dropped) / (300 * 8) == pytest.approx(0.75, abs=0.03)

    swapped = many(NoiseSettings(swap=0.2))
    assert all(sorted(row) == sorted(text) for draw in swapped for row, text in zip(draw, TEXTS, strict=True))
    assert {tuple(draw[1]) for draw in swapped} == {(5, 6), (6, 5)}
    assert all(
        abs(row.index(symbol) - place) <= 1
        for draw in swapped
        for row in draw[:1]
        for place, symbol in enumerate(TEXTS[0])
    )


def test_noise_reaches_training(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "clean", PLAIN, updates=3)
    for key in ("mask", "drop", "swap"):
        run(ROWS, data, tmp_path / key, [*PLAIN, f"training.noise.{key}=0.5"], updates=3)
        assert not same(weights(tmp_path / key), weights(tmp_path / "clean")), key


# ---------------------------------------------------------------- misuse

VECTOR = {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector"}}
MISUSE: list[tuple[Any, dict[str, Any], str]] = [
    (ROWS, {"confidence": 0.5}, "--unlabelled"),
    (ROWS, {"confidence": 1.5, "unlabelled": [{"source": "ab"}]}, "--confidence"),
    (ROWS, {"pretrain": 1.0}, "--pretrain"),
    (ROWS, {"pretrain": 0.5, "start": "model"}, "model"),
    (VECTOR, {"unlabelled": [{"x": "1"}]}, "probability"),
    ({}, {"unlabelled": [{"x": "1"}]}, "language model"),
    ({}, {"pretrain": 0.5}, "language model"),
    ({"inputs": {"photo": {"kind": "image"}}}, {"pretrain": 0.5}, "image"),
    ({"inputs": {"a": {}, "b": {}}}, {"pretrain": 0.5}, "2 inputs"),
    ({"inputs": {"a": {"column": "t"}}, "output": {"column": "t"}}, {"unlabelled": [{"t": "x"}]}, "column"),
]


@pytest.mark.parametrize(("recipe", "given", "word"), MISUSE)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    tmp_path: Path, recipe: Any, given: dict[str, Any], word: str
) -> None:
    with pytest.raises(UserError, match=word):
        run(recipe, words(tmp_path / "words.tsv"), tmp_path / "out", updates=1, **given)
    assert not (tmp_path / "out").exists()


def test_a_threshold_that_nothing_reaches_is_an_error(tmp_path: Path, tables: dict[str, Any]) -> None:
    out = tmp_path / "out"
    with pytest.raises(UserError, match="--confidence 1"):
        run(ROWS, tables["data"], out, PLAIN, unlabelled=tables["unlabelled"], confidence=1.0, updates=2)
    assert (out / "teacher" / "model.safetensors").is_file()
    with pytest.raises(UserError, match="already holds a run"):
        run(ROWS, tables["data"], out, PLAIN, unlabelled=tables["unlabelled"], updates=2)
    (out / STAGES).write_text('{"recipe": 3}')
    with pytest.raises(UserError, match=STAGES):
        seq2see.train(None, out=out, resume=True, listeners=[])


def test_the_commands_take_and_refuse_options(tmp_path: Path, tables: dict[str, Any], call: Callable[..., Run]) -> None:
    recipe, out, more = tmp_path / "recipe.yaml", tmp_path / "out", tmp_path / "more.txt"
    recipe.write_text(json.dumps(ROWS), encoding="utf-8")
    more.write_text("abcd\ndcba\n", encoding="utf-8")
    given = [
        "--data",
        tables["data"],
        "--unlabelled",
        more,
        "--set",
        "training.film=0",
        "--set",
        "training.learning_rate=0.03",
    ]
    done = call("train", recipe, *given, "--confidence", 0, "--pretrain", 0.2, "--updates", 40, "--out", out)
    assert done.code == 0, done.err
    assert "unlabelled: " in done.err
    assert call("train", out, "--resume", "--unlabelled", more).code == 2
    assert call("train", recipe, "--data", tables["data"], "--confidence", 0.5, "--out", tmp_path / "o").code == 2
    student = ["--out", tmp_path / "student", "--updates", 2, "--json"]
    taught = call("distill", f"{out}+{out / 'teacher'}", *given, *student, "--real-share", 0.5, "--beam", 2)
    assert taught.code == 0, taught.err
    assert json.loads(taught.out)["model"] == str(tmp_path / "student")
    assert call("distill", out, "--out", tmp_path / "p").code == 2
    assert call("distill", out, "--data", tables["data"], "--epochs", 0, "--out", tmp_path / "p").code == 2


@pytest.mark.parametrize("stage", [".", "teacher"])
def test_a_run_does_not_replace_the_model_it_starts_from(tmp_path: Path, tables: dict[str, Any], stage: str) -> None:
    out = tmp_path / "out"
    run(ROWS, tables["data"], out / stage, PLAIN, updates=1)
    before = weights(out / stage)
    given = {"start": out / stage, "unlabelled": tables["unlabelled"], "updates": 1, "overwrite": True}
    with pytest.raises(UserError, match=f"--from {out / stage}.*--out {out}"):
        run(None, tables["data"], out, **given)
    assert same(weights(out / stage), before)


def test_the_last_model_is_fitted_as_the_teacher_is(tmp_path: Path, tables: dict[str, Any]) -> None:
    out = tmp_path / "out"
    given = {"unlabelled": tables["unlabelled"], "confidence": 0.0, "updates": 30}
    auto = [*QUICK, "encoder.dropout=auto", "training.learning_rate=0.02"]
    made = run(ROWS, tables["data"], out, auto, **given)
    teacher = seq2see.load(out / "teacher").recipe
    assert teacher.fitted
    assert made.recipe == teacher


def test_several_processes_do_not_resume_stages(
    tmp_path: Path, tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with pytest.raises(UserError, match="--confidence 1"):
        run(ROWS, tables["data"], out, PLAIN, unlabelled=tables["unlabelled"], confidence=1.0, updates=1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match=r"--unlabelled.*2 processes"):
        seq2see.train(None, out=out, resume=True, listeners=[])


def test_dev_rows_are_those_of_a_run_without_stages(tmp_path: Path, tables: dict[str, Any]) -> None:
    recipe = load_recipe(ROWS, overrides=["data.dev_share=0.3"])
    labelled = read_labelled(recipe, tables["data"], None, None)
    corpus = read_corpus(recipe, tables["data"], folder=tmp_path)
    assert [dict(row) for row in labelled.dev] == [dict(row) for row in corpus.dev]


@pytest.mark.parametrize("content", [None, ""])
def test_a_wrong_table_is_refused_before_anything_is_trained(
    tmp_path: Path, tables: dict[str, Any], content: str | None
) -> None:
    table, out = tmp_path / "more.tsv", tmp_path / "out"
    if content is not None:
        table.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"more\.tsv"):
        run(ROWS, tables["data"], out, QUICK, unlabelled=table, updates=2)
    assert not out.exists()


def test_rows_that_are_all_labelled_are_refused_before_the_teacher_is_trained(
    tmp_path: Path, tables: dict[str, Any]
) -> None:
    lines = tables["data"].read_text("utf-8").splitlines()[1:]
    known = [{"source": line.split("\t")[0]} for line in lines]
    with pytest.raises(UserError, match="have inputs of labelled rows"):
        run(ROWS, tables["data"], tmp_path / "out", QUICK, unlabelled=known, updates=2)
    assert not (tmp_path / "out" / "teacher" / "model.safetensors").exists()
