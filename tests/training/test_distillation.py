"""Distillation: the term equals its equation and its gradient the closed form; students learn what teachers know."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.losses import Objective, divergence, targets_of, teacher_log_probs
from tests.system.small import RecordingListener, write_table
from tests.training.tiny import ROWS, last_checkpoint, rows_of, run, same, words

QUICK = ["training.film=0", "training.report_every=500"]
PLAIN = [*QUICK, "encoder.dropout=0", "decoder.dropout=0", "encoder.size=16", "decoder.size=16"]
WORDS = ["abc", "ba", "cab", "a"]
LABEL: dict[str, Any] = {
    "task": "first",
    "inputs": {"source": {"tokens": "character"}},
    "output": {"kind": "label"},
    "encoder": {"size": 8, "embedding": {"size": 4}},
    "decoder": {"size": 8},
    "training": {"threads": 1, "samples": 0, "epochs": 0, "learning_rate": 0.05, "batch_tokens": 100, "film": 0},
}


def probabilities(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(6, 5))
    return logits, np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_the_divergence_is_that_of_the_softened_distributions(temperature: float) -> None:
    (_, p), (logits, _) = probabilities(1), probabilities(2)
    soft_p = p ** (1 / temperature) / (p ** (1 / temperature)).sum(-1, keepdims=True)
    soft_q = np.exp(logits / temperature) / np.exp(logits / temperature).sum(-1, keepdims=True)
    student = torch.tensor(logits, requires_grad=True)
    found = divergence(torch.tensor(p).log(), torch.log_softmax(student, -1), temperature=temperature)
    np.testing.assert_allclose(found.detach(), (soft_p * np.log(soft_p / soft_q)).sum(-1), rtol=1e-9)
    (temperature**2 * found).sum().backward()
    assert student.grad is not None
    np.testing.assert_allclose(student.grad, temperature * (soft_q - soft_p), rtol=1e-7, atol=1e-12)


def test_what_is_impossible_for_both_adds_nothing() -> None:
    teacher, student = torch.tensor([[0.0, 0.4, 0.6]]).log(), torch.tensor([[0.0, 0.5, 0.5]]).log()
    expected = 0.4 * np.log(0.4 / 0.5) + 0.6 * np.log(0.6 / 0.5)
    assert divergence(teacher, student).item() == pytest.approx(expected, rel=1e-5)


def models(raw: dict[str, Any], rows: list[dict[str, str]], **distillation: Any) -> tuple[list[Bundle], Any]:
    """A student and two teachers with random weights."""
    recipe = load_recipe(raw)
    fields = Fields.build(recipe, lambda: iter(rows))
    bundles = []
    for seed in (3, 4, 5):
        torch.manual_seed(seed)
        bundles.append(Bundle.create(recipe, fields))
        bundles[-1].network.eval()
    told = copy.deepcopy(raw)
    told.setdefault("loss", {})["distillation"] = {"teachers": ["one", "two"], **distillation}
    return bundles, load_recipe(told).loss


@pytest.mark.parametrize("kind", ["text", "label"])
def test_the_loss_is_the_mean_teachers_divergence_beside_the_outputs(kind: str) -> None:
    raw = ROWS if kind == "text" else {**LABEL, "loss": {"class_weights": {"a": 2.0, "b": 0.5, "c": 1.0}}}
    rows = [{"source": word, "output": word if kind == "text" else word[0]} for word in WORDS]
    bundles, settings = models(raw, rows, weight=0.3, temperature=2.0)
    student, *teachers = (bundle.network for bundle in bundles)
    fields = bundles[0].fields
    batch = fields.batch(rows, target=True)
    targets, mask = targets_of(batch)
    objective = Objective(settings, fields, teachers=teachers)
    found = objective(student, batch)
    alone = Objective(settings, fields)(student, batch)

    with torch.no_grad():
        each = [model.log_probs(*model.forward_batch(batch)).exp() for model in (student, *teachers)]
    q, p = each[0][mask] ** 0.5, ((each[1] + each[2]) / 2)[mask] ** 0.5
    q, p = q / q.sum(-1, keepdim=True), p / p.sum(-1, keepdim=True)
    terms = (p * (p / q).log()).sum(-1)
    if objective.weights is not None:
        terms = terms * objective.weights[targets[mask]]
    assert found.terms["distillation"] == pytest.approx(0.3 * 4 * terms.sum().item(), rel=1e-4)
    assert found.total.item() == pytest.approx(0.7 * alone.total.item() + found.terms["distillation"], rel=1e-4)
    assert (found.count, found.targets) == (alone.count, alone.targets)


def test_the_gradient_is_that_of_finite_differences() -> None:
    rows = [{"source": word, "output": word} for word in WORDS]
    bundles, settings = models(ROWS, rows, weight=1.0)
    for bundle in bundles:
        bundle.network.double()
    student, *teachers = (bundle.network for bundle in bundles)
    batch = bundles[0].fields.batch(rows, target=True)
    objective = Objective(settings, bundles[0].fields, teachers=teachers)
    parameter = next(value for name, value in student.named_parameters() if name == "head.c")
    (gradient,) = torch.autograd.grad(objective(student, batch).total, parameter)
    for place in (2, 5):
        ends = []
        for step in (1e-3, -2e-3):
            with torch.no_grad():
                parameter[place] += step
                ends.append(objective(student, batch).total.item())
        with torch.no_grad():
            parameter[place] += 1e-3
        assert gradient[place].item() == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-3)
    assert all(value.grad is None for model in teachers for value in model.parameters())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two trained teachers and their table."""
    folder = tmp_path_factory.mktemp("teachers")
    data = words(folder / "words.tsv", count=100)
    for seed in (1, 2):
        run(ROWS, data, folder / f"teacher-{seed}", PLAIN, updates=80, seed=seed)
    return folder


def student(trained: Path, out: Path, overrides: list[str], *names: str, **given: Any) -> Model:
    given.setdefault("listeners", [RecordingListener()])
    teachers = [trained / name for name in names or ("teacher-1", "teacher-2")]
    return seq2see.distill(teachers, trained / "words.tsv", out=out, overrides=overrides, **given)


def distance(one: Model, other: Model, rows: list[dict[str, str]]) -> float:
    """The mean divergence of the second model from the first."""
    batch = one.bundle.fields.batch(rows, target=True)
    mask = targets_of(batch)[1]
    first, second = (teacher_log_probs([model.bundle.network], batch)[mask] for model in (one, other))
    return float(divergence(first, second).mean())


def test_a_student_of_one_teacher_becomes_like_it(trained: Path, tmp_path: Path) -> None:
    whole = ["loss.distillation.weight=1"]
    first = student(trained, tmp_path / "first", whole, "teacher-1", updates=1, seed=9)
    last = student(trained, tmp_path / "last", whole, "teacher-1", updates=150, seed=9)
    teacher, rows = seq2see.load(trained / "teacher-1"), [{"source": "abd", "output": "abd"}] * 2
    assert last.recipe.decoder == teacher.recipe.decoder
    assert distance(teacher, last, rows) < 0.2 * distance(teacher, first, rows)


def test_another_recipe_reads_and_writes_as_the_teachers_do(trained: Path, tmp_path: Path) -> None:
    other = {**ROWS, "inputs": {"source": {"tokens": "word"}}, "attention": "none", "decoder": {"size": 5}}
    told = RecordingListener()
    made = student(trained, tmp_path / "out", [], recipe=other, updates=2, listeners=[told])
    assert (made.recipe.decoder.size, made.recipe.inputs["source"].tokens) == (5, "character")
    assert any("inputs.source.tokens" in note for note in told.notes)
    assert made.bundle.fields.output.vocabulary == seq2see.load(trained / "teacher-1").bundle.fields.output.vocabulary


def test_a_killed_run_goes_on_with_the_same_teachers_alone(trained: Path, tmp_path: Path) -> None:
    for name in ("teacher-1", "teacher-2"):
        shutil.copytree(trained / name, tmp_path / name)
    shutil.copy(trained / "words.tsv", tmp_path)
    steady = ["training.schedule=constant", "training.warmup=0"]
    student(tmp_path, tmp_path / "whole", steady, updates=9)
    student(tmp_path, tmp_path / "parts", steady, updates=4)
    resumed: dict[str, Any] = {"out": tmp_path / "parts", "resume": True, "listeners": [RecordingListener()]}
    seq2see.train(None, updates=9, **resumed)
    assert same(last_checkpoint(tmp_path / "parts").weights, last_checkpoint(tmp_path / "whole").weights)
    with pytest.raises(UserError, match=r"loss\.distillation\.teachers"):
        seq2see.train(None, updates=14, overrides=["loss.distillation.teachers=[]"], **resumed)
    shutil.copy(tmp_path / "teacher-1" / "model.safetensors", tmp_path / "teacher-2" / "model.safetensors")
    with pytest.raises(UserError, match="teacher-2: changed"):
        seq2see.train(None, updates=14, **resumed)


def test_answers_of_the_teachers_take_the_place_of_outputs(trained: Path, tmp_path: Path) -> None:
    unlabelled = [{"source": word} for word in ("dddd", "abca", "ab", "dddd")]  # `ab` is labelled
    made = student(trained, tmp_path / "out", [], unlabelled=unlabelled, real_share=0.0, updates=2)
    rows = rows_of(tmp_path / "out" / "data" / "train.jsonl")
    ensemble = seq2see.load(f"{trained / 'teacher-1'}+{trained / 'teacher-2'}")
    asked = [row["source"] for row in rows]
    answers = ensemble.predict(asked, beam=5, n_best=1, avoid_unknown=True)
    assert [row["output"] for row in rows] == [answer.text for answer in answers]
    assert [word for word in asked if len(word) == 4] == ["dddd", "abca"]
    assert all(row["source"] == row["output"] for row in rows_of(tmp_path / "out" / "data" / "dev.jsonl"))
    assert made.recipe.loss.distillation.weight == 0.5
    assert "distillation" in made.describe().text()


def test_labels_are_distilled(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"source": a + b, "output": a} for a in "abc" for b in "abcdefgh"]
    data = write_table(tmp_path / "labels.tsv", rows)
    run(LABEL, data, tmp_path / "teacher", ["training.report_every=40"], updates=40)
    quiet = [RecordingListener()]
    made = seq2see.distill(tmp_path / "teacher", data, out=tmp_path / "out", updates=40, listeners=quiet)
    assert made.evaluate([dict(row) for row in rows]).metrics["accuracy"] > 0.8


# ---------------------------------------------------------------- misuse


def test_a_student_does_not_replace_its_teacher(trained: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "teacher-1", trained / "words.tsv"
    shutil.copytree(trained / "teacher-1", out)
    shutil.copytree(trained / "teacher-1", out / "teacher")
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    refused = pytest.raises(UserError, match=r"loss\.distillation\.teachers: .*teacher")
    quiet: dict[str, Any] = {"updates": 1, "overwrite": True, "listeners": [RecordingListener()]}
    with refused:
        seq2see.distill(f"{out}+{trained / 'teacher-2'}", data, out=out, real_share=0.5, **quiet)
    rows = [{"source": word, "output": word} for word in WORDS]
    taught = [f"loss.distillation.teachers=[{out}]"]
    with refused:
        run(ROWS, rows, out, taught, **quiet)  # type: ignore[arg-type]
    with refused:
        run(ROWS, data, out, [f"loss.distillation.teachers=[{out / 'teacher'}]"], unlabelled=rows, **quiet)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files


def test_teachers_that_cannot_teach_are_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        student(trained, tmp_path / "out", [], "teacher-3", updates=1)
    with pytest.raises(UserError, match="--real-share"):
        student(trained, tmp_path / "out", [], real_share=1.5, updates=1)
    with pytest.raises(UserError, match="already holds a run"):
        student(trained, trained / "teacher-2", [], "teacher-1", updates=1)
    with pytest.raises(UserError, match="beam"):
        student(trained, tmp_path / "out", [], beam=3, updates=1)
    taught = f"loss.distillation.teachers=[{trained / 'teacher-1'}]"
    with pytest.raises(UserError, match=r"inputs\.source\.tokens"):
        run({**ROWS, "inputs": {"source": {"tokens": "word"}}}, trained / "words.tsv", tmp_path / "o", [taught])
    assert not (tmp_path / "out").exists()
