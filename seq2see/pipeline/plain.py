"""Numbers as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same with null in place of infinity and of what is no number, which JSON has not.

    >>> finite({"perplexity": float("inf"), "tokens": (1, 2.5)})
    {'perplexity': None, 'tokens': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
