"""Tokenisation: text to symbols and back, by words, characters, spaces or byte-pair encoding."""

from __future__ import annotations

import re
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from seq2see.data.sentences import MARKS
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError, imported
from seq2see.files import MEBIBYTE, read_json, shortened, whole_characters, write_bytes
from seq2see.registry import Registry

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Scripts written without spaces: every character is a token.
UNSPACED = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Punctuation without a space before it, besides closing brackets and quotes (Unicode Pe, Pf).
NO_SPACE_BEFORE = frozenset(".,;:!?%…‰°·؟،؛।॥։፡።၊။៖")
# Punctuation without a space after it, besides opening brackets and quotes (Unicode Ps, Pi).
NO_SPACE_AFTER = frozenset("¿¡$£#@")
JOINER = "\u200d"
NO_SPACE = frozenset("/\\\n")
QUOTES = frozenset("\"'")
CJK_PUNCTUATION = frozenset("、。・「」『』（）！？，：；")


@cache
def _combining_marks() -> str:
    """Combining marks as ranges of a character class: \\w excludes them and would split Devanagari."""
    points = [i for i in range(0x300, 0x1F000) if unicodedata.category(chr(i)).startswith("M")]
    points += [0x200C, ord(JOINER)]  # joiners inside words and emoji
    points += [*range(0x1F3FB, 0x1F400), *range(0xE0100, 0xE01F0)]  # skin tones, variation selectors
    ranges: list[list[int]] = []
    for i in sorted(p for p in points if p <= sys.maxunicode):
        if ranges and ranges[-1][1] == i - 1:
            ranges[-1][1] = i
        else:
            ranges.append([i, i])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@cache
def _pattern(*, ascii_only: bool) -> re.Pattern[str]:
    """An acronym (U.S.), a word (don't, well-known, 3.5) or a run of one sign (...), with its combining marks."""
    acronym = r"(?:[^\W\d_]\.){2,}"
    inside = r"(?:['’\-‑]|(?<=\d)[.,:](?=\d))"
    sign = r"([^\w\s])\1*"
    if ascii_only:
        return re.compile(rf"{acronym}|\w+(?:{inside}\w+)*|{sign}")
    marks = f"[{_combining_marks()}]"
    letter = rf"(?:(?![{UNSPACED}])(?:\w|{marks}))"
    marked = rf"(?:{marks}+(?:(?<={JOINER})[^\w\s])?)*"
    return re.compile(rf"{acronym}|{letter}+(?:{inside}{letter}+)*|[{UNSPACED}]{marks}*|{sign}{marked}")


def split_words(text: str) -> list[str]:
    """Words and punctuation, in order.

    Apostrophes and hyphens inside a word stay there, and so do points and commas between digits.

    >>> split_words("Don't stop (at 3.5 km)!")
    ["Don't", 'stop', '(', 'at', '3.5', 'km', ')', '!']
    """
    return [symbol for part in text.split() for symbol in _symbols(part)]


@lru_cache(maxsize=1 << 17)
def _symbols(part: str) -> tuple[str, ...]:
    """Symbols of a part between spaces; cached, because most parts recur."""
    return tuple(match.group() for match in _pattern(ascii_only=part.isascii()).finditer(part))


def join_words(symbols: Sequence[str]) -> str:
    """Words joined with spaces, without a space before closing and after opening punctuation.

    Straight quotes open and close in turn, slashes have no spaces, and Chinese and Japanese characters stand side by
    side.

    >>> join_words(["Don't", "stop", "(", "at", "3.5", "km", ")", "!"])
    "Don't stop (at 3.5 km)!"
    """
    pieces: list[str] = []
    open_quotes: set[str] = set()
    attached = True
    before = ""
    for symbol in symbols:
        back, on = _attachment(symbol, open_quotes)
        if not (attached or back or (_unspaced(before) and _unspaced(symbol))):
            pieces.append(" ")
        pieces.append(symbol)
        attached, before = on, symbol
    return "".join(pieces)


def _attachment(symbol: str, open_quotes: set[str]) -> tuple[bool, bool]:
    """Whether a symbol attaches to the one before it, and to the one after it."""
    if not symbol or symbol[0].isalnum():
        return False, False
    sign = symbol[0]
    if sign in QUOTES and len(symbol) == 1:
        closing = sign in open_quotes
        (open_quotes.discard if closing else open_quotes.add)(sign)
        return closing, not closing
    if sign in NO_SPACE:
        return True, True
    if len(set(symbol)) > 1:
        return False, False
    category = unicodedata.category(sign)
    return (
        sign in NO_SPACE_BEFORE or category in ("Pe", "Pf") or sign in CJK_PUNCTUATION,
        (sign in NO_SPACE_AFTER and len(symbol) == 1) or category in ("Ps", "Pi") or sign in CJK_PUNCTUATION,
    )


@cache
def _unspaced_pattern() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def _unspaced(symbol: str) -> bool:
    return bool(symbol) and not symbol.isascii() and _unspaced_pattern().match(symbol) is not None


def text_content(value: str) -> str:
    """What equal texts have in common: Unicode form NFC, with single spaces between words."""
    if not value.isascii():
        value = unicodedata.normalize("NFC", value)
    return " ".join(value.split())


Case = Literal["keep", "lower"]
UnicodeForm = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]


def normalise(text: str, *, case: Case, unicode: UnicodeForm, punctuation: bool = True) -> str:
    """Case first, then the Unicode form: lower-casing can denormalise text (the Turkish dotted capital I).

    punctuation false: punctuation is removed and joins what it separated (dog's: dogs). Lone surrogates, which no
    tokeniser, file or terminal accepts, become U+FFFD.
    """
    text = whole_characters(text)
    if not punctuation:
        text = "".join(letter for letter in text if unicodedata.category(letter)[0] != "P")
    if case == "lower":
        text = text.lower()
    return in_form(text, unicode)


def in_form(text: str, unicode: UnicodeForm) -> str:
    """A text in a Unicode normal form: what looks the same is the same (an accent behind its letter, or one with it).

    >>> in_form("e\u0301", "NFC") == "\u00e9"
    True
    """
    return text if unicode == "none" or text.isascii() else unicodedata.normalize(unicode, text)


Unit = Literal["word", "character", "value"]


class Splitter(ABC):
    """Splits text into symbols of one kind, and joins them.

    unit: parts of a text that are split each for itself with the same result: the words between its spaces, or the
    characters of its normalised form, which are symbols themselves; None: a text is split as a whole only.
    """

    unit: ClassVar[Unit | None] = None

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The symbols of one line of text."""

    @abstractmethod
    def join(self, symbols: Sequence[str]) -> str:
        """Text from symbols."""

    def split_stream(self, line: str) -> list[str]:
        """The symbols of one line of a contiguous text, without its newline."""
        return self.split(line)


class LearnedSplitter(Splitter):
    """A splitter that learns its symbols from text, and saves them to a file."""

    @abstractmethod
    def learn(self, texts: Iterable[str], *, size: int, min_count: int) -> None:
        """Learn at most `size` symbols (0: the default of the kind) from normalised texts."""

    @abstractmethod
    def known(self) -> list[str]:
        """All symbols it can produce, in order of id, without special ones."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Save what was learned."""

    @abstractmethod
    def load(self, path: Path) -> None:
        """Load what was learned; raises a UserError for a missing or damaged file."""


splitters: Registry[type[Splitter]] = Registry("kind of tokens")


@splitters.register("word")
class WordSplitter(Splitter):
    """Unicode words and punctuation."""

    unit = "word"

    def split(self, text: str) -> list[str]:
        return split_words(text)

    def join(self, symbols: Sequence[str]) -> str:
        return join_words(symbols)


@splitters.register("character")
class CharacterSplitter(Splitter):
    """Code points, including inner spaces."""

    unit = "character"

    def split(self, text: str) -> list[str]:
        return list(text.strip())

    def split_stream(self, line: str) -> list[str]:
        return list(line)

    def join(self, symbols: Sequence[str]) -> str:
        return "".join(symbols)


@splitters.register("symbol")
class SpaceSplitter(Splitter):
    """Symbols between spaces: phonemes, pre-tokenised text."""

    unit = "word"

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols).replace(" \n ", "\n").replace(" \n", "\n").replace("\n ", "\n")


class Separated(Splitter):
    """Whatever stands between two marks is one symbol, with the spaces in it; empty ones do not count."""

    def __init__(self, separator: str):
        self.mark = MARKS.get(separator, separator)

    def split(self, text: str) -> list[str]:
        return [part.strip() for part in text.split(self.mark) if part.strip()]

    def join(self, symbols: Sequence[str]) -> str:
        return (self.mark if self.mark.isspace() else f"{self.mark} ").join(symbols)


def make_splitter(tokens: str) -> Splitter:
    """A splitter by its name in a recipe."""
    return splitters[tokens]()


SPACE = "▁"
DEFAULT_SIZE = 8000
CACHED_WORDS = 1 << 17


@splitters.register("bpe")
class BpeSplitter(LearnedSplitter):
    """Byte-pair encoding; `▁` marks the space before a word, so joining restores the text up to spaces.

    Punctuation is split off before pieces are learned. A `▁` in the text becomes `_`.
    """

    unit = "word"

    def __init__(self) -> None:
        self._use(_tokenizer({"<unk>": 0}, []))

    def _use(self, tokenizer: Tokenizer) -> None:
        tokenizer.pre_tokenizer = _pre_tokenizer()
        self._tokenizer = tokenizer
        self._cached = lru_cache(maxsize=CACHED_WORDS)(self._word)

    def _word(self, word: str) -> tuple[str, ...]:
        """Pieces of one word. Characters outside the alphabet keep their spelling, so that they can be copied and
        shown."""
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
        from tokenizers import Tokenizer
        from tokenizers.models import BPE
        from tokenizers.trainers import BpeTrainer

        limit = (size or DEFAULT_SIZE) + len(SPECIALS)
        trainer = BpeTrainer(
            vocab_size=limit,
            min_frequency=max(2, min_count),
            limit_alphabet=limit - len(SPECIALS),
            special_tokens=list(SPECIALS),
            show_progress=False,
        )
        learner = Tokenizer(BPE(unk_token="<unk>"))
        learner.pre_tokenizer = _pre_tokenizer()
        learner.train_from_iterator((text.replace(SPACE, "_") for text in texts), trainer=trainer)
        # Keep the model only: a trained tokenizer would also match special symbols spelled out in the text.
        self._use(Tokenizer(learner.model))

    def known(self) -> list[str]:
        vocabulary = self._tokenizer.get_vocab()
        return [piece for piece in sorted(vocabulary, key=vocabulary.__getitem__) if piece not in SPECIALS]

    def save(self, path: Path) -> None:
        write_bytes(path, (self._tokenizer.to_str(pretty=True) + "\n").encode("utf-8"))

    def load(self, path: Path) -> None:
        """Only pieces and merges are read: patterns and filters that a tokenizer file may contain are not run."""
        stored = read_json(path, most=256 * MEBIBYTE, what="a BPE file")
        try:
            vocabulary, merges = _stored_model(stored)
            self._use(_tokenizer(vocabulary, merges))
        except Exception as error:  # noqa: BLE001 - the library raises nothing more precise
            raise UserError(f"{path}: damaged BPE file: {error}") from None


def _stored_model(stored: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The pieces with their ids, and the merges in order; ValueError if the file does not contain them."""
    model = stored.get("model") if isinstance(stored, dict) else None
    pieces, merges = (model.get(key) if isinstance(model, dict) else None for key in ("vocab", "merges"))
    if not isinstance(pieces, dict) or not isinstance(merges, list) or "<unk>" not in pieces:
        raise ValueError("expected 'model' with 'vocab' (including <unk>) and 'merges'")
    ids = list(pieces.values())
    if not all(type(i) is int for i in ids) or sorted(ids) != list(range(len(ids))):
        raise ValueError("'vocab' must number the pieces from 0")
    pairs = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in merges]
    for pair in pairs:
        if len(pair) != 2 or not all(isinstance(piece, str) and piece in pieces for piece in (*pair, "".join(pair))):
            raise ValueError(f"not a merge of two known pieces: {shortened(pair)}")
    return pieces, [(first, second) for first, second in pairs]


def _tokenizer(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    """A tokenizer of these pieces. The library is imported late: only byte-pair encoding needs it."""
    library = imported("tokenizers", extra="bpe")
    made: Tokenizer = library.Tokenizer(library.models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>"))
    return made


def _pre_tokenizer() -> Any:
    parts = imported("tokenizers.pre_tokenizers", extra="bpe")
    spaces, marks = parts.Metaspace(replacement=SPACE, prepend_scheme="always"), parts.Punctuation(behavior="isolated")
    return parts.Sequence([spaces, marks])
