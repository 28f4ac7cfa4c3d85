"""Save small models of a version that is about to be released: `python -m tests.models.make_models tests/models/1.0.0`.

Each is trained on the table of its recipe and saved without checkpoints; expected.json beside them holds what they say.
Folders of earlier versions stay as they are: they must always load.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import seq2see
from tests.models.saying import said
from tests.record.cases import Case, overrides
from tests.record.tables import make

UPDATES = 300
QUIET = ("training.report_every=0", "training.learning_rate=0.02")
CASES = {
    "transliteration": Case("transliteration", ("attention.size=8", *QUIET)),
    "entailment": Case("entailment", QUIET),
    "image-captioning": Case("image-captioning", QUIET),
    "translation-transformer": Case("translation-transformer", ("encoder.layers=1", "decoder.layers=1", *QUIET)),
    "autoencoder": Case("autoencoder", QUIET),
}


def main(version: Path) -> None:
    version.mkdir(parents=True)
    expected: dict[str, Any] = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = make(case.recipe, Path(folder) / "table")
            settings: dict[str, Any] = {"overrides": overrides(case), "listeners": []}
            model = seq2see.train(case.recipe, table.data, out=Path(folder) / "run", updates=UPDATES, **settings)
            model.save(version / name)
            inputs = [_kept(one, version) for one in table.inputs]
            expected[name] = {"inputs": inputs, "output": "" if name == "autoencoder" else table.output}
        expected[name] |= said(version, name, **expected[name])
    lines = [f"{json.dumps(name)}: {json.dumps(told, ensure_ascii=False)}" for name, told in expected.items()]
    (version / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _kept(given: Any, version: Path) -> Any:
    """An input that can be given again: of files a copy beside the models."""
    if not isinstance(given, str) or not given.endswith(".png"):
        return given
    shutil.copyfile(given, version / Path(given).name)
    return Path(given).name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
