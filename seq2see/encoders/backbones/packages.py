"""Any network of timm or torchvision, where those are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from seq2see.encoders.backbones.base import Backbone, Scaling
from seq2see.encoders.backbones.weights import take
from seq2see.errors import UserError, imported

HEADS = ("avgpool", "fc", "classifier", "head", "heads", "AuxLogits", "aux1", "aux2", "dropout")
"""Names of torchvision's parts behind the map of a picture, or beside it."""

PROBE = 224


class Timm(Backbone):
    """A network of timm by its name there, with the weights it was published with."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        self.network = self._made(pretrained=False)
        config = imported("timm.data", extra="timm").resolve_model_data_config(self.network)
        self.scaling = Scaling(config["mean"], config["std"])
        self.size = int(cast(Any, self.network).num_features)
        _check_map(f"timm:{name}", self)

    def _made(self, *, pretrained: bool) -> nn.Module:
        timm = imported("timm", extra="timm")
        try:
            return cast(nn.Module, timm.create_model(self.name, pretrained=pretrained, num_classes=0, global_pool=""))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: timm:{self.name}: {_said(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=("fc.", "classifier.", "head.fc.", "head."))
        else:
            self.network.load_state_dict(self._made(pretrained=True).state_dict())

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = cast(Any, self.network).forward_features(self.scaling(pixels))
        maps_last = found.ndim == 4 and found.shape[1] != self.size and found.shape[3] == self.size
        return found.permute(0, 3, 1, 2) if maps_last else found


class Torchvision(Backbone):
    """A network of torchvision by its name there, with the weights it was published with; parts keep their names."""

    least = 32

    def __init__(self, name: str, weights: Path | None = None):
        super().__init__()
        self.name, self.weights = name, weights
        whole = self._made(None)
        parts = dict(whole.named_children())
        kept = {"features": parts["features"]} if "features" in parts else _before_head(parts)
        self.network = nn.ModuleDict(kept)
        self.scaling = Scaling()
        self.size = _check_map(f"torchvision:{name}", self)

    def _made(self, weights: str | None) -> nn.Module:
        models = imported("torchvision.models", extra="torchvision")
        try:
            return cast(nn.Module, models.get_model(self.name, weights=weights))
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise UserError(f"encoder.backbone: torchvision:{self.name}: {_said(error)}") from None

    def fetch(self) -> None:
        if self.weights is not None:
            take(self.network, self.weights, head=tuple(f"{name}." for name in HEADS))
            return
        kept = self.network.state_dict()
        whole = self._made("DEFAULT").state_dict()
        self.network.load_state_dict({name: one for name, one in whole.items() if name in kept})

    def forward(self, pixels: Tensor) -> Tensor:
        states: Tensor = self.scaling(pixels)
        for part in self.network.values():
            states = part(states)
        return states


def _before_head(parts: dict[str, nn.Module]) -> dict[str, nn.Module]:
    return {name: part for name, part in parts.items() if name not in HEADS}


def _check_map(name: str, backbone: Backbone) -> int:
    """The size of a cell of the map that a network makes; refused where it makes none."""
    backbone.eval()
    try:
        with torch.no_grad():
            found = backbone(torch.zeros(1, 3, PROBE, PROBE))
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        raise UserError(f"encoder.backbone: {name} makes no map of a picture: {_said(error)}") from None
    finally:
        backbone.train()
    if not isinstance(found, Tensor) or found.ndim != 4:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UserError(
            f"encoder.backbone: {name} makes no map of a picture (it gives {shape}); allowed: a "
            "convolutional network, whose cells can be looked at"
        )
    return int(found.shape[1])


def _said(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
