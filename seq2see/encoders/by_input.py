"""One module per input, kept under the name the user gave it, so that weights on disk read as the recipe does."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import Generic, TypeVar, cast

from torch import nn

M = TypeVar("M", bound=nn.Module)


class ByInput(nn.ModuleDict, Generic[M]):
    """A dictionary of modules that takes any input's name: torch's own refuses `keys`, `type` and whatever else it has
    as an attribute. Modules are reached by item, never by attribute, so nothing is shadowed.

    >>> list(ByInput({"keys": nn.Identity()}).state_dict()), ByInput({"keys": nn.Identity()})["keys"]
    ([], Identity())
    """

    def __init__(self, modules: Mapping[str, M] | None = None):
        super().__init__(cast("Mapping[str, nn.Module] | None", modules))

    def add_module(self, name: str, module: nn.Module | None) -> None:
        self._modules[name] = module  # type: ignore[assignment]

    def __getitem__(self, key: str) -> M:
        return cast(M, super().__getitem__(key))

    def items(self) -> ItemsView[str, M]:
        return cast("ItemsView[str, M]", super().items())
