"""CTranslate2 as a worker: a translator over a converted model."""

from __future__ import annotations

import ctranslate2
from turns import config, serve_decoding


class Decoder:
    translator: ctranslate2.Translator

    def load(self, path: str) -> None:
        self.translator = ctranslate2.Translator(
            path, device="cpu", compute_type=config["compute"], inter_threads=1, intra_threads=config["threads"]
        )

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        results = self.translator.translate_batch(
            [sentence.split() for sentence in sentences],
            beam_size=beam,
            max_batch_size=batch,
            batch_type="examples",
            max_decoding_length=100,
        )
        return [" ".join(result.hypotheses[0]) for result in results]


if __name__ == "__main__":
    decoder = Decoder()
    serve_decoding(decoder.load, decoder.decode)
