"""The same tokenised multi30k for all engines, as files that each of them reads by itself."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE, TARGET = "en", "de"
SEEN = 2
"""Words of the vocabularies were seen so often in the training rows."""


def data_folder(named: str | None) -> Path:
    """multi30k in the folder that was named, in SEQ2SEE_DATA, or beside the project."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(named or os.environ.get("SEQ2SEE_DATA") or beside) / "multi30k"
    if not (folder / "train.tsv.gz").is_file():
        raise SystemExit(f"no multi30k in {folder.parent}; name the folder of data sets with --data or SEQ2SEE_DATA")
    return folder


def tokenise(text: str) -> str:
    """Words and marks of punctuation with spaces between them, case as it is.

    >>> tokenise("Zwei Hunde rennen.")
    'Zwei Hunde rennen .'
    """
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def rows_of(path: Path) -> Iterator[tuple[str, str]]:
    """The tokenised pairs of a table; those with an empty side are left out."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            source, target = tokenise(row[SOURCE]), tokenise(row[TARGET])
            if source and target:
                yield source, target


def prepare(multi30k: Path, out: Path) -> Path:
    """Write train, dev and test as .en and .de and as .tsv, and the vocabularies; returns their folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name, table in {"train": "train.tsv.gz", "dev": "dev.tsv", "test": "test2016.tsv"}.items():
        rows = list(rows_of(multi30k / table))
        for language, texts in zip((SOURCE, TARGET), zip(*rows, strict=True), strict=True):
            (out / f"{name}.{language}").write_text("\n".join(texts) + "\n", encoding="utf-8")
            if name == "train":
                counts = Counter(word for text in texts for word in text.split())
                words = [word for word, count in counts.most_common() if count >= SEEN]
                (out / f"vocabulary.{language}").write_text("\n".join(words) + "\n", encoding="utf-8")
        lines = [f"{SOURCE}\t{TARGET}", *("\t".join(row) for row in rows)]
        (out / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return out


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
