"""Maps of pictures as places: padding is no place, frozen networks do not move, what is kept equals what is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from seq2see.data.feature_store import FeatureStore
from seq2see.data.image_files import ImageInput
from seq2see.encoders import ConvolutionalEncoder
from seq2see.encoders.backbones.base import CARRIED
from seq2see.encoders.convolutional import ConvolutionalEncoderSettings
from seq2see.modalities.image import ImageField, Pictures
from seq2see.recipe import load_recipe

SMALL = ConvolutionalEncoderSettings(size=8, channels=[4, 6])


def test_cells_are_places_row_by_row() -> None:
    encoder = ConvolutionalEncoder(SMALL, channels=1).eval()
    pixels = torch.randint(0, 256, (2, 1, 16, 24), dtype=torch.uint8)
    encoded = encoder(pixels, torch.tensor([24, 24]))
    cells = encoder.map_of(pixels)
    assert encoded.places.layout.shape == (4, 6)
    expected = cells[:, :, 1, 2] @ encoder.W_p.weight.T + encoder.W_p.bias
    assert torch.allclose(encoded.places.states[:, 1 * 6 + 2], expected, atol=1e-6)
    assert torch.allclose(encoded.summary, encoded.places.states.mean(1), atol=1e-6)


def test_padding_is_no_place() -> None:
    encoder = ConvolutionalEncoder(ConvolutionalEncoderSettings(size=8, channels=[4, 6]), channels=1).eval()
    narrow = torch.randint(0, 256, (1, 1, 16, 8), dtype=torch.uint8)
    wide = torch.randint(0, 256, (1, 1, 16, 24), dtype=torch.uint8)
    padded = torch.cat([torch.nn.functional.pad(narrow.float(), (0, 16, 0, 0), mode="replicate").byte(), wide])
    both = encoder.read(Pictures(padded, torch.tensor([8, 24])))
    assert both.places.mask.sum(1).tolist() == [4 * 2, 4 * 6]
    assert both.places.mask[0].view(4, 6)[:, 2:].any().item() is False


def test_a_vector_is_one_place() -> None:
    settings = ConvolutionalEncoderSettings(size=8, channels=[4, 6], places="vector")
    encoded = ConvolutionalEncoder(settings, channels=3)(torch.zeros(2, 3, 16, 16))
    assert encoded.places.states.shape == (2, 1, 8)
    assert encoded.places.mask.all()


def test_lines_keep_their_columns() -> None:
    settings = ConvolutionalEncoderSettings(size=8, channels=[4, 4, 4], pooled=["both", "height", "height"])
    encoded = ConvolutionalEncoder(settings, channels=1)(torch.zeros(1, 1, 32, 40))
    assert encoded.places.layout.shape == (4, 20)


@pytest.fixture
def pretrained() -> ConvolutionalEncoder:
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra `images` is not installed")
    return ConvolutionalEncoder(ConvolutionalEncoderSettings(backbone="efficientnet-lite0", size=16))


@pytest.mark.parametrize("name", CARRIED)
def test_carried_weights_tell_a_shape_from_noise(name: str) -> None:
    """A network at random makes much the same of all pictures; one that has seen photographs does not."""
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra `images` is not installed")
    torch.manual_seed(0)
    drawn, noise = torch.full((1, 3, 96, 96), 230.0), torch.randint(0, 256, (1, 3, 96, 96)).float()
    drawn[:, :, 24:72, 24:72] = torch.tensor([200.0, 30, 40])[:, None, None]
    encoder = ConvolutionalEncoder(ConvolutionalEncoderSettings(backbone=name, size=16)).eval()
    likeness = []
    for _ in range(2):
        with torch.no_grad():
            one, other = (encoder.backbone(pixels).mean((2, 3))[0] for pixels in (drawn, noise))
        assert one.shape == (1280,)
        likeness.append(float(torch.nn.functional.cosine_similarity(one, other, dim=0)))
        encoder.fetch()
    assert likeness[1] < 0.7 < 0.9 < likeness[0]


@pytest.mark.parametrize("mode", ["as built", "training"])
def test_a_frozen_network_does_not_move(pretrained: ConvolutionalEncoder, mode: str) -> None:
    """Features are made before training begins, by an encoder that nobody has told yet whether it learns."""
    pretrained.fetch()
    if mode == "training":
        pretrained.train()
    before = {name: tensor.clone() for name, tensor in pretrained.backbone.state_dict().items()}
    encoded = pretrained(torch.randint(0, 256, (1, 3, 64, 64)))
    encoded.summary.sum().backward()
    assert pretrained.W_p.weight.grad is not None
    assert all(one.grad is None for one in pretrained.backbone.parameters())
    after = pretrained.backbone.state_dict()
    assert all((before[name] == after[name]).all() for name in before)
    assert not any(module.training for module in pretrained.backbone.modules())


def test_what_is_kept_equals_what_is_made(pretrained: ConvolutionalEncoder, tmp_path: Path) -> None:
    pretrained.eval()
    Image.effect_noise((64, 64), 60).convert("RGB").save(tmp_path / "a.png")
    path = str(tmp_path / "a.png")
    field = ImageField(ImageInput(height=64, width=64))
    live = field.batch([path])
    made = pretrained.frozen_features(live)
    field.features = FeatureStore(tmp_path / "kept", made.shape[1:])
    field.features.add([path], made.half().numpy())
    kept = field.batch([path])
    assert kept.pixels is None
    difference = pretrained.read(kept).places.states - pretrained.read(live).places.states
    assert difference.abs().max() < 0.02


def test_a_batch_of_one_picture_with_a_single_cell_is_learned_from() -> None:
    encoder = ConvolutionalEncoder(ConvolutionalEncoderSettings(backbone="resnet18", weights="none.pth", size=16))
    assert {name for name in encoder.state_dict() if name.startswith("centred")} == {
        "centred.running_mean",
        "centred.running_var",
        "centred.num_batches_tracked",
    }
    encoder.train()
    encoder(torch.randint(0, 256, (3, 3, 32, 32)))
    before = encoder.centred.running_mean.clone()
    encoded = encoder(torch.randint(0, 256, (1, 3, 32, 32)))
    assert encoded.places.states.shape == (1, 1, 16)
    assert encoded.places.states.isfinite().all()
    assert (encoder.centred.running_mean == before).all()


def test_pictures_need_no_word_of_their_encoder() -> None:
    recipe = load_recipe({"inputs": {"image": {"kind": "image"}, "question": {}}, "output": {"kind": "label"}})
    assert recipe.encoder_of("image").kind == "convolutional"
    assert recipe.encoder_of("question").kind == "recurrent"


def test_what_a_frozen_network_makes_is_centred(pretrained: ConvolutionalEncoder) -> None:
    """Channels of maps that share a large part; at rest each picture is read alike alone and beside others."""
    torch.manual_seed(0)
    maps = 3 + torch.rand(1, 1280, 1, 1) * 5 + torch.randn(40, 1280, 2, 2).abs()
    both, one = (Pictures(None, torch.full((len(some),), 64), maps=some) for some in (maps, maps[:1]))
    pretrained.train()
    for _ in range(60):
        pretrained.read(both)
    pretrained.eval()
    with torch.no_grad():
        pretrained.W_p.bias.zero_()
        together, alone = pretrained.read(both).summary, pretrained.read(one).summary
    assert together.mean(0).abs().max() < 0.1 * together.std()
    torch.testing.assert_close(alone, together[:1], atol=1e-5, rtol=1e-4)
