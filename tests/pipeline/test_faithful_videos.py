"""Frames and regions of frames hidden one by one, and gradients of their maps: each number found again by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import adaptive_avg_pool2d

import seq2see
from seq2see.data.video_files import VideoInput
from seq2see.modalities.video import Clips, VideoField
from seq2see.pipeline import faithful as faithfulness
from seq2see.pipeline.faithful import GRADIENT, OCCLUSION, PlaceImportance
from tests.clips import table, written

FIELD = VideoField(VideoInput())

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (40, 60, 230)}
FRAMES, SIZE, HEAD = 5, 16, "video\tcolour"
Row = dict[str, str]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """A patch of colour in a quarter of one frame of grey ones."""
    folder, draw = tmp_path_factory.mktemp("flashes"), random.Random(1)
    made = []
    for number in range(90):
        colour, frame, quarter = draw.choice(list(COLOURS)), draw.randrange(FRAMES), draw.randrange(4)
        film = np.full((FRAMES, SIZE, SIZE, 3), 120, dtype=np.uint8)
        down, across = (8 * half for half in divmod(quarter, 2))
        film[frame, down : down + 8, across : across + 8] = COLOURS[colour]
        path = written(folder / f"{number}.mkv", film, codec="ffv1")
        made.append({"video": str(path), "output": colour, "frame": str(frame), "quarter": str(quarter)})
    return made


@pytest.fixture(scope="module")
def trained(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., seq2see.Model]:
    """Models with these changes, each trained once."""
    made: dict[str, seq2see.Model] = {}

    def train(over: str, updates: int = 110, **encoder: Any) -> seq2see.Model:
        key = repr((over, updates, encoder))
        if key not in made:
            folder = tmp_path_factory.mktemp("model")
            pairs = [(row["video"], row["output"]) for row in rows]
            data, dev = table(folder / "rows.tsv", pairs, HEAD), table(folder / "dev.tsv", pairs[:10], HEAD)
            small = {"kind": "video", "size": 24, "channels": [12, 16, 16], "over_time": "none"}
            recipe = {
                "inputs": {"video": {"kind": "video", "height": SIZE, "width": SIZE}},
                "encoder": {**small, **encoder},
                "output": {"column": "colour"},
                "attention": {"over": over, "size": 16},
                "decoder": {"size": 24, "start": "none", "embedding": {"size": 8}},
                "training": {
                    "epochs": 0,
                    "updates": updates,
                    "learning_rate": 0.01,
                    "batch_rows": 20,
                    "dev_rows": 10,
                    "threads": 1,
                },
            }
            made[key] = seq2see.train(recipe, data, dev=dev, out=folder / "run", listeners=[])
        return made[key]

    return train


def test_a_frame_or_a_cell_of_one_is_hidden_and_the_rest_stays() -> None:
    pixels = torch.arange(2 * 3 * 1 * 4 * 6).view(2, 3, 1, 4, 6).byte()
    column = Clips(pixels, torch.ones(2, 3, dtype=torch.bool))
    frames = FIELD.occlusion(column, "", [3]).without(torch.tensor([0, 2])).pixels
    assert (frames != pixels).flatten(2).any(-1).tolist() == [[True, False, False], [False, False, True]]
    assert (frames[0, 0].float() - pixels[0].float().mean()).abs().max() <= 0.5
    cells = FIELD.occlusion(column, "regions", [3, 2, 3]).without(torch.tensor([0, 6 + 5])).pixels
    assert (cells != pixels)[0].nonzero().tolist() == [[0, 0, r, c] for r in (0, 1) for c in (0, 1)]
    assert (cells != pixels)[1].nonzero().tolist() == [[1, 0, r, c] for r in (2, 3) for c in (4, 5)]
    with pytest.raises(ValueError, match="clips expected"):
        FIELD.occlusion(Clips(None, column.mask), "", [3]).without(torch.tensor([0, 0]))


@pytest.mark.parametrize("over", ["video", "video.regions"])
def test_occlusion_is_the_drop_of_what_is_given(
    trained: Callable[..., seq2see.Model], rows: list[Row], over: str
) -> None:
    model = trained(over, regions=over != "video")
    found = PlaceImportance(model.bundle, rows[0]).measure()[over]
    cells = found.attention.shape[1] // FRAMES
    side = round(cells**0.5)
    whole, share = given(model, rows[0]), SIZE // side
    for place in (0, cells + cells // 2, FRAMES * cells - 1):
        number, cell = divmod(place, cells)
        down, across = (share * one for one in divmod(cell, side))
        cut = given(model, rows[0], hidden=(number, slice(down, down + share), slice(across, across + share)))
        assert found.importance[OCCLUSION][:, place] == pytest.approx((whole - cut).detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("over", ["video", "video.regions"])
def test_gradients_are_those_of_all_maps_joined(
    trained: Callable[..., seq2see.Model], rows: list[Row], over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained(over, 3, regions=over != "video", motion=[8, 8], spans=[3, 3])
    found = PlaceImportance(model.bundle, rows[0]).measure()[over].importance[GRADIENT]
    encoder, network = model.bundle.network.encoder("video"), model.bundle.network
    batch = model.bundle.fields.batch([rows[0]], target=True)
    with torch.no_grad():
        maps = encoder._feature_maps(batch.inputs["video"])
    assert len({one.shape[-1] for one in maps}) == 2
    for one in maps:
        one.requires_grad_()
    monkeypatch.setattr(encoder, "_feature_maps", lambda column: maps)
    step, ready = network.forward_batch(batch)
    first = network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)[0]
    squares = [(slope * one)[0].detach().square().sum(1) for slope, one in zip(grads(first, maps), maps, strict=True)]
    if over == "video":
        exact = squares[0].sum((1, 2)) + squares[1].sum((1, 2))
    else:
        side = maps[0].shape[-1]
        other = adaptive_avg_pool2d(squares[1], side) * (squares[1][0].numel() / side**2)
        exact = (squares[0] + other).flatten()
    assert found[0] == pytest.approx(exact.sqrt().numpy(), rel=1e-3)


def test_what_is_said_depends_on_the_frame_and_the_region_that_show_it(
    trained: Callable[..., seq2see.Model], rows: list[Row]
) -> None:
    """One of the colours may be what is said of nothing; gradients of what is certain are small and say less."""
    for over, cells in (("video", 1), ("video.regions", 4)):
        model, hits, shares = trained(over, regions=over != "video"), [], []
        for row in rows[:15]:
            found = PlaceImportance(model.bundle, row).measure()[over].importance
            place = int(row["frame"]) * cells + (int(row["quarter"]) if cells > 1 else 0)
            hits.append(found[OCCLUSION][0].argmax() == place)
            shares.append(found[GRADIENT][0, place] / found[GRADIENT][0].sum())
        assert np.mean(hits) > 0.8
        assert np.mean(shares) > 1.5 / (FRAMES * cells)
    told = model.faithful(rows, rows=3)
    assert [(one.input, one.measure) for one in told.agreements] == [
        ("video.regions", OCCLUSION),
        ("video.regions", GRADIENT),
    ]


def given(model: seq2see.Model, row: Row, hidden: tuple[int, slice, slice] | None = None) -> torch.Tensor:
    batch = model.bundle.fields.batch([row], target=True)
    pixels = batch.inputs["video"].pixels
    if hidden is not None:
        number, down, across = hidden
        pixels[0, number, :, down, across] = pixels.float().mean().round().byte()
    step, ready = model.bundle.network.forward_batch(batch)
    return model.bundle.network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)


def grads(asked: torch.Tensor, maps: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad(asked, maps)


def test_some_of_many_places_are_asked_and_a_long_wait_is_told(
    trained: Callable[..., seq2see.Model], rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained("video.regions", regions=True)
    every = PlaceImportance(model.bundle, rows[0]).measure()["video.regions"]
    asked = PlaceImportance(model.bundle, rows[0], most=7)
    drawn, some = asked.places["video.regions"].tolist(), asked.measure()["video.regions"]
    assert len(set(drawn)) == 7
    for part, whole in (
        (some.attention, every.attention),
        (some.importance[OCCLUSION], every.importance[OCCLUSION]),
        (some.importance[GRADIENT], every.importance[GRADIENT]),
    ):
        np.testing.assert_allclose(part, whole[:, drawn], atol=1e-4)
    monkeypatch.setattr(faithfulness, "MANY_PLACES", 10)
    monkeypatch.setattr(faithfulness, "MANY_SYMBOLS", 10)
    told: list[tuple[str, int, int]] = []
    count = every.attention.shape[1]
    with pytest.warns(seq2see.errors.Notice, match=rf"{count} places .* about {2 * count} inputs .* --places N"):
        model.faithful(rows, rows=2, progress=lambda *said: told.append(said))
    assert ("places hidden, row 2 of 2", count, count) in told
    told.clear()
    model.faithful(rows, rows=2, places=7, progress=lambda *said: told.append(said))
    assert told == [("rows asked", 1, 2), ("rows asked", 2, 2)]
