"""What every sample is: a name, what it is for, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from seq2see.data.output import unwritable
from seq2see.errors import UserError

Written = Mapping[str, int]
"""{file of the table: its rows}"""


@dataclass(frozen=True)
class Sample:
    """One set of small data. Its module is imported when it is asked for, and has a function `write(folder)` that fills
    an existing folder and tells what it wrote there: `train.tsv` and `dev.tsv`."""

    module: str
    about: str
    recipes: tuple[str, ...]

    def write(self, folder: str | Path) -> Written:
        """Write all of it into a folder, which is made where there is none."""
        folder = Path(folder)
        writer: Callable[[Path], Written] = import_module(self.module).write
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder}: a file; the data go into a folder") from None
        except OSError as error:
            raise unwritable(folder, error) from None
        try:
            return writer(folder)
        except OSError as error:
            raise unwritable(folder, error) from None
