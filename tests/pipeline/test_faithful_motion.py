"""Frames hidden from an encoder of changes: what hides one is no movement itself."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from seq2see.data.video_files import VideoInput
from seq2see.encoders.video import VideoEncoder, VideoEncoderSettings, changes
from seq2see.modalities.video import Clips, VideoField
from seq2see.pipeline.faithful import OCCLUSION, PlaceImportance
from tests.clips import table, written

FIELD = VideoField(VideoInput())

FRAMES, SIZE, HIDDEN = 75, 16, 9
SIGNS = {"darker": -30, "lighter": 30}


def waving(frames: int = FRAMES) -> torch.Tensor:
    """A still scene full of light and dark, before which a bar goes to and fro: (1, frames, 1, height, width)."""
    scene = torch.randint(0, 200, (1, 1, 1, SIZE, SIZE), generator=torch.manual_seed(1))
    film = scene.repeat(1, frames, 1, 1, 1)
    for number in range(frames):
        at = round(6 + 5 * np.sin(number * 0.7))
        film[:, number, :, :, at : at + 4] += 40
    return film.byte()


def encoder(**settings: object) -> VideoEncoder:
    torch.manual_seed(2)
    given = {"appearance": False, "motion": [6, 8], "spans": [3, 1], "recurrent": False, "size": 8, **settings}
    made = VideoEncoder(VideoEncoderSettings.model_validate(given), channels=1, height=SIZE, width=SIZE)
    return made.eval()


@pytest.mark.parametrize(("part", "shape"), [("", [FRAMES]), ("regions", [FRAMES, 2, 2])])
def test_what_is_hidden_has_no_change_and_the_rest_keeps_its_own(part: str, shape: list[int]) -> None:
    column = Clips(waving(), torch.ones(1, FRAMES, dtype=torch.bool))
    cells = 4 if part else 1
    hidden = FIELD.occlusion(column, part, shape, changes=True).without(torch.tensor([HIDDEN * cells]))
    height = SIZE // (2 if part else 1)
    moved = changes(hidden.pixels / 127.5 - 1, column.mask)[0, :, :, :height, :height]
    assert moved[HIDDEN].abs().max() < 1e-4
    assert moved.flatten(1).abs().amax(1).sort().values[1] > 0.1, "every other frame moves"

    reader = encoder(motion_from="changes")
    with torch.no_grad():
        before, after = (reader._feature_maps(one)[0][0] for one in (column, hidden))
        grey = reader._feature_maps(FIELD.occlusion(column, part, shape).without(torch.tensor([HIDDEN * cells])))[0][0]
    far = [number for number in range(FRAMES) if abs(number - HIDDEN) > 1]
    assert lost(before[far], after[far]) < 0.05
    assert lost(before[far], grey[far]) > 3 * lost(before[far], after[far])
    assert lost(before[HIDDEN], after[HIDDEN]) > 0.1


def lost(before: torch.Tensor, after: torch.Tensor) -> float:
    return float((after - before).norm() / before.norm())


def test_frames_that_are_not_real_have_no_share_in_what_hides_one() -> None:
    pixels = waving(6)
    pixels[:, 4:] = 0
    column = Clips(pixels, torch.arange(6)[None] < 4)
    hidden = FIELD.occlusion(column, "", [6], changes=True).without(torch.tensor([1])).pixels
    torch.testing.assert_close(hidden[0, 1], pixels[0, [0, 2, 3]].float().mean(0))
    one = Clips(pixels[:, :1], torch.ones(1, 1, dtype=torch.bool))
    alone = FIELD.occlusion(one, "regions", [1, 2, 2], changes=True).without(torch.tensor([0])).pixels
    assert alone[0, 0, :, :8, :8].unique().tolist() == [float(pixels[0, 0].float().mean().round())]


def test_only_motion_from_changes_is_hidden_so() -> None:
    assert encoder(motion_from="changes").sees_changes
    assert not encoder(motion_from="pixels").sees_changes
    assert not encoder(appearance=True, channels=[4], motion=[], spans=[]).sees_changes


def test_what_is_said_depends_on_the_frame_in_which_something_moved(tmp_path: Path) -> None:
    """In still scenes of all sorts a patch is darker or lighter in one frame, and the model says which."""
    draw, seen = random.Random(3), np.random.default_rng(3)
    rows, frames = list[dict[str, str]](), 8
    for number in range(80):
        sign, at = draw.choice(list(SIGNS)), draw.randrange(frames)
        film = np.repeat(seen.integers(30, 226, (1, SIZE, SIZE, 1)), 3, 3).repeat(frames, 0)
        film[at, 4:12, 4:12] += SIGNS[sign]
        path = written(tmp_path / f"{number}.mkv", film.astype(np.uint8), codec="ffv1")
        rows.append({"video": str(path), "output": sign, "frame": str(at)})
    recipe = {
        "inputs": {"video": {"kind": "video", "colour": "grey", "height": SIZE, "width": SIZE}},
        "encoder": {
            "kind": "video",
            "appearance": False,
            "motion": [8, 16],
            "spans": [3, 1],
            "motion_from": "changes",
            "recurrent": False,
            "size": 16,
        },
        "output": {"kind": "label", "column": "sign"},
        "attention": {"over": "video", "size": 16},
        "decoder": {"kind": "label", "size": 16, "start": "none"},
        "training": {"epochs": 0, "updates": 80, "learning_rate": 0.01, "batch_rows": 20, "threads": 1},
    }
    data = table(tmp_path / "rows.tsv", [(row["video"], row["output"]) for row in rows], "video\tsign")
    model = seq2see.train(recipe, data, dev=data, out=tmp_path / "run", listeners=[])
    hits = []
    for row in rows[:20]:
        drops = PlaceImportance(model.bundle, row).measure()["video"].importance[OCCLUSION][0]
        hits.append(drops[int(row["frame"])] > 1.5 * np.delete(drops, int(row["frame"])).max() > 0)
    assert np.mean(hits) > 0.8
