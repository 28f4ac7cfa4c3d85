"""Published networks of our own writing: their names and numbers, their weights from files, and how they are tuned."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file as write
from torch import Tensor, nn
from torch.nn import functional as F

from seq2see.encoders import ConvolutionalEncoder
from seq2see.encoders.backbones import MAKERS, PACKAGES, Backbone, base, build_backbone
from seq2see.encoders.backbones.pretrained import ResNet, Vgg16
from seq2see.encoders.convolutional import ConvolutionalEncoderSettings
from seq2see.errors import MissingExtra, UserError
from seq2see.recipe import load_recipe

# What the papers and the published files count, their classifiers for 1,000 classes left out.
PUBLISHED = {"resnet18": 11_689_512 - 513_000, "resnet34": 21_797_672 - 513_000, "resnet50": 25_557_032 - 2_049_000}
KEYS = {
    "resnet18": ["conv1.weight", "bn1.running_var", "layer1.1.conv2.weight", "layer4.0.downsample.1.bias"],
    "resnet34": ["layer3.5.bn2.weight", "layer2.0.downsample.0.weight"],
    "resnet50": ["layer1.0.downsample.0.weight", "layer3.5.conv3.weight", "layer4.2.bn3.running_mean"],
}


def made(**given: Any) -> ConvolutionalEncoder:
    return ConvolutionalEncoder(ConvolutionalEncoderSettings(size=8, **given))


def save_file(tensors: dict[str, Tensor], path: Path) -> None:
    write({name: one.contiguous() for name, one in tensors.items()}, path)


def learned(network: nn.Module) -> dict[str, Tensor]:
    """Weights as if it had been trained: nothing is one or zero."""
    torch.manual_seed(5)
    return {
        name: one
        if not one.is_floating_point()
        else one * 0.5 + 0.5 * torch.rand(one.shape) * (one.std() if one.ndim > 1 else 1)
        for name, one in network.state_dict().items()
    }


def test_recipes_know_the_networks_there_are() -> None:
    assert {*MAKERS, base.SMALL} == {base.SMALL, *base.CARRIED, *base.FILED}
    assert set(PACKAGES) == set(base.PACKAGES)


@pytest.mark.parametrize("name", PUBLISHED)
def test_residual_networks_have_the_published_names_and_numbers(name: str) -> None:
    with torch.device("meta"):
        network = ResNet(name)
    assert sum(one.numel() for one in network.parameters()) == PUBLISHED[name]
    assert set(KEYS[name]) <= network.network.state_dict().keys()
    assert not [key for key in network.network.state_dict() if key.startswith("fc")]
    assert network(torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, network.size, 7, 7)


def test_vgg_has_the_published_names_and_numbers() -> None:
    with torch.device("meta"):
        network = Vgg16()
    convolutions = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
    expected = {f"features.{number}.{part}" for number in convolutions for part in ("weight", "bias")}
    assert network.network.state_dict().keys() == expected
    assert sum(one.numel() for one in network.parameters()) == 14_714_688
    assert network(torch.zeros(1, 3, 224, 224, device="meta")).shape == (1, 512, 14, 14)


def resnet18_by_name(weights: dict[str, Tensor], scaled: Tensor) -> Tensor:
    """The network written a second time, as a function of its published weights."""

    def normal(name: str, x: Tensor) -> Tensor:
        mean, var, scale, shift = (weights[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return (x - mean[:, None, None]) / (var[:, None, None] + 1e-5).sqrt() * scale[:, None, None] + shift[
            :, None, None
        ]

    x = F.max_pool2d(
        normal("bn1", F.conv2d(scaled, weights["conv1.weight"], stride=2, padding=3)).clamp(min=0), 3, 2, 1
    )
    for level in range(1, 5):
        for block in range(2):
            name = f"layer{level}.{block}"
            stride = 2 if level > 1 and block == 0 else 1
            inner = normal(f"{name}.bn1", F.conv2d(x, weights[f"{name}.conv1.weight"], stride=stride, padding=1)).clamp(
                min=0
            )
            inner = normal(f"{name}.bn2", F.conv2d(inner, weights[f"{name}.conv2.weight"], padding=1))
            if stride == 2:
                x = normal(f"{name}.downsample.1", F.conv2d(x, weights[f"{name}.downsample.0.weight"], stride=2))
            x = (x + inner).clamp(min=0)
    return x


def test_a_residual_network_computes_what_its_equations_say(tmp_path: Path) -> None:
    weights = learned(ResNet("resnet18").network)
    torch.save(weights, tmp_path / "weights.pth")  # noqa: TID251 - as such files are published
    encoder = made(backbone="resnet18", weights=str(tmp_path / "weights.pth")).eval()
    encoder.fetch()
    pixels = torch.randint(0, 256, (2, 3, 64, 96))
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    scaled = (pixels / 255 - mean[:, None, None]) / deviation[:, None, None]
    expected = resnet18_by_name(weights, scaled)
    assert torch.allclose(encoder.map_of(pixels), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_vgg_computes_what_its_equations_say(tmp_path: Path) -> None:
    torch.manual_seed(1)
    network = Vgg16()
    save_file({**network.network.state_dict(), "classifier.0.weight": torch.zeros(4, 4)}, tmp_path / "w.safetensors")
    encoder = made(backbone="vgg16", weights=str(tmp_path / "w.safetensors")).eval()
    encoder.fetch()
    pixels = torch.randint(0, 256, (1, 3, 32, 48))
    x = network.scaling(pixels.float())
    for number in (0, 2, "pool", 5, 7, "pool", 10, 12, 14, "pool", 17, 19, 21, "pool", 24, 26, 28):
        if number == "pool":
            x = F.max_pool2d(x, 2)
        else:
            weights = network.network.state_dict()
            x = F.conv2d(x, weights[f"features.{number}.weight"], weights[f"features.{number}.bias"], padding=1).relu()
    assert encoder.map_of(pixels).shape == (1, 512, 2, 3)
    assert torch.allclose(encoder.map_of(pixels), x, atol=1e-4)


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return learned(ResNet("resnet18").network)


def refused(weights: Path) -> str:
    with pytest.raises(UserError) as refusal:
        made(backbone="resnet18", weights=str(weights)).fetch()
    assert str(weights) in str(refusal.value)
    return str(refusal.value)


def test_files_as_they_come_are_taken(weights: dict[str, Tensor], tmp_path: Path) -> None:
    """With a classifier, wrapped by a training script, from several devices, from before batches were counted."""
    held = {f"module.{name}": one for name, one in weights.items() if "num_batches" not in name}
    held |= {"module.fc.weight": torch.zeros(1000, 512), "module.fc.bias": torch.zeros(1000)}
    torch.save({"epoch": 3, "state_dict": held}, tmp_path / "a.tar")  # noqa: TID251 - as such files are published
    encoder = made(backbone="resnet18", weights=str(tmp_path / "a.tar"))
    encoder.fetch()
    taken = encoder.backbone.network.state_dict()
    assert all(torch.equal(taken[name], one) for name, one in weights.items() if "num_batches" not in name)


def test_files_that_do_not_fit_are_refused_by_name(weights: dict[str, Tensor], tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "gone.pth")

    path = tmp_path / "other.safetensors"
    save_file({"features.0.weight": torch.zeros(2), "features.0.bias": torch.zeros(2)}, path)
    said = refused(path)
    assert "lacks conv1.weight, bn1.weight, bn1.bias and" in said
    assert "has features.0." in said

    path = tmp_path / "shape.safetensors"
    save_file({**weights, "layer2.0.conv1.weight": torch.zeros(128, 64, 1, 1)}, path)
    assert "layer2.0.conv1.weight is 128 x 64 x 1 x 1, and the backbone's is 128 x 64 x 3 x 3" in refused(path)

    for suffix in (".safetensors", ".pth"):
        path = tmp_path / f"cut{suffix}"
        if suffix == ".pth":
            torch.save(weights, path)  # noqa: TID251 - as such files are published
        else:
            save_file(weights, path)
        path.write_bytes(path.read_bytes()[:200_000])
        assert "damaged or cut short" in refused(path)

    (tmp_path / "text.pth").write_text("no weights", encoding="utf-8")
    assert "not a file of weights" in refused(tmp_path / "text.pth")
    (tmp_path / "empty.pth").write_bytes(b"")
    assert "damaged or cut short" in refused(tmp_path / "empty.pth")
    torch.save([1, 2], tmp_path / "list.pth")  # noqa: TID251 - as such files are published
    assert "holds list, not weights by name" in refused(tmp_path / "list.pth")
    torch.save({"lr": 0.1}, tmp_path / "numbers.pth")  # noqa: TID251 - as such files are published
    assert "lr: no weights" in refused(tmp_path / "numbers.pth")


class Runs:
    """What a file could make happen, if more than tensors were read."""

    ran = False

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (setattr, (Runs, "ran", True))  # type: ignore[return-value]


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    torch.save({"conv1.weight": Runs()}, tmp_path / "bad.pth")  # noqa: TID251 - the file must be a bad one
    assert "holds more than tensors" in refused(tmp_path / "bad.pth")
    assert not Runs.ran


@pytest.mark.parametrize("given", [{"backbone": "resnet18"}, {"backbone": "vgg16"}], ids=str)
def test_a_tuned_network_learns_and_a_frozen_one_does_not(given: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(2)
    whole = (ResNet("resnet18") if given["backbone"] == "resnet18" else Vgg16()).network
    save_file(whole.state_dict(), tmp_path / "w.safetensors")
    pixels = torch.randint(0, 256, (2, 3, 32, 32))
    for tuned in (True, False):
        encoder = made(**given, weights=str(tmp_path / "w.safetensors"), tuned=tuned)
        encoder.fetch()
        encoder.train()
        before = {name: one.clone() for name, one in encoder.backbone.named_parameters()}
        assert (encoder.frozen is None) == tuned
        optimizer = torch.optim.SGD([one for one in encoder.parameters() if one.requires_grad], lr=0.1)
        encoder(pixels).summary.square().sum().backward()
        optimizer.step()
        moved = [name for name, one in encoder.backbone.named_parameters() if not torch.equal(one, before[name])]
        assert bool(moved) == tuned
        assert not tuned or any(name.endswith(("conv1.weight", "features.0.weight")) for name in moved)


def test_what_a_tuned_network_was_normalised_by_stays(weights: dict[str, Tensor], tmp_path: Path) -> None:
    """In training too a picture's map does not depend on those beside it."""
    save_file(weights, tmp_path / "w.safetensors")
    encoder = made(backbone="resnet18", weights=str(tmp_path / "w.safetensors"), tuned=True)
    encoder.fetch()
    encoder.train()
    pixels = torch.randint(0, 256, (3, 3, 64, 64))
    assert torch.allclose(encoder.map_of(pixels)[:1], encoder.map_of(pixels[:1]), rtol=1e-3, atol=1e-3)
    kept = encoder.backbone.network.state_dict()
    assert all(torch.equal(kept[name], one) for name, one in weights.items() if "running" in name)


def test_a_network_without_weights_learns_its_normalisation_from_any_batch() -> None:
    torch.manual_seed(3)
    encoder = made(backbone="resnet18", tuned=True).train()
    pixels = torch.randint(0, 256, (4, 3, 32, 32))
    encoder(pixels)
    assert encoder.backbone.network.bn1.running_mean.abs().sum() > 0
    alone = encoder(pixels[:1])  # a map of 1 x 1: a single number for each map, which is no distribution
    assert torch.isfinite(alone.summary).all()
    encoder.eval()
    assert torch.allclose(encoder(pixels).summary[:1], encoder(pixels[:1]).summary, atol=1e-4)


def test_narrow_pictures_are_continued_and_their_padding_is_no_place() -> None:
    encoder = made(backbone="vgg16", tuned=True).eval()
    encoded = encoder(torch.zeros(2, 3, 32, 10), torch.tensor([10, 4]))
    assert encoded.places.layout.shape == (2, 2)
    assert encoded.places.mask.tolist() == [[True, False] * 2] * 2


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        ({"backbone": "resnet-50"}, "encoder.backbone: unknown backbone 'resnet-50' (did you mean 'resnet50'?)"),
        ({"backbone": "timm:"}, "unknown backbone 'timm:'"),
        ({"backbone": "vgg16"}, "encoder.weights: vgg16 is frozen and has no weights; allowed: a file of weights"),
        ({"weights": "a.pth"}, "encoder.weights"),
    ],
    ids=str,
)
def test_recipes_refuse_what_cannot_be_built(encoder: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=r"encoder\.") as refusal:
        load_recipe({"inputs": {"image": {"kind": "image"}}, "encoder": {"kind": "convolutional", **encoder}})
    assert said in str(refusal.value)


def test_pretrained_networks_need_some_pixels() -> None:
    given = {"kind": "image", "height": 16, "width": 16}
    with pytest.raises(UserError, match="16 x 16 pixels; allowed: at least 32 each"):
        load_recipe(
            {"inputs": {"image": given}, "encoder": {"kind": "convolutional", "backbone": "vgg16", "tuned": True}}
        )


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_package_that_is_not_there_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (package, f"{package}.data", f"{package}.models"):
        monkeypatch.setitem(sys.modules, module, None)
    settings = ConvolutionalEncoderSettings(backbone=f"{package}:resnet26d")
    with pytest.raises(MissingExtra, match=rf"pip install 'seq2see\[{package}\]'"):
        build_backbone(settings, 3)


class Striped(nn.Module):
    """Stands in for a network of timm: its map has its numbers last, as some there have."""

    num_features = 5

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 5, 8, stride=8)

    def forward_features(self, pixels: Tensor) -> Tensor:
        return self.stem(pixels).permute(0, 2, 3, 1)


def with_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    timm, data = ModuleType("timm"), ModuleType("timm.data")

    def create_model(name: str, *, pretrained: bool, num_classes: int, global_pool: str) -> nn.Module:
        assert (num_classes, global_pool) == (0, "")
        if name != "striped":
            raise RuntimeError(f"Unknown model ({name})")
        network = Striped()
        nn.init.constant_(network.stem.weight, 1.0 if pretrained else 0.0)
        return network

    timm.create_model = create_model  # type: ignore[attr-defined]
    data.resolve_model_data_config = lambda network: {"mean": (0.5,) * 3, "std": (0.25,) * 3}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)


def test_a_network_of_timm_reads_pixels_scaled_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with_timm(monkeypatch)
    encoder = made(backbone="timm:striped")
    encoder.fetch()
    network: Any = encoder.backbone
    pixels = torch.full((1, 3, 32, 48), 255.0)
    found = encoder.map_of(pixels)
    assert found.shape == (1, 5, 4, 6)
    assert torch.allclose(found[0, :, 0, 0], 3 * 64 * 2.0 + network.network.stem.bias)
    assert "scaling.mean" in encoder.backbone.state_dict()
    with pytest.raises(UserError, match=r"timm:nothing: Unknown model \(nothing\)"):
        made(backbone="timm:nothing")


def with_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision, models = ModuleType("torchvision"), ModuleType("torchvision.models")

    def get_model(name: str, *, weights: str | None) -> nn.Module:
        whole = nn.Module()
        trunk = nn.Conv2d(3, 6, 16, stride=16)
        nn.init.constant_(trunk.weight, 1.0 if weights == "DEFAULT" else 0.0)
        if name == "featured":
            whole.features = nn.Sequential(trunk)
            whole.classifier = nn.Linear(6, 1000)
        elif name == "flat":
            whole.flatten = nn.Flatten()
        else:
            whole.conv1, whole.relu = trunk, nn.ReLU()
            whole.avgpool, whole.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(6, 1000)
        return whole

    models.get_model = get_model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


@pytest.mark.parametrize(("name", "key"), [("featured", "features.0.weight"), ("plain", "conv1.weight")])
def test_a_network_of_torchvision_keeps_the_names_of_its_parts(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_torchvision(monkeypatch)
    encoder = made(backbone=f"torchvision:{name}")
    network: Any = encoder.backbone
    assert network.network.state_dict().keys() == {key, key.replace("weight", "bias")}
    encoder.fetch()
    assert (network.network.state_dict()[key] == 1).all()
    assert encoder.map_of(torch.zeros(1, 3, 64, 32)).shape == (1, 6, 4, 2)

    mine = {key: torch.full((6, 3, 16, 16), 0.5), key.replace("weight", "bias"): torch.zeros(6)}
    save_file({**mine, "fc.weight": torch.zeros(3, 6)}, tmp_path / "w.safetensors")
    filed = made(backbone=f"torchvision:{name}", weights=str(tmp_path / "w.safetensors"))
    filed.fetch()
    taken: Backbone = filed.backbone
    assert (taken.state_dict()[f"network.{key}"] == 0.5).all()


def test_a_network_without_a_map_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_torchvision(monkeypatch)
    with pytest.raises(UserError, match=r"torchvision:flat .* a map"):
        made(backbone="torchvision:flat")
