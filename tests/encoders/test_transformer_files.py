"""Sounds, pictures and videos read by self-attention: what enters, torch's own layers, padding, where they looked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.data.batches import Frames
from seq2see.encoders import Encoded, Encoder, ImageTransformer, InputInfo, SoundTransformer, VideoEncoder
from seq2see.encoders.base import build_encoder
from seq2see.encoders.transformer import TransformerEncoderSettings
from seq2see.encoders.video import VideoEncoderSettings
from seq2see.errors import UserError
from seq2see.modalities.image import Pictures
from tests.encoders.test_transformer import copied

LAYERS = {"size": 8, "layers": 2, "heads": 2, "feedforward": 12}
FRAMES, MASK = torch.randn(3, 9, 5, generator=torch.Generator().manual_seed(2)), torch.ones(3, 9, dtype=torch.bool)
MASK[1, 6:] = False
MASK[2, 3:] = False
PIXELS = torch.randint(0, 256, (2, 3, 10, 14), generator=torch.Generator().manual_seed(3), dtype=torch.uint8)
WIDTHS = torch.tensor([14, 7])
CLIPS = torch.randint(0, 256, (3, 9, 1, 8, 8), generator=torch.Generator().manual_seed(4), dtype=torch.uint8)


def stirred(made: Any) -> Any:
    """Biases begin at zero, where nothing would tell them from none."""
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return made.eval()


def sound(**given: Any) -> SoundTransformer:
    torch.manual_seed(1)
    settings = TransformerEncoderSettings.model_validate({**LAYERS, "stack": 4, **given})
    return stirred(SoundTransformer(settings, width=5))  # type: ignore[no-any-return]


def picture(**given: Any) -> ImageTransformer:
    torch.manual_seed(1)
    settings = TransformerEncoderSettings.model_validate({**LAYERS, "patch": (4, 5), **given})
    return stirred(ImageTransformer(settings, channels=3))  # type: ignore[no-any-return]


def video(**given: Any) -> VideoEncoder:
    torch.manual_seed(1)
    keys = {"over_time": "transformer", "channels": [4], "motion": [4], **given}
    layers = LAYERS if keys["over_time"] == "transformer" else {"size": LAYERS["size"]}
    settings = VideoEncoderSettings.model_validate({**layers, **keys})
    return stirred(VideoEncoder(settings, channels=1, height=8, width=8))  # type: ignore[no-any-return]


def above(layers: Any, norm: nn.Module, entered: Tensor) -> Tensor:
    """One row without padding, through torch's layers with the encoder's weights."""
    states = entered[None]
    for layer in layers:
        states = copied(layer).eval()(states)
    made: Tensor = norm(states)[0]
    return made


def waves(places: int, size: int) -> Tensor:
    """p_j, number by number."""
    made = np.zeros((places, size))
    for j in range(places):
        for i in range(size):
            angle = j / 10_000 ** ((i - i % 2) / size)
            made[j, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return torch.tensor(made, dtype=torch.float32)


def test_frames_are_joined_placed_and_read_as_torch_reads_them() -> None:
    made = sound()
    found = made(FRAMES, MASK)
    for row, (length, places) in enumerate([(9, 3), (6, 2), (3, 1)]):
        filled = torch.zeros(places * 4, 5)
        filled[:length] = FRAMES[row, :length]
        entered = filled.reshape(places, 20) @ made.W_p.weight.T + made.W_p.bias + waves(places, 8)
        wanted = above(made.layers, made.norm, entered)
        torch.testing.assert_close(found.places.states[row, :places], wanted, atol=1e-5, rtol=0)
        torch.testing.assert_close(found.summary[row], wanted.mean(0), atol=1e-5, rtol=0)
    assert found.places.mask.tolist() == [[True, True, True], [True, True, False], [True, False, False]]
    assert found.places.layout.kind == made.layout == "frames"


def test_a_place_of_a_sound_is_called_by_its_first_frame() -> None:
    names = [[f"{i} ms" for i in range(length)] for length in (9, 6, 3)]
    made = sound().read(Frames(FRAMES, MASK, names))
    assert made.places.tokens == [["0 ms", "4 ms", "8 ms"], ["0 ms", "4 ms"], ["0 ms"]]


@pytest.mark.parametrize("leftward", [False, True])
def test_patches_are_cut_placed_and_read_as_torch_reads_them(leftward: bool) -> None:
    made = picture()
    found = made(PIXELS, WIDTHS, leftward=leftward)
    for row, columns in enumerate([3, 2]):
        whole = np.zeros((3, 12, 5 * columns), np.float32)
        width = int(WIDTHS[row])
        whole[:, :10, :width] = PIXELS[row, :, :, :width].numpy() / 127.5 - 1
        places, where = [], []
        for r in range(3):
            for c in range(columns):
                at = columns - 1 - c if leftward else c
                places.append(whole[:, 4 * r : 4 * r + 4, 5 * at : 5 * at + 5].reshape(-1))
                where.append(torch.cat([waves(3, 4)[r], waves(3, 4)[c]]))
        entered = torch.tensor(np.stack(places)) @ made.W_p.weight.T + made.W_p.bias + torch.stack(where)
        wanted = above(made.layers, made.norm, entered)
        torch.testing.assert_close(found.places.states[row][found.places.mask[row]], wanted, atol=1e-5, rtol=0)
        torch.testing.assert_close(found.summary[row], wanted.mean(0), atol=1e-5, rtol=0)
    assert (found.places.layout.kind, found.places.layout.shape) == ("grid", (3, 3))
    assert found.places.layout.leftward == leftward


def test_frames_of_a_video_are_read_as_torch_reads_them() -> None:
    made = video()
    found = made(CLIPS, MASK)
    for row, length in enumerate([9, 6, 3]):
        alone = video(over_time="none")
        alone.load_state_dict({key: value for key, value in made.state_dict().items() if not key.startswith("layers.")})
        entered = alone(CLIPS[row : row + 1, :length], MASK[row : row + 1, :length]).places.states[0]
        wanted = above(made.layers.layers, made.layers.norm, entered + waves(length, 8))  # type: ignore[union-attr,arg-type]
        torch.testing.assert_close(found.places.states[row, :length], wanted, atol=1e-5, rtol=0)
        torch.testing.assert_close(found.summary[row], wanted.mean(0), atol=1e-5, rtol=0)


READ: dict[str, tuple[Callable[..., Any], Callable[..., Encoded]]] = {
    "sound": (sound, lambda made, rows, **more: made(FRAMES[rows], MASK[rows], **more)),
    "picture": (picture, lambda made, rows, **more: made(PIXELS[rows], WIDTHS[rows], **more)),
    "video": (video, lambda made, rows, **more: made(CLIPS[rows], MASK[rows], **more)),
}


@pytest.mark.parametrize("kind", READ)
def test_padding_has_no_say(kind: str) -> None:
    build, read = READ[kind]
    made = build()
    before = read(made, slice(None))
    frames, pixels, clips = FRAMES.clone(), PIXELS.clone(), CLIPS.clone()
    frames[~MASK], clips[~MASK] = 7.0, 77
    pixels[1, :, :, 7:] = 77
    after = {"sound": lambda: made(frames, MASK), "picture": lambda: made(pixels, WIDTHS)}.get(
        kind, lambda: made(clips, MASK)
    )()
    mask = before.places.mask
    torch.testing.assert_close(before.places.states[mask], after.places.states[mask], atol=1e-6, rtol=0)
    torch.testing.assert_close(before.summary, after.summary, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", READ)
def test_it_tells_where_it_looked_when_asked(kind: str) -> None:
    build, read = READ[kind]
    made = build()
    assert read(made, slice(None)).maps == {}
    told = read(made, slice(None), maps=True)
    assert list(told.maps) == ["self-1", "self-2"]
    real = told.places.mask
    for one in told.maps.values():
        weights = one.weights
        torch.testing.assert_close(weights.sum(-1), real[:, None].float().expand(-1, 2, -1), atol=1e-5, rtol=0)
        assert (weights.masked_select(~real[:, None, None].expand_as(weights)) == 0).all()
        assert one.layout == told.places.layout
    torch.testing.assert_close(told.places.states[real], read(made, slice(None)).places.states[real])


@pytest.mark.parametrize("kind", READ)
def test_every_parameter_learns(kind: str) -> None:
    build, read = READ[kind]
    made = build(positions="learned", longest=9).train()
    encoded = read(made, slice(None))
    (encoded.places.states[encoded.places.mask].square().mul(torch.arange(8)).sum() + encoded.summary.sum()).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("W_k.bias"):  # adds the same to every energy of a query: softmax does not see it
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
def test_order_is_known_where_there_are_positions(kind: str, positions: str) -> None:
    """The first row turned round, place by place: its places come out turned round, and else the same, without any."""
    build, _ = READ[kind]
    given = {"patch": (5, 7)} if kind == "picture" else {"motion": []} if kind == "video" else {"stack": 3}
    made = build(positions=positions, **given)
    if kind == "sound":
        turned = FRAMES[:1].unflatten(1, (3, 3)).flip(1).flatten(1, 2)
        one, other = made(FRAMES[:1], MASK[:1]), made(turned, MASK[:1])
    elif kind == "picture":
        turned = PIXELS[:1].unflatten(3, (2, 7)).flip(3).flatten(3).unflatten(2, (2, 5)).flip(2).flatten(2, 3)
        one, other = made(PIXELS[:1]), made(turned)
    else:
        one, other = made(CLIPS[:1], MASK[:1]), made(CLIPS[:1].flip(1), MASK[:1])
    same = torch.allclose(one.places.states, other.places.states.flip(1), atol=1e-5)
    assert same == (positions == "none")


def test_rotary_positions_of_sounds_are_felt() -> None:
    plain, turned = sound(positions="none"), sound(positions="rotary")
    assert not torch.allclose(plain(FRAMES, MASK).places.states, turned(FRAMES, MASK).places.states, atol=1e-4)
    with pytest.raises(UserError, match=r"encoder\.positions: rotary goes along a line"):
        picture(positions="rotary")


def test_learned_positions_end() -> None:
    with pytest.raises(UserError, match="2 learned positions, and the input has 3"):
        sound(positions="learned", longest=2)(FRAMES, MASK)
    with pytest.raises(UserError, match="2 learned positions, and the picture has 3 x 3 places"):
        picture(positions="learned", longest=2)(PIXELS, WIDTHS)


@pytest.mark.parametrize(
    ("given", "kind", "names"),
    [
        ({"stack": 2}, SoundTransformer, {"W_p.weight", "norm.bias", "layers.0.inward.W_q.weight"}),
        ({"patch": 4, "positions": "learned"}, ImageTransformer, {"W_p.weight", "placing.P_r", "placing.P_c"}),
    ],
)
def test_settings_say_what_is_built(given: dict[str, Any], kind: type[Encoder], names: set[str]) -> None:
    settings = TransformerEncoderSettings.model_validate({**LAYERS, **given})
    made = build_encoder(settings, InputInfo(channels=3, height=16, width=16))
    assert isinstance(made, kind)
    assert names <= set(made.state_dict())


def test_a_picture_alone_is_read_as_in_its_batch() -> None:
    made = picture()
    together, alone = made(PIXELS, WIDTHS), made.read(Pictures(PIXELS[1:, :, :, :7], WIDTHS[1:]))
    real = together.places.mask[1]
    torch.testing.assert_close(together.places.states[1][real], alone.places.states[0], atol=1e-5, rtol=0)
    assert alone.places.layout.shape == (3, 2)
