"""What several tests of this room say in one word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.data.formats import DataSettings
from seq2see.data.tables import Table, read
from seq2see.errors import UserError

Put = Callable[[str, str | bytes], Path]


def skipping(path: Path) -> Table:
    return read(path, settings=DataSettings(on_error="skip"))


def error_of(action: Callable[[], object]) -> str:
    """The message of the UserError that an action raises."""
    with pytest.raises(UserError) as caught:
        action()
    return str(caught.value)
