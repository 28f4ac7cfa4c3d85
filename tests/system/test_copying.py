"""Names no vocabulary has: a model that copies greets strangers, and one that does not cannot."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.errors import UserError
from seq2see.search import score_targets
from tests.system.small import write_table

WAYS = ["my name is {}", "{} is my name", "I am {} today", "they call me {}"]
RECIPE: dict[str, Any] = {
    "task": "greeting",
    "inputs": {"source": {"min_count": 3}},
    "output": {"min_count": 3},
    "encoder": {"size": 12, "embedding": {"size": 12}},
    "attention": {"size": 16},
    "decoder": {"size": 24, "embedding": {"size": 12}, "start": "source", "copy_from": "source"},
    "training": {"learning_rate": 0.02, "dev_rows": 20, "threads": 1, "samples": 0, "report_every": 1000},
    "evaluation": {"metrics": ["exact"]},
    "search": {"max_length": 5},
}


def greetings(draw: random.Random, count: int) -> list[dict[str, str]]:
    """Every name is a new one."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = {"".join(draw.choices(letters, k=6)).capitalize(): None for _ in range(count)}
    return [{"source": draw.choice(WAYS).format(name), "output": f"hello {name}"} for name in names]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, draw = tmp_path_factory.mktemp("greeting"), random.Random(4)
    write_table(path / "train.tsv", greetings(draw, 500))
    write_table(path / "test.tsv", greetings(draw, 60))
    return path


def trained(folder: Path, name: str, *overrides: str) -> Model:
    out = folder / name
    seq2see.train(RECIPE, folder / "train.tsv", out=out, updates=100, overrides=list(overrides), listeners=[])
    return seq2see.load(out)


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return trained(folder, "copying")


@pytest.fixture(scope="module")
def plain(folder: Path) -> Model:
    return trained(folder, "plain", "decoder.copy_from=none")


@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_only_a_model_that_copies_greets_strangers(model: Model, plain: Model, folder: Path) -> None:
    assert model.evaluate(folder / "test.tsv").metrics["exact"] >= 0.9
    assert plain.evaluate(folder / "test.tsv").metrics["exact"] == 0


@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_a_copied_word_is_known_to_all_that_tells_of_it(model: Model) -> None:
    prediction = model.predict("my name is Xqz", beam=2)
    assert prediction.text == "hello Xqz"
    assert [token.text for token in prediction.tokens] == ["hello", "Xqz", "<eos>"]
    assert prediction.tokens[1].runners_up[0] == ("Xqz", prediction.tokens[1].probability)
    assert prediction.looks.outputs == ["hello", "Xqz", "<eos>"]
    assert prediction.looks.weights[1].argmax() == 3

    followed = model.look("my name is Xqz", target="hello Xqz")
    assert followed.log_probability == pytest.approx(prediction.log_probability, abs=1e-4)
    (scored,) = model.score([{"source": "my name is Xqz", "output": "hello Xqz"}]).each
    assert scored.symbols == ["hello", "Xqz", "<eos>"]
    assert scored.log_probability == pytest.approx(prediction.log_probability, abs=1e-4)
    unlikely = model.score([{"source": "my name is Xqz", "output": "hello Abc"}]).each[0]
    assert unlikely.symbols == ["hello", "<unk>", "<eos>"]
    assert unlikely.log_probability < scored.log_probability - 1
    assert model.predict(["my name is Xqz", "I am Abc today"], prefix="Xqz")[0].text.startswith("Xqz")
    together = Model([model.bundle, model.bundle]).predict("my name is Xqz")
    assert together.text == "hello Xqz"


@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_show_and_explain_tell_how(model: Model) -> None:
    assert "(1 - g) sum_{j: x_j = y_t} a_tj (x: source);  g = sigmoid(w_g'" in model.describe().text()
    written, copied = (model.explain("my name is Xqz", step=step) for step in (0, 1))
    assert written.generating is not None
    assert copied.generating is not None
    assert written.generating > 0.5 > copied.generating
    assert copied.writes == "Xqz"
    assert copied.probability == pytest.approx((1 - copied.generating) * copied.looks[0].weights[3], abs=1e-3)

    assert (
        f"         g = {copied.generating:.4f} from the vocabulary, {1 - copied.generating:.4f} copied" in copied.text()
    )
    assert copied.to_dict()["generating"] == copied.generating


def test_what_is_said_of_words_the_model_does_not_know(model: Model) -> None:
    """A name in the input can be written, though it is read as unknown; one from elsewhere cannot."""
    with pytest.warns(seq2see.errors.Notice) as caught:
        model.look("my name is Xqz", target="hello Abc Xqz")
    messages = [str(warning.message) for warning in caught]
    assert any(line.startswith("target: 'Abc' ") for line in messages)
    assert not any(line.startswith("target") and "Xqz" in line for line in messages)


def test_models_that_copy_differently_are_no_ensemble(model: Model, plain: Model) -> None:
    with pytest.raises(UserError, match=r"decoder\.copy_from"):
        Model([model.bundle, plain.bundle])


@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_leaving_out_the_name_is_what_matters_to_a_copied_word(model: Model) -> None:
    """What can be copied is left out with its place: without the name there is nothing left to copy."""
    row = {"source": "my name is Xqz", "output": "hello Xqz"}
    batch = model.bundle.fields.batch([row] * 4, target=True)
    column = model.bundle.fields.inputs["source"].occlusion(batch.inputs["source"]).without(torch.arange(4))
    assert column.copyable is not None
    kept = [(row["source"].split()[:j] + row["source"].split()[j + 1 :]) for j in range(4)]
    known, words = model.bundle.fields.output.vocabulary, (column.copyable.words or [])[0]
    assert [known.decode(ids, words) for ids in column.copyable.ids.tolist()] == kept
    batch.inputs["source"] = column
    name = [scored_target.log_probs[1] for scored_target in score_targets(model.bundle.network, batch)]
    assert name[3] < min(name[:3]) - 10


def test_names_are_copied_from_documents(tmp_path: Path) -> None:
    """The one sentence with a name stands anywhere; the model says the name, which no vocabulary has."""
    draw = random.Random(5)
    rows = greetings(draw, 560)
    fill = ["it rains today", "we are late", "is this the way"]
    for row in rows:
        sentences = [row["source"], *draw.sample(fill, 2)]
        draw.shuffle(sentences)
        row["source"] = " ||| ".join(sentences)
    write_table(tmp_path / "train.tsv", rows[:500])
    write_table(tmp_path / "test.tsv", rows[500:])
    recipe = {
        **RECIPE,
        "inputs": {"source": {"kind": "texts", "sentences": "|||", "min_count": 3}},
        "encoder": {"kind": "hierarchical", "size": 12, "embedding": {"size": 12}},
        "attention": {"over": "source.words", "through": "sentences", "size": 16},
    }
    out = tmp_path / "run"
    seq2see.train(recipe, tmp_path / "train.tsv", out=out, updates=120, listeners=[])
    model = seq2see.load(out)
    assert model.evaluate(tmp_path / "test.tsv").metrics["exact"] > 0.8
    scored = model.score(tmp_path / "test.tsv")
    assert scored is not None
    column = model.bundle.fields.batch([{"source": rows[0]["source"]}]).inputs["source"]
    faithful = model.bundle.fields.inputs["source"].occlusion(column, "words")
    fewer = faithful.without(torch.tensor([0]))
    assert fewer.copyable.ids.shape[1] == faithful.count - 1
