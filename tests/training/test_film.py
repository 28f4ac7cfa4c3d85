"""The film of a run: fixed examples, frames that can be compared, and a run that does not notice."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import seq2see
from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.training import film as frames_module
from seq2see.training.checkpoints import Sources
from seq2see.training.comparing import fingerprint
from seq2see.training.film import FILM, due
from tests.system.small import write_table
from tests.training.test_resume import run_until_signal, with_training
from tests.training.tiny import ROWS, TEXT, last_checkpoint, run, same, text, weights, words


def film(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    head, *frames = [json.loads(line) for line in (folder / FILM).read_bytes().splitlines()]
    return head, frames


def untimed(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in frame.items() if key != "seconds"} for frame in frames]


def test_a_run_is_the_same_to_the_bit_with_and_without_a_film(tmp_path: Path) -> None:
    data, recipe = words(tmp_path / "words.tsv"), with_training(ROWS, updates=25, report_every=10)
    run(recipe, data, tmp_path / "filmed")
    run(recipe, data, tmp_path / "unseen", ["training.film=0"])
    assert same(weights(tmp_path / "filmed"), weights(tmp_path / "unseen"))
    one, other = last_checkpoint(tmp_path / "filmed"), last_checkpoint(tmp_path / "unseen")
    assert same(one.weights, other.weights)
    assert bool((one.random == other.random).all())
    assert not (tmp_path / "unseen" / FILM).exists()
    assert [frame["update"] for frame in film(tmp_path / "filmed")[1]] == [0, 1, 2, 3, 4, 6, 8, 10, 13, 17, 20, 25]


def test_the_last_frame_is_what_the_model_says_and_where_it_looks(tmp_path: Path) -> None:
    data, recipe = words(tmp_path / "words.tsv"), with_training(ROWS, updates=6, report_every=6)
    model = run(recipe, data, tmp_path / "run", dev=words(tmp_path / "dev.tsv", count=20, seed=3))
    head, frames = film(tmp_path / "run")
    assert len(head["examples"]) == 3
    assert len({example["inputs"]["source"] for example in head["examples"]}) == 3
    for example, shown in zip(head["examples"], frames[-1]["examples"], strict=True):
        word = example["inputs"]["source"]
        followed, said = model.look(word, target=example["reference"]), model.predict(word, beam=1)
        assert example["reference"] == word
        assert example["outputs"] == [*word, "<eos>"] == followed.looks.outputs
        assert example["places"] == list(word)
        assert np.allclose(shown["weights"], followed.looks.weights, atol=6e-4)
        assert shown["probabilities"] == [round(token.probability, 3) for token in followed.tokens]
        assert shown["log_probability"] == pytest.approx(followed.log_probability, abs=1e-3)
        assert shown["says"].removesuffix(" …") == said.text
    assert frames[0]["examples"] != frames[-1]["examples"]


def test_a_film_goes_on_where_a_killed_run_left_it(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    recipe = with_training(ROWS, updates=40, report_every=15, checkpoint_every=10)
    run(recipe, data, tmp_path / "whole")
    code, said = run_until_signal(recipe, data, tmp_path / "killed", after=20, number=signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    assert last_checkpoint(tmp_path / "killed").state.updates == 10
    with (tmp_path / "killed" / FILM).open("ab") as file:
        file.write(b'{"update": 18, "exam')
    run(recipe, None, tmp_path / "killed", resume=True)
    (head, frames), (whole, untouched) = film(tmp_path / "killed"), film(tmp_path / "whole")
    assert head == whole
    assert untimed(frames) == untimed(untouched)


def test_other_examples_begin_another_film(tmp_path: Path) -> None:
    data, recipe = words(tmp_path / "words.tsv"), with_training(ROWS, updates=4)
    dev = words(tmp_path / "dev.tsv", count=20, seed=3)
    run(recipe, data, tmp_path / "run", dev=dev)
    run(recipe, None, tmp_path / "run", ["training.film=2", "training.updates=6"], resume=True)
    head, frames = film(tmp_path / "run")
    assert len(head["examples"]) == 2
    assert [frame["update"] for frame in frames] == [4, 6]
    run(recipe, data, tmp_path / "run", overwrite=True)
    assert [frame["update"] for frame in film(tmp_path / "run")[1]] == [0, 1, 2, 3, 4]


def test_what_is_long_is_cut_and_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "PLACES", 5)
    monkeypatch.setattr(frames_module, "STEPS", 4)
    rows = [{"source": f"{'ab' * 6}{number:03}", "output": f"{'ba' * 6}{number:03}"} for number in range(30)]
    run(with_training(ROWS, updates=2), write_table(tmp_path / "long.tsv", rows), tmp_path / "run")
    head, frames = film(tmp_path / "run")
    for example, shown in zip(head["examples"], frames[-1]["examples"], strict=True):
        assert len(example["places"]) == 5
        assert example["outputs"] == list("baba")
        assert example["of"] == [4, 15]
        assert np.shape(shown["weights"]) == (4, 5)
        assert len(shown["probabilities"]) == 4


def test_labels_and_pictures_are_filmed(tmp_path: Path) -> None:
    rows = []
    for number in range(24):
        colour = ("red", "green", "blue")[number % 3]
        Image.new("RGB", (16, 16), colour).save(tmp_path / f"{number}.png")
        rows.append({"image": f"{number}.png", "output": colour})
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 16, "width": 16}},
        "encoder": {"kind": "convolutional", "channels": [4, 8], "size": 8},
        "attention": {"score": "additive", "size": 8},
        "output": {"kind": "label"},
        "decoder": {"kind": "label", "size": 8},
        "training": {"epochs": 0, "updates": 3, "report_every": 3, "threads": 1},
    }
    model = run(recipe, write_table(tmp_path / "colours.tsv", rows), tmp_path / "run")
    content = (tmp_path / "run" / FILM).read_text("utf-8")
    assert str(tmp_path) not in content
    head, frames = film(tmp_path / "run")
    assert head["examples"]
    for example, shown in zip(head["examples"], frames[-1]["examples"], strict=True):
        file = example["inputs"]["image"]
        said = model.predict(str(tmp_path / file))
        assert example["layout"]["kind"] == "grid"
        assert example["picture"].startswith("data:image/png;base64,")
        assert np.allclose(shown["weights"], said.looks.weights, atol=6e-4)
        assert example["outputs"] == [example["reference"]]
        assert shown["says"] == said.label


def test_without_attention_there_is_what_is_said_and_a_reason(tmp_path: Path) -> None:
    recipe = with_training({**ROWS, "attention": "none"}, updates=2)
    run(recipe, words(tmp_path / "words.tsv"), tmp_path / "run")
    head, frames = film(tmp_path / "run")
    assert "without attention" in head["examples"][0]["reason"]
    assert "weights" not in frames[0]["examples"][0]
    assert isinstance(frames[0]["examples"][0]["says"], str)


def test_a_language_model_has_no_film_and_a_setting_for_one_is_refused(tmp_path: Path) -> None:
    run(with_training(TEXT, updates=2), text(tmp_path / "text.txt"), tmp_path / "run")
    assert not (tmp_path / "run" / FILM).exists()
    with pytest.raises(UserError, match=r"training\.film.*a language model has no input"):
        load_recipe(TEXT, overrides=["training.film=2"])
    with pytest.raises(UserError, match=r"training\.film"):
        load_recipe(ROWS, overrides=["training.film=99"])


def test_frames_become_rarer_and_stay_few() -> None:
    for every in (1, 50, 2000):
        taken = [0]
        for update in range(1, 30_001):
            if due(update, taken[-1], reported=update % every == 0):
                taken.append(update)
        assert 30 <= len(taken) <= 100, every
        assert taken[:5] == [0, 1, 2, 3, 4]


def test_watching_does_not_tell_runs_apart(tmp_path: Path) -> None:
    sources = Sources(str(words(tmp_path / "words.tsv")))
    made = [fingerprint(load_recipe(ROWS, overrides=[f"training.film={number}"]), sources) for number in (0, 3)]
    assert made[0] == made[1]
    assert made[0] != fingerprint(load_recipe(ROWS, overrides=["training.seed=2"]), sources)


def test_random_numbers_and_mode_are_as_they_were(tmp_path: Path) -> None:
    from seq2see.training.film import Film

    model = run(with_training(ROWS, updates=2), words(tmp_path / "words.tsv"), tmp_path / "run")
    dev = [{"source": word, "output": word} for word in ("ab", "cd", "abc")]
    filmed = Film(model.bundle, dev, folder=tmp_path)
    model.bundle.network.train()
    before = torch.get_rng_state()
    filmed.begin(0, epoch=0.0, seconds=0.0, resumed=False)
    filmed.after(1, epoch=0.1, seconds=0.1, reported=False, finished=False)
    assert model.bundle.network.training
    assert bool((torch.get_rng_state() == before).all())
    assert seq2see.load(tmp_path / "run").predict("ab").text is not None
