"""Recipes to make mistakes in, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe

ONE: dict[str, Any] = {"inputs": {"source": {}}}
TWO: dict[str, Any] = {"inputs": {"a": {}, "b": {}}}
LABEL: dict[str, Any] = {**ONE, "output": {"kind": "label"}}


def refused(raw: Any, *overrides: str) -> str:
    with pytest.raises(UserError) as error:
        load_recipe(raw, overrides=overrides)
    return str(error.value)
