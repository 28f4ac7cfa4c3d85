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

    Further places of an input have a point in their name, which parts names of weights: there it is a slash.

    >>> both = ByInput({"document.words": nn.Linear(1, 1, bias=False)})
    >>> list(both.state_dict()), "document.words" in both, [name for name, _ in both.items()]
    (['document/words.weight'], True, ['document.words'])
    """

    def __init__(self, modules: Mapping[str, M] | None = None):
        super().__init__(cast("Mapping[str, nn.Module] | None", modules))

    def add_module(self, name: str, module: nn.Module | None) -> None:
        self._modules[_stored(name)] = module  # type: ignore[assignment]

    def __getitem__(self, key: str) -> M:
        return cast(M, super().__getitem__(_stored(key)))

    def items(self) -> ItemsView[str, M]:
        found = {name.replace("/", "."): module for name, module in super().items()}
        return cast("ItemsView[str, M]", found.items())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_stored(str(key)))


def _stored(name: str) -> str:
    return name.replace(".", "/")
