"""Byte-pair encoding, learned from the table: frequent words stay whole, rare ones fall into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Metaspace, Punctuation
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import BpeTrainer

from seq2see.data.output import write_bytes
from seq2see.data.symbols import LearnedSplitter, splitters
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_json, shortened

SPACE = "▁"
DEFAULT_SIZE = 8000
CACHED_WORDS = 1 << 17


@splitters.register("bpe")
class Pieces(LearnedSplitter):
    """Pieces of words; `▁` stands for the space before a word, so joining gives back the text up to spaces.

    Punctuation is split off before pieces are learned. A `▁` in the text itself becomes `_`.
    """

    def __init__(self) -> None:
        self._use(Tokenizer(BPE(vocab={"<unk>": 0}, merges=[], unk_token="<unk>")))

    def _use(self, tokenizer: Tokenizer) -> None:
        tokenizer.pre_tokenizer = _pieces_of_lines()
        self._tokenizer = tokenizer
        self._cached = lru_cache(maxsize=CACHED_WORDS)(self._word)

    def _word(self, word: str) -> tuple[str, ...]:
        """Pieces of one word. What the alphabet lacks keeps its own spelling, so that it can be copied and shown."""
        encoding = self._tokenizer.encode(word, add_special_tokens=False)
        return tuple(
            word[start:end] if piece == "<unk>" else piece
            for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        )

    def split(self, text: str) -> list[str]:
        word = self._cached
        return [piece for part in text.replace(SPACE, "_").split() for piece in word(part)]

    def join(self, symbols: Sequence[str]) -> str:
        return "\n".join(line.strip() for line in "".join(symbols).replace(SPACE, " ").split("\n"))

    def learn(self, texts: Iterable[str], *, size: int, min_count: int) -> None:
        """Learn at most `size` pieces (0: 8,000); what occurs once is not merged, or all words would stay whole."""
        most = (size or DEFAULT_SIZE) + len(SPECIALS)
        trainer = BpeTrainer(
            vocab_size=most,
            min_frequency=max(2, min_count),
            limit_alphabet=most - len(SPECIALS),
            special_tokens=list(SPECIALS),
            show_progress=False,
        )
        learner = Tokenizer(BPE(unk_token="<unk>"))
        learner.pre_tokenizer = _pieces_of_lines()
        learner.train_from_iterator((text.replace(SPACE, "_") for text in texts), trainer=trainer)
        # The model alone is kept: a trained tokenizer would also find special symbols that are spelled out in the text.
        self._use(Tokenizer(learner.model))

    def known(self) -> list[str]:
        vocabulary = self._tokenizer.get_vocab()
        return [piece for piece in sorted(vocabulary, key=vocabulary.__getitem__) if piece not in SPECIALS]

    def save(self, path: Path) -> None:
        write_bytes(path, (self._tokenizer.to_str(pretty=True) + "\n").encode("utf-8"))

    def load(self, path: Path) -> None:
        """Only pieces and merges are taken from the file: patterns and filters that a tokenizer's file may also hold
        are not run."""
        stored = read_json(path, most=256 * MEBIBYTE, what="a BPE file")
        try:
            vocabulary, merges = _learned(stored)
            self._use(Tokenizer(BPE(vocab=vocabulary, merges=merges, unk_token="<unk>")))
        except Exception as error:  # noqa: BLE001 - the library raises nothing more precise
            raise UserError(f"{path}: damaged BPE file: {error}") from None


def _learned(stored: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The pieces with their ids, and the merges in their order; ValueError where a file does not hold them."""
    model = stored.get("model") if isinstance(stored, dict) else None
    pieces, merges = (model.get(key) if isinstance(model, dict) else None for key in ("vocab", "merges"))
    if not isinstance(pieces, dict) or not isinstance(merges, list) or "<unk>" not in pieces:
        raise ValueError("'model' with 'vocab' (<unk> among it) and 'merges' expected")
    ids = list(pieces.values())
    if not all(type(one) is int for one in ids) or sorted(ids) != list(range(len(ids))):
        raise ValueError("'vocab' gives every piece a number of its own, from 0")
    pairs = [tuple(one.split(" ")) if isinstance(one, str) else tuple(one) for one in merges]
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(one, str) and one in pieces for one in (*pair, "".join(pair))):
            raise ValueError(f"no merge of two pieces into a third: {shortened(pair)}")
    return pieces, [(first, second) for first, second in pairs]


def _pieces_of_lines() -> Steps:
    return Steps([Metaspace(replacement=SPACE, prepend_scheme="always"), Punctuation(behavior="isolated")])
