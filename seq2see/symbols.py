"""Symbols of parameters: the names that the equations of a model use for its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import nn


@dataclass(frozen=True)
class Symbol:
    """name: as in the equations ('W_q'); where: which of several equal parts holds it ('layer 1 forwards');

    part: the heading it is listed under ('attention over source'), where that is not the module that holds it;
    merged: no equation names it, so that all parameters of this name are counted together.

    >>> str(Symbol("W_q").inside("sentences").inside("layer 1"))
    'W_q, sentences, layer 1'
    """

    name: str
    where: str = ""
    part: str = ""
    merged: bool = False

    def inside(self, where: str) -> Symbol:
        """The same symbol in a part of that name."""
        return replace(self, where=", ".join(filter(None, (self.where, where))))

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, self.where)))


Symbols = dict[str, Symbol]
"""The symbol of each parameter of a module, by the parameter's name there (as in `named_parameters`)."""


def symbols_of(module: nn.Module, name: str = "") -> Symbols:
    """The symbols of all parameters of a module: its own `parameter_symbols()`, or those of `default_symbols`.

    name: what the module is called by the one that holds it, for the layers of torch, which have no names of their own.
    """
    describe = getattr(module, "parameter_symbols", None)
    if describe is not None:
        symbols: Symbols = describe()
        return symbols
    return default_symbols(module, name)


def default_symbols(module: nn.Module, name: str = "") -> Symbols:
    """A parameter has its own name; `symbols`, a dictionary on its class, may give it another.

    A layer of torch lends its name to its weight, and its bias is b with the same index.

    >>> part = nn.ModuleDict({"W_q": nn.Linear(2, 2), "norm": nn.LayerNorm(2)})
    >>> [str(symbol) for symbol in default_symbols(part).values()]
    ['W_q', 'b_q', 'norm', 'b of norm']
    """
    known = getattr(module, "symbols", None)
    known = known if isinstance(known, Mapping) else {}
    if _is_layer(module):
        known = {"weight": name, "bias": _bias(name)}
    symbols = {key: Symbol(known.get(key, key)) for key, _ in module.named_parameters(recurse=False)}
    for child, below in module.named_children():
        inner = symbols_of(below, f"{name}.{child}" if child.isdigit() and name else child)
        for own, symbol in inner.items():
            key = f"{child}.{own}"
            symbols[key] = Symbol(known[key]) if key in known else symbol
    return symbols


def layer_symbols(layers: nn.ModuleList, name: str = "layers") -> Symbols:
    """The symbols of layers on top of each other, 'W_q, layer 1', by their names in the module that holds the list."""
    symbols: Symbols = {}
    for number, layer in enumerate(layers):
        symbols |= prefixed(f"{name}.{number}", symbols_of(layer), where=f"layer {number + 1}")
    return symbols


def prefixed(name: str, symbols: Mapping[str, Symbol], *, where: str = "") -> Symbols:
    """The symbols of a child of that name, as the module that holds it lists them."""
    return {f"{name}.{key}": symbol.inside(where) if where else symbol for key, symbol in symbols.items()}


def _is_layer(module: nn.Module) -> bool:
    """Whether it is a layer of torch with a weight."""
    return type(module).__module__.startswith("torch.nn") and hasattr(module, "weight")


def _bias(name: str) -> str:
    return f"b{name[1:]}" if name[1:].startswith("_") else f"b of {name}"
