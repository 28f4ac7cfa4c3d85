"""A Hugging Face dataset that `save_to_disk` left in a folder, through the `datasets` library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2see.data.formats import Format, Row, formats
from seq2see.errors import UserError, imported, listing


@formats.register("folder")
class SavedDataset(Format):
    """Rows come from the mapped Arrow files of the folder: they are not all loaded."""

    unit = "row"

    def columns(self) -> list[str]:
        splits = self.path / "dataset_dict.json"
        if splits.exists():
            names = sorted(one.name for one in self.path.iterdir() if (one / "state.json").exists())
            example = f", for example {self.path / names[0]}" if names else ""
            raise UserError(f"{self.path}: a dataset in parts ({', '.join(names)}): give the folder of one{example}")
        if not (self.path / "state.json").exists():
            raise UserError(
                f"{self.path}: a folder, but not of a Hugging Face dataset (no state.json in it); give a table's file"
            )
        self._dataset = self._load()
        if not len(self._dataset):
            raise UserError(f"{self.path}: columns ({listing(self._dataset.column_names)}) but no rows")
        return [str(name) for name in self._dataset.column_names]

    def _load(self) -> Any:
        datasets = imported("datasets", extra="datasets")
        try:
            return datasets.load_from_disk(str(self.path))
        except Exception as error:  # noqa: BLE001 - the library raises many kinds for a damaged folder
            raise UserError(f"{self.path}: a damaged dataset folder: {error}") from None

    def rows(self) -> Iterator[Row]:
        number = 0
        try:
            for number, values in enumerate(self._dataset, start=1):
                yield Row(dict(values), number)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - as above: text that is none, types that Python has not
            raise UserError(f"{self.path}, after row {number}: cannot be read: {error}") from None

    @staticmethod
    def write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, packed: bool) -> None:
        raise UserError(f"{path}: a dataset folder is read, not written; write .parquet, .jsonl, .tsv or .csv")
