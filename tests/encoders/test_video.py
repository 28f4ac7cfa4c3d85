"""Frames as places: what is in them, what moves, read over time; each on or off, and padding has no say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import conv3d, group_norm, relu

from seq2see.encoders import VideoEncoder
from seq2see.encoders.video import Motion, VideoEncoderSettings, changes
from seq2see.errors import UserError
from seq2see.modalities.video import Clips

SMALL: dict[str, Any] = {"size": 6, "channels": [4, 8]}
WAYS: list[dict[str, Any]] = [
    {},
    {"over_time": "none"},
    {"bidirectional": False, "layers": 2},
    {"motion": [4, 8]},
    {"appearance": False, "motion": [4]},
    {"appearance": False, "motion": [4], "motion_from": "changes"},
    {"appearance": False, "motion": [4, 4], "spans": [5, 1], "over_time": "none"},
    {"frame": "flat", "motion": [4], "regions": True},
    {"over_time": "none", "regions": True},
]


def encoder(**changes: Any) -> VideoEncoder:
    torch.manual_seed(1)
    settings = VideoEncoderSettings.model_validate({**SMALL, **changes})
    return VideoEncoder(settings, channels=1, height=12, width=16).eval()


def clips(batch: int, frames: int) -> torch.Tensor:
    return torch.randint(0, 255, (batch, frames, 1, 12, 16), generator=torch.Generator().manual_seed(3)).byte()


@pytest.mark.parametrize("how", WAYS)
def test_a_row_does_not_depend_on_its_batch(how: dict[str, Any]) -> None:
    made, pixels = encoder(**how), clips(3, 7)
    mask = torch.arange(7) < torch.tensor([[3], [7], [5]])
    both, alone = made(pixels, mask), made(pixels[:1, :3], mask[:1, :3])
    torch.testing.assert_close(both.places.states[0, :3], alone.places.states[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(both.summary[0], alone.summary[0], atol=1e-5, rtol=1e-4)
    assert both.places.mask.tolist() == mask.tolist()
    assert both.places.states.shape == (3, 7, made.size)
    assert both.summary.shape == (3, made.summary_size)
    for name, places in both.further.items():
        real, few = places.mask[0], alone.further[name]
        torch.testing.assert_close(places.states[0, real], few.states[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("how", WAYS)
def test_gradients_reach_every_weight(how: dict[str, Any]) -> None:
    made = encoder(**how).train()
    found = made(clips(2, 5), torch.ones(2, 5, dtype=torch.bool))
    total = found.places.states.square().sum() + sum(one.states.square().sum() for one in found.further.values())
    total.backward()
    lost = [name for name, one in made.named_parameters() if one.grad is None or not one.grad.any()]
    assert not lost


def test_motion_is_three_dimensional_convolution() -> None:
    motion, pixels = Motion(2, [4, 8], [3, 5]), torch.randn(1, 6, 2, 12, 16)
    states = pixels.transpose(1, 2)
    for convolution, norm, kernel in zip(motion.convolutions, motion.norms, (5, 3), strict=True):
        span = convolution.weight.shape[2]  # type: ignore[union-attr]
        pad = (span // 2, kernel // 2, kernel // 2)
        states = conv3d(states, convolution.weight, stride=(1, 2, 2), padding=pad)  # type: ignore[arg-type]
        frames = [group_norm(states[:, :, i], norm.num_groups) for i in range(6)]  # type: ignore[arg-type]
        states = relu(torch.stack(frames, 2))
    found = motion(pixels, torch.ones(1, 6, dtype=torch.bool))
    torch.testing.assert_close(found, states.transpose(1, 2), atol=1e-5, rtol=1e-4)


def test_frames_alone_cannot_tell_the_order_and_motion_and_recurrence_can() -> None:
    pixels, mask = clips(1, 6), torch.ones(1, 6, dtype=torch.bool)

    def alike(**how: Any) -> bool:
        made = encoder(**how)
        return torch.allclose(made(pixels, mask).summary, made(pixels.flip(1), mask).summary, atol=1e-5)

    assert alike(over_time="none")
    assert not alike()
    assert not alike(over_time="none", appearance=False, motion=[4])


def test_regions_lie_in_frames() -> None:
    found = encoder(regions=True, motion=[4, 4, 4]).read(
        Clips(
            clips(2, 3), torch.tensor([[True] * 3, [True, True, False]]), names=[["0 s", "1 s", "2 s"], ["0 s", "1 s"]]
        )
    )
    regions = found.further["regions"]
    assert regions.layout.kind == "frames-grid"
    assert regions.layout.shape == (3, 3, 4)
    assert regions.layout.to_dict(24) == {"kind": "frames-grid", "shape": [2, 3, 4]}
    assert regions.mask.sum(1).tolist() == [36, 24]
    assert regions.parent is not None
    assert regions.parent[0].tolist() == [0] * 12 + [1] * 12 + [2] * 12
    assert regions.tokens is not None
    assert [len(row) for row in regions.tokens] == [36, 24]
    assert regions.tokens[0][13] == "1 s 1,2"


def test_a_cell_of_a_region_sees_its_own_part_of_the_frame() -> None:
    made = encoder(regions=True, channels=[4, 4], over_time="none")
    pixels, mask = clips(1, 2), torch.ones(1, 2, dtype=torch.bool)
    other = pixels.clone()
    other[0, 1, 0, :4, :4] = 255 - other[0, 1, 0, :4, :4]
    first, second = (made(one, mask).further["regions"].states[0] for one in (pixels, other))
    assert torch.equal(first[:12], second[:12]), "the first frame is as it was"
    assert not torch.allclose(first[12], second[12])


def test_kept_maps_stand_in_for_pixels() -> None:
    made, pixels, mask = encoder(motion=[4]), clips(2, 4), torch.ones(2, 4, dtype=torch.bool)
    maps = made.frozen_features(Clips(pixels, mask))
    read, kept = made(pixels, mask), made.read(Clips(pixels, mask, maps=maps))
    torch.testing.assert_close(read.places.states, kept.places.states)
    with torch.no_grad():
        moved = made.read(Clips(pixels, mask, maps=maps + 1))
    assert not torch.allclose(moved.places.states, kept.places.states)


def test_nothing_seen_is_refused() -> None:
    with pytest.raises(UserError, match=r"encoder\.appearance: false"):
        encoder(appearance=False)


def test_what_stays_the_same_is_no_change() -> None:
    mask = torch.arange(7) < torch.tensor([[4], [7]])
    pixels = torch.rand(2, 7, 1, 12, 16, generator=torch.Generator().manual_seed(1)) - 0.5
    still = torch.rand(2, 1, 1, 12, 16, generator=torch.Generator().manual_seed(2))
    found = changes(pixels, mask)
    torch.testing.assert_close(changes(pixels * 0.3 + still, mask), found, atol=1e-5, rtol=1e-4)
    clip = pixels[0, :4].numpy().astype("float64")
    moved = clip - clip.mean(0, keepdims=True)
    np.testing.assert_allclose(found[0, :4].numpy(), moved / np.sqrt((moved**2).mean()), atol=1e-5)
    assert found[0, 4:].abs().max() == 0
    assert changes(still.expand(-1, 7, -1, -1, -1), mask).abs().max() < 1e-4


def test_motion_from_changes_does_not_see_what_stays() -> None:
    everything = torch.ones(1, 7, dtype=torch.bool)
    darker = clips(1, 7) // 2
    lighter = darker + 100
    by_changes, by_pixels = (
        encoder(appearance=False, motion=[4], over_time="none", motion_from=how) for how in ("changes", "pixels")
    )
    same = [by_changes(one, everything).places.states for one in (darker, lighter)]
    torch.testing.assert_close(same[0], same[1], atol=1e-4, rtol=1e-4)
    other = [by_pixels(one, everything).places.states for one in (darker, lighter)]
    assert not torch.allclose(other[0], other[1], atol=1e-2)
