"""Vocabulary: symbols and their ids, stored as readable text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_bytes, write_bytes

SPECIALS = ("<pad>", "<unk>", "<sos>", "<eos>")
PAD, UNK, SOS, EOS = range(len(SPECIALS))
BLANK = PAD
"""The id of the blank of CTC: that of `<pad>`, which no output contains."""
HEADER = "# symbols"
MOST_BYTES = 256 * MEBIBYTE
LONGEST_COUNT = 18
"""Digits of a count that fits in 64 bits."""
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


class Vocabulary:
    """Symbols <-> ids, special ones first.

    A special symbol that occurs in the data is unknown there, so text cannot inject an `<eos>`.

    >>> Vocabulary.build(Counter("banana")).encode("nab")
    [5, 4, 6]
    """

    def __init__(self, symbols: Sequence[str], *, counts: Mapping[str, int] | None = None, specials: bool = True):
        self.specials: tuple[str, ...] = SPECIALS if specials else ()
        self.symbols: list[str] = [*self.specials, *symbols]
        self.counts: list[int] = [0] * len(self.specials) + [(counts or {}).get(symbol, 0) for symbol in symbols]
        first = len(self.specials)
        self.ids: dict[str, int] = {symbol: first + i for i, symbol in enumerate(symbols)}
        if len(self.ids) != len(symbols) or any(symbol in self.ids for symbol in self.specials):
            twice = [symbol for symbol, n in Counter(self.symbols).items() if n > 1]
            raise ValueError(f"duplicate symbols: {twice[:5]}")

    @classmethod
    def build(
        cls, counts: Mapping[str, int], *, size: int = 0, min_count: int = 1, specials: bool = True
    ) -> Vocabulary:
        """The most frequent symbols, ties in alphabetical order; size 0: no limit; special symbols do not count."""
        reserved = SPECIALS if specials else ()
        kept = [symbol for symbol, n in counts.items() if n >= min_count and symbol not in reserved]
        kept.sort(key=lambda symbol: (-counts[symbol], symbol))
        return cls(kept[: size or None], counts=counts, specials=specials)

    def __len__(self) -> int:
        return len(self.symbols)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols and self.specials == other.specials

    __hash__ = None  # type: ignore[assignment]

    def encode(self, symbols: Iterable[str]) -> list[int]:
        """Ids; unknown symbols become `<unk>` (1)."""
        find = self.ids.get
        return [find(symbol, 1) for symbol in symbols]

    def decode(self, ids: Iterable[int], words: Sequence[str] = ()) -> list[str]:
        """Symbols; words: the symbols of ids beyond the vocabulary, for copied words."""
        known = len(self.symbols)
        return [self.symbols[i] if i < known else words[i - known] for i in ids]

    def save(self, path: Path) -> None:
        """Write a header with the number of symbols, then `symbol<tab>count` in order of ids."""
        lines = [f"{HEADER}\t{len(self)}"]
        lines += [f"{_escape(symbol)}\t{n}" for symbol, n in zip(self.symbols, self.counts, strict=True)]
        write_bytes(path, ("\n".join(lines) + "\n").encode("utf-8"))

    @classmethod
    def load(cls, path: Path, *, specials: bool = True) -> Vocabulary:
        """Read a saved vocabulary. A UserError names the file and the damaged line."""
        lines = _lines(path)
        try:
            symbols, numbers = _parse(lines)
        except _Damaged as damage:
            raise UserError(f"{path}, line {damage.line}: damaged vocabulary: {damage}") from None
        reserved = SPECIALS if specials else ()
        if tuple(symbols[: len(reserved)]) != reserved:
            raise UserError(f"{path}: damaged vocabulary: the first symbols must be {' '.join(reserved)}")
        own = symbols[len(reserved) :]
        try:
            return cls(own, counts=dict(zip(own, numbers[len(reserved) :], strict=True)), specials=specials)
        except ValueError as error:
            raise UserError(f"{path}: damaged vocabulary: {error}") from None


def copy_ids(symbols: Iterable[str], vocabulary: Vocabulary) -> tuple[list[int], list[str]]:
    """(the output's id of each symbol of an input, the words whose ids are beyond its vocabulary, in order).

    Words that are not in the vocabulary are numbered from its end on, for each input anew, in the order in which they
    first appear. Such an id has a meaning only beside its input.

    >>> copy_ids(["I", "am", "Tom", "am"], Vocabulary(["Tom", "hello"]))
    ([6, 7, 4, 7], ['I', 'am'])
    """
    further = dict[str, int]()
    ids = []
    for symbol in symbols:
        number = vocabulary.ids.get(symbol)
        ids.append(further.setdefault(symbol, len(vocabulary) + len(further)) if number is None else number)
    return ids, list(further)


def target_ids(symbols: Iterable[str], vocabulary: Vocabulary, words: Iterable[str]) -> list[int]:
    """Ids of an output's symbols, without `<eos>`; words: those of its input that are beyond the vocabulary."""
    further = {word: len(vocabulary) + number for number, word in enumerate(words)}
    return [vocabulary.ids.get(symbol, further.get(symbol, UNK)) for symbol in symbols]


class _Damaged(Exception):
    def __init__(self, line: int, what: str):
        super().__init__(what)
        self.line = line


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise UserError(f"{path}: vocabulary file is missing")
    try:
        text = read_bytes(path, most=MOST_BYTES, what="a vocabulary").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: damaged vocabulary: not UTF-8 at byte {error.start}") from None
    return text.replace("\r\n", "\n").split("\n")


def _parse(lines: list[str]) -> tuple[list[str], list[int]]:
    header, _, expected = lines[0].partition("\t")
    if header != HEADER or not _is_count(expected):
        raise _Damaged(1, f"expected '{HEADER}<tab>number', found {lines[0][:40]!r}")
    symbols: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(lines[1:], start=2):
        if not line and number == len(lines):
            break
        symbol, tab, n = line.rpartition("\t")
        if not tab or not _is_count(n):
            raise _Damaged(number, f"expected 'symbol<tab>count', found {line[:40]!r}")
        symbols.append(_unescape(symbol, number))
        numbers.append(int(n))
    if len(symbols) != int(expected) or lines[-1]:
        raise _Damaged(
            len(lines), f"{int(expected):,} symbols announced, {len(symbols):,} found: the file was cut short or edited"
        )
    return symbols, numbers


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_COUNT


def _escape(symbol: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in symbol)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for c in characters:
        if c == "\\":
            escaped = next(characters, "")
            if escaped not in _UNESCAPES:
                raise _Damaged(line, f"unknown escape '\\{escaped}'; allowed: \\\\ \\t \\n \\r")
            c = _UNESCAPES[escaped]
        out.append(c)
    return "".join(out)
