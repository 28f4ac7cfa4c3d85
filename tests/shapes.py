"""The checker of shapes and types that tests put around every function of the shaped rooms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from beartype import beartype


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype, for signatures that name a Protocol too.

    beartype refuses a Protocol that isinstance() cannot check. The package has no use for such checks, so it is here,
    not there, that the protocols a function can name are made checkable.
    """
    for named in vars(sys.modules[function.__module__]).values():
        if isinstance(named, type) and Protocol in named.__bases__:
            runtime_checkable(named)
    return beartype(function)
