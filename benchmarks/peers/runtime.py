"""seq2see-runtime as a worker: a model that `seq2see export --to onnx` wrote."""

from __future__ import annotations

import sys
from pathlib import Path

from turns import config, serve_decoding

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime"))

from seq2see_runtime import Model, load

from seq2see.search import options as search_options


class Decoder:
    model: Model

    def load(self, path: str) -> None:
        self.model = load(path, threads=config["threads"])

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        search_options.BATCH_ROWS, search_options.BATCH_TOKENS = batch, 1_000_000
        predictions = self.model.predict(sentences, beam=beam, n_best=1, replace_unknown=False)
        return [prediction.text or "" for prediction in predictions]


if __name__ == "__main__":
    decoder = Decoder()
    serve_decoding(decoder.load, decoder.decode)
