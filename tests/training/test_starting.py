"""Going on from another model, what is refused before the first update, and learning with half the bits."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
import torch

import seq2see
from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.training.fine_tuning import fine_tuning_recipe
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, run, same, weights, words


def test_fine_tuning_begins_where_the_other_model_ended(tmp_path: Path) -> None:
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "base", updates=20)
    base = seq2see.load(tmp_path / "base")
    before = {name: tensor.clone() for name, tensor in weights(tmp_path / "base").items()}
    other = tmp_path / "other.tsv"
    lines = ["source\toutput", *(f"{a}z{b}\t{a}z{b}" for a in "abcd" for b in "abcd")]
    other.write_text("\n".join(lines), encoding="utf-8")

    still = ["training.learning_rate=1e-12"]
    run(None, other, tmp_path / "still", still, start=base, updates=2)
    moved = weights(tmp_path / "still")
    assert all(torch.allclose(moved[name], before[name], atol=1e-9) for name in before)

    tuned = run(None, other, tmp_path / "tuned", start=tmp_path / "base", updates=20)
    assert not same(weights(tmp_path / "tuned"), before)
    assert tuned.bundle.fields.output.vocabulary == base.bundle.fields.output.vocabulary
    assert "z" not in tuned.bundle.fields.output.vocabulary.symbols


def test_fine_tuning_leaves_the_model_it_began_from_alone(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    base = run(ROWS, data, tmp_path / "base", updates=5)
    before = {name: parameter.clone() for name, parameter in base.bundle.network.named_parameters()}
    run(None, data, tmp_path / "tuned", start=base, updates=10)
    assert all(torch.equal(before[name], parameter) for name, parameter in base.bundle.network.named_parameters())


OTHER = {"decoder.size=12": "6, got 12", "attention.score=additive": "general, got additive"}
OTHER |= {"encoder.cell=lstm": "gru, got lstm", "encoder.embedding.size=5": "4, got 5"}


@pytest.mark.parametrize("change", OTHER)
def test_fine_tuning_refuses_other_parts(tmp_path: Path, change: str) -> None:
    data = words(tmp_path / "words.tsv")
    run({**ROWS, "attention": {"score": "general"}}, data, tmp_path / "base", updates=1)
    with pytest.raises(UserError, match=f"{change.split('=')[0]}: the model has {OTHER[change]}; --from"):
        run(None, data, tmp_path / "tuned", [change], start=tmp_path / "base", updates=1)


def test_what_the_recipe_says_otherwise_comes_from_the_model_and_is_said(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "base", updates=1)
    told = RecordingListener()
    other = {
        **ROWS,
        "decoder": {**ROWS["decoder"], "size": 12, "dropout": 0.4},
        "attention": {"score": "general"},
        "training": {**ROWS["training"], "clip": 0.5},
    }
    tuned = run(other, data, tmp_path / "tuned", start=tmp_path / "base", updates=1, listeners=[told])
    [note] = [note for note in told.notes if "that is fine-tuned" in note]
    assert "decoder.size 6 (the recipe: 12)" in note
    assert "attention.score dot (the recipe: general)" in note
    recipe = seq2see.load(tmp_path / "tuned").recipe
    assert recipe == tuned.recipe
    assert (recipe.decoder.size, recipe.attention.score) == (6, "dot")
    assert (recipe.decoder.dropout, recipe.training.clip) == (0.4, 0.5)


def test_the_models_own_recipe_needs_no_word(tmp_path: Path) -> None:
    base = run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "base", updates=1).recipe
    assert fine_tuning_recipe(base, base, []) == (base, [])


def test_a_student_is_fine_tuned_without_its_teachers() -> None:
    student = load_recipe({**ROWS, "loss": {"distillation": {"teachers": ["/gone/a"], "weight": 0.7}}})
    tuned, [note] = fine_tuning_recipe(student, student, [], own=True)
    assert tuned == load_recipe(ROWS)
    assert "/gone/a" in note
    assert fine_tuning_recipe(student, student, []) == (student, [])  # a recipe that names them
    changed = ["loss.distillation.weight=0.2"]
    again = load_recipe(student, overrides=changed)
    assert fine_tuning_recipe(student, again, changed, own=True) == (again, [])


def test_the_file_in_the_models_folder_is_its_own_recipe(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "base", updates=1)
    taught = [f"loss.distillation.teachers=[{tmp_path / 'base'}]"]
    run(ROWS, data, tmp_path / "student", taught, updates=1)
    shutil.move(tmp_path / "base", tmp_path / "moved")
    for recipe in (None, tmp_path / "student" / "recipe.yaml"):
        tuned = run(recipe, data, tmp_path / "tuned", start=tmp_path / "student", updates=1, overwrite=True)
        assert not tuned.recipe.loss.distillation.teachers


def test_the_whole_is_checked_like_any_recipe() -> None:
    """A recipe with attention may replace unknown words; the model it goes on from has nothing to look with."""
    blind = load_recipe({**ROWS, "attention": "none"})
    replacing = load_recipe({**ROWS, "search": {"replace_unknown": True}})
    with pytest.raises(UserError, match=r"search\.replace_unknown: has no effect here"):
        fine_tuning_recipe(blind, replacing, [])


def test_another_task_is_refused() -> None:
    text = load_recipe(ROWS)
    label = load_recipe({"inputs": {"source": {}}, "output": {"kind": "label"}})
    with pytest.raises(UserError, match=r"--from: the recipe's output\.kind is label, and the model writes a text"):
        fine_tuning_recipe(text, label, [])
    two = load_recipe({"inputs": {"source": {}, "more": {}}})
    with pytest.raises(UserError, match=r"--from: the recipe's inputs are source, more, and those of the model are so"):
        fine_tuning_recipe(text, two, [])


def test_bfloat16_learns_and_is_measured_in_whole_numbers(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    how = ["training.precision=bfloat16", "training.report_every=40", "encoder.dropout=0", "decoder.dropout=0"]
    run(ROWS, data, tmp_path / "half", how, updates=120, listeners=[RecordingListener()])
    losses = [line["loss"] for line in journal(tmp_path / "half")]
    assert losses[-1] < 0.8 * losses[0]
    assert {tensor.dtype for tensor in weights(tmp_path / "half").values()} == {torch.float32}

    model = seq2see.load(tmp_path / "half")
    whole = seq2see.load(tmp_path / "half")
    whole.bundle.recipe.training.precision = "float32"
    assert model.score(data).log_probability == whole.score(data).log_probability
    assert model.score(data).perplexity < math.exp(losses[0])


def test_a_language_model_that_cannot_be_used_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    data, ngrams = words(tmp_path / "words.tsv"), tmp_path / "other.arpa"
    ngrams.write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3\tq\n-0.3\t</s>\n\n\\end\\\n", encoding="utf-8")
    for wrong in (tmp_path / "nowhere", ngrams):
        with pytest.raises(UserError, match=rf"search\.language_model: .*{wrong.name}"):
            run(ROWS, data, tmp_path / "out", [f"search.language_model={wrong}"], updates=1)
        assert not list((tmp_path / "out").glob("*.*"))
    ngrams.write_text(
        ngrams.read_text("utf-8").replace("=2", "=5").replace("q", "a\n-0.9\tb\n-0.9\tc\n-0.9\td"), "utf-8"
    )
    model = run(ROWS, data, tmp_path / "out", [f"search.language_model={ngrams}"], updates=1)
    assert not model.bundle.language_models
