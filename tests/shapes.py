"""The checker of shapes and types that tests put around every function of the packages with shapes."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from types import CodeType, FunctionType
from typing import Any, Protocol, runtime_checkable

import jaxtyping
import torch
from beartype import beartype

FIRST, EVERY = 5, 100
"""Which calls of a function a test checks: the first few, where a wrong signature shows, and then one in so many, where
a shape does that changes on the way. Checking all of a training run's would take most of its time."""

Function = Callable[..., Any]

_checking: Any = jaxtyping.jaxtyped
_calls: Counter[CodeType] = Counter()


def install(packages: Sequence[str]) -> None:
    """Check what is imported from these packages from now on."""
    jaxtyping.jaxtyped = sparing  # type: ignore[assignment]
    jaxtyping.install_import_hook(packages, f"{checked.__module__}.{checked.__name__}")


def begin() -> None:
    """A new test, or what several will share: every function is checked again."""
    _calls.clear()


def checked(function: Function) -> Function:
    """beartype, for signatures that name a Protocol too.

    beartype refuses a Protocol that isinstance() cannot check. The package has no use for such checks, so it is here,
    not there, that the protocols a function can name are made checkable.
    """
    for named in vars(sys.modules[function.__module__]).values():
        if isinstance(named, type) and Protocol in named.__bases__:
            runtime_checkable(named)
    return beartype(function)


def sparing(function: Any = None, *, typechecker: Function | None = None) -> Any:
    """jaxtyped, for some of the calls of a function, or of what makes a dataclass."""
    if function is None:
        return partial(sparing, typechecker=typechecker)
    if isinstance(function, FunctionType):
        if not _due(function.__code__):  # one that is made inside another, each time anew
            return function
        return _sometimes(function, _checking(function, typechecker=typechecker))
    plain = function.__init__ if dataclasses.is_dataclass(function) else None
    made = _checking(function, typechecker=typechecker)
    if plain is not None and made.__init__ is not plain:
        made.__init__ = _sometimes(plain, made.__init__)
    return made


def _sometimes(plain: FunctionType, full: Function) -> Function:
    code = plain.__code__

    @wraps(plain)
    def called(*args: Any, **given: Any) -> Any:
        return (full if _due(code) else plain)(*args, **given)

    return called


def _due(code: CodeType) -> bool:
    """Whether this call is checked; never while a model is traced for export, where sizes are symbols."""
    if torch.compiler.is_exporting():
        return False
    _calls[code] += 1
    return _calls[code] <= FIRST or _calls[code] % EVERY == 0
