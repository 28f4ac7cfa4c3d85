"""Stretches of sounds hidden one by one, and gradients of their frames: each number found again by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from seq2see.cli.app import run as command
from seq2see.data.batches import Frames
from seq2see.data.sound_files import SoundInput
from seq2see.modalities.sound import SoundField
from seq2see.pipeline.faithful import GRADIENT, OCCLUSION, PlaceImportance

FIELD = SoundField(SoundInput())

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

RATE, SLOT, SLOTS = 8000, 320, 6
TONES = {"low": 400.0, "middle": 1100.0, "high": 2600.0}
RECIPE = {
    "inputs": {"sound": {"kind": "sound", "rate": RATE, "mels": 12, "window": 10, "hop": 10}},
    "encoder": {"kind": "pyramidal", "size": 16, "layers": 2, "halvings": 2},
    "output": {"column": "tone"},
    "attention": {"over": "sound", "size": 16},
    "decoder": {"size": 24, "start": "none", "embedding": {"size": 8}},
    "training": {"epochs": 0, "updates": 80, "learning_rate": 0.01, "batch_rows": 24, "dev_rows": 10, "threads": 1},
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """A tone somewhere in noise, of 40 ms: as long as a place."""
    folder, draw, noise = tmp_path_factory.mktemp("tones"), random.Random(1), np.random.default_rng(1)
    made = []
    for number in range(120):
        tone, slot = draw.choice(list(TONES)), draw.randrange(SLOTS)
        samples = noise.normal(0, 0.02, SLOT * SLOTS)
        time = np.arange(SLOT) / RATE
        samples[slot * SLOT : (slot + 1) * SLOT] += 0.5 * np.sin(2 * np.pi * TONES[tone] * time)
        soundfile.write(folder / f"{number}.wav", samples, RATE)
        made.append({"sound": str(folder / f"{number}.wav"), "output": tone, "slot": str(slot)})
    return made


@pytest.fixture(scope="module")
def table(rows: list[dict[str, str]]) -> Path:
    path = Path(rows[0]["sound"]).parent / "rows.tsv"
    lines = ["sound\ttone", *(f"{row['sound']}\t{row['output']}" for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def model(table: Path) -> seq2see.Model:
    """Which rows would be set aside depends on where the files lie, so some are given."""
    dev = table.parent / "dev.tsv"
    dev.write_text("\n".join(table.read_text("utf-8").splitlines()[:11]) + "\n", "utf-8")
    return seq2see.train(RECIPE, table, dev=dev, out=table.parent / "run", listeners=[])


def test_a_place_hides_the_frames_it_was_made_of() -> None:
    values = torch.arange(2 * 9 * 2, dtype=torch.float).view(2, 9, 2)
    column = Frames(values, torch.ones(2, 9, dtype=torch.bool))
    hidden = FIELD.occlusion(column, "", [3]).without(torch.tensor([1, 2])).values
    assert [(hidden != values)[row].any(-1).nonzero().flatten().tolist() for row in (0, 1)] == [[4, 5, 6, 7], [8]]
    assert hidden[0, 4].tolist() == [values[0].mean().item()] * 2
    shared = (
        FIELD.occlusion(column, "", [4]).without(torch.tensor([0, 3])).values
    )  # no power of two makes 4 places of 9 frames
    assert [(shared != values)[row].any(-1).nonzero().flatten().tolist() for row in (0, 1)] == [[0, 1, 2], [7, 8]]
    with pytest.raises(ValueError, match="no padding"):
        FIELD.occlusion(Frames(values, torch.arange(9).expand(2, 9) < 7), "", [3]).without(torch.tensor([0, 0]))


def test_occlusion_is_the_drop_of_what_is_given(model: seq2see.Model, rows: list[dict[str, str]]) -> None:
    found = PlaceImportance(model.bundle, rows[0]).measure()["sound"]
    assert found.attention.shape == (2, SLOTS)
    whole = given(model, rows[0])
    for place in range(SLOTS):
        cut = given(model, rows[0], hidden=slice(4 * place, 4 * place + 4))
        assert found.importance[OCCLUSION][:, place] == pytest.approx((whole - cut).detach().numpy(), abs=1e-4)


def test_gradients_are_those_of_the_frames_joined(model: seq2see.Model, rows: list[dict[str, str]]) -> None:
    found = PlaceImportance(model.bundle, rows[0]).measure()["sound"].importance[GRADIENT]
    batch = model.bundle.fields.batch([rows[0]], target=True)
    frames = batch.inputs["sound"].values.requires_grad_()
    step, ready = model.bundle.network.forward_batch(batch)
    first = model.bundle.network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)[0]
    (slope,) = torch.autograd.grad(first, frames)
    exact = (slope * frames)[0].detach().view(SLOTS, 4 * 12).norm(dim=1)
    assert found[0] == pytest.approx(exact.numpy(), rel=1e-3)


def test_what_is_said_depends_on_the_stretch_that_sounds(model: seq2see.Model, rows: list[dict[str, str]]) -> None:
    """One of the tones may be what is said of noise alone; gradients of what is certain are small and say less."""
    asked = [(PlaceImportance(model.bundle, row).measure()["sound"].importance, int(row["slot"])) for row in rows[:20]]
    assert np.mean([one[OCCLUSION][0].argmax() == slot for one, slot in asked]) > 0.6
    assert np.mean([one[GRADIENT][0, slot] / one[GRADIENT][0].sum() for one, slot in asked]) > 1.3 / SLOTS


def test_on_the_command_line(
    model: seq2see.Model, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "faithful.svg"
    arguments = ["--data", table, "--rows", 4, "--json", "--out", picture]
    command([str(one) for one in ["faithful", table.parent / "run", *arguments]])
    told = json.loads(capsys.readouterr().out)
    assert [(one["input"], one["measure"]) for one in told["agreements"]] == [
        ("sound", OCCLUSION),
        ("sound", GRADIENT),
    ]
    assert told["rows"] == 4
    assert ">gradient, shuffled<" in picture.read_text("utf-8")


def given(model: seq2see.Model, row: dict[str, str], hidden: slice | None = None) -> torch.Tensor:
    batch = model.bundle.fields.batch([row], target=True)
    frames = batch.inputs["sound"].values
    if hidden is not None:
        frames[:, hidden] = frames.mean()
    step, ready = model.bundle.network.forward_batch(batch)
    return model.bundle.network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)
