"""CTranslate2 as a worker: a translator over a model that `seq2see export` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ctranslate2
from turns import config, serve_decoding


class Decoder:
    translator: ctranslate2.Translator
    search: dict[str, Any]

    def load(self, path: str) -> None:
        self.translator = ctranslate2.Translator(
            path, device="cpu", compute_type=config["compute"], inter_threads=1, intra_threads=config["threads"]
        )
        self.search = json.loads((Path(path) / "search.json").read_text("utf-8")) | {"replace_unknowns": False}

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        results = self.translator.translate_batch(
            [sentence.split() for sentence in sentences],
            **(self.search | {"beam_size": beam}),
            max_batch_size=batch,
            batch_type="examples",
        )
        return [" ".join(word for word in result.hypotheses[0] if word != "<eos>") for result in results]


if __name__ == "__main__":
    decoder = Decoder()
    serve_decoding(decoder.load, decoder.decode)
