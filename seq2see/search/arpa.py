"""Back-off n-gram language models, read from files in ARPA format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from seq2see.data.sources import check_exists, raise_error, read_lines
from seq2see.errors import UserError
from seq2see.files import shortened

MOST_ORDER = 10
MOST_NGRAMS = 100_000_000
"""N-grams of a file, each of which takes 16 bytes of memory."""
LEAST_BYTES = 4
"""Bytes of the shortest line of an n-gram, `0 a` and its end."""
MOST_PACKED = 1032
"""How many bytes one byte of a gzip file can become."""
PREAMBLE = 1_000
"""Lines that may stand before `\\data\\`."""
BOUNDARIES = ("<s>", "</s>")
UNKNOWN = ("<unk>", "<UNK>")
SPACES = ("<space>", "▁")
"""How files over characters write a space, which separates fields."""
MISSING = -100.0
"""log10 P(<unk>) where a file has none, as in KenLM."""
CACHED = 1 << 24
"""Probabilities that are kept of contexts met before: 64 MB."""


class NgramModel:
    """log P(y_t | the n-1 symbols before it), by back-off.

    Where the n-gram h y is not listed, P(y | h) = b(h) P(y | h without its first symbol).

    N-grams of an order are one sorted array. The number of an n-gram is its place there, its key is the number of its
    first n-1 symbols, times the size of the vocabulary, plus its last symbol: what follows a context lies together.
    """

    def __init__(
        self,
        words: list[str],
        keys: list[Int[ndarray, " ngrams"]],
        log_probs: list[Float[ndarray, " ngrams"]],
        backoffs: list[Float[ndarray, " ngrams"]],
    ):
        """words: the unigrams; the others: of each order, from 1, as natural logarithms."""
        self.symbols = len(words)
        self._keys, self._log_probs, self._backoffs = keys, log_probs, backoffs
        self._ids = {word: number for number, word in enumerate(words)}
        self.start, self.end = (self._ids.pop(word, -1) for word in BOUNDARIES)
        self.unknown = next((self._ids.pop(word) for word in UNKNOWN if word in self._ids), -1)
        if self.unknown < 0:  # a symbol of its own behind all others, of which no n-gram is listed
            self.unknown, self.symbols = self.symbols, self.symbols + 1
        self.order = len(keys)
        self._after = lru_cache(maxsize=max(CACHED // self.symbols, 64))(self._compute)

    def id_of(self, symbol: str) -> int:
        """The id of a symbol, in another case where the file has it only there; that of `<unk>` where it has none."""
        spellings = SPACES if symbol == " " else (symbol, symbol.lower(), symbol.upper())
        return next((self._ids[word] for word in spellings if word in self._ids), self.unknown)

    def split(self, text: str) -> list[str]:
        """Words between spaces."""
        return text.split()

    def steps(self, rows: int) -> NgramSteps:
        """Empty hypotheses of so many inputs."""
        return NgramSteps(self, rows)

    def after(self, context: tuple[int, ...]) -> Float[ndarray, " symbols"]:
        """log P of every symbol after a context of at most n-1 symbols; not to be written to."""
        return self._after(context)

    def _compute(self, context: tuple[int, ...]) -> Float[ndarray, " symbols"]:
        if not context:
            unigrams = np.full(self.symbols, MISSING * math.log(10), dtype=np.float32)
            unigrams[: len(self._log_probs[0])] = self._log_probs[0]
            return unigrams
        shorter, number = self._after(context[1:]), self._number(context)
        if number < 0:
            return shorter
        log_probs: ndarray = shorter + self._backoffs[len(context) - 1][number]
        vocabulary, keys = len(self._keys[0]), self._keys[len(context)]
        first, last = np.searchsorted(keys, [number * vocabulary, (number + 1) * vocabulary])
        log_probs[keys[first:last] - number * vocabulary] = self._log_probs[len(context)][first:last]
        return log_probs

    def _number(self, context: tuple[int, ...]) -> int:
        """The number of an n-gram; -1: it is not listed."""
        vocabulary, number = len(self._keys[0]), 0
        for keys, symbol in zip(self._keys, context, strict=False):
            if symbol >= vocabulary:
                return -1
            key = number * vocabulary + symbol
            number = int(np.searchsorted(keys, key))
            if number == len(keys) or keys[number] != key:
                return -1
        return number

    @classmethod
    def load(cls, path: Path) -> NgramModel:
        """Read a file in ARPA format, also .gz. A UserError names the file and the line."""
        check_exists(path)
        return _Reader(path).read()


class NgramSteps:
    """The last n-1 symbols of every hypothesis (-1: there are fewer); see `language_model.NextSymbols`."""

    def __init__(self, model: NgramModel, rows: int):
        self._model, self._rows = model, rows

    def begin(self, width: int) -> None:
        self._contexts = np.full((self._rows * width, self._model.order - 1), -1)

    def step(self, tokens: Int[ndarray, " rows"]) -> tuple[Float[ndarray, "rows symbols"], None]:
        if self._contexts.shape[1]:
            self._contexts = np.concatenate([self._contexts[:, 1:], tokens[:, None]], axis=1)
        contexts, rows = np.unique(self._contexts, axis=0, return_inverse=True)
        each = [self._model.after(tuple(symbol for symbol in row if symbol >= 0)) for row in contexts.tolist()]
        return np.stack(each)[rows.reshape(-1)], None

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        self._contexts = self._contexts[rows]


class _Reader:
    """Reads one file; counts are checked against its size before anything of that size is allocated."""

    def __init__(self, path: Path):
        self.path = path
        self._lines = read_lines(path, encoding="utf-8", bad=raise_error)
        self._number, self._line, self._again = 0, "", False

    def read(self) -> NgramModel:
        counts = self._header()
        words: list[str] = []
        ids: dict[str, int] = {}
        keys: list[ndarray] = []
        log_probs: list[ndarray] = []
        backoffs: list[ndarray] = []
        for order, count in enumerate(counts, start=1):
            self._expect(f"\\{order}-grams:")
            ngrams = np.empty((count, order), dtype=np.int64)
            numbers = np.empty((2, count), dtype=np.float32)
            first = self._number + 1
            for row, (names, log_prob, backoff) in enumerate(self._section(order, count, last=order == len(counts))):
                if order == 1:
                    if names[0] in ids:
                        raise self._error(f"'{shortened(names[0], quotes=False)}' is listed twice")
                    ids[names[0]] = row
                    words.append(names[0])
                ngrams[row] = self._ids_of(names, ids)
                numbers[:, row] = log_prob, backoff
            own, place = self._keys_of(ngrams, keys, first=first, vocabulary=counts[0])
            keys.append(own)
            log_probs.append(numbers[0][place] * np.float32(math.log(10)))
            backoffs.append(numbers[1][place] * np.float32(math.log(10)))
        self._expect("\\end\\")
        if BOUNDARIES[1] not in ids:
            raise UserError(f"{self.path}: the end of a text, </s>, is not among its unigrams, so that none can end")
        return NgramModel(words, keys, log_probs, backoffs)

    def _header(self) -> list[int]:
        """The number of n-grams of each order."""
        for _ in range(PREAMBLE):
            self._advance("\\data\\")
            if self._line == "\\data\\":
                break
        else:
            raise self._error("no \\data\\ so far: not a file in ARPA format")
        counts: list[int] = []
        while True:
            self._advance("ngram 1=NUMBER")
            if counts and (not self._line or self._line.startswith("\\")):
                self._again = bool(self._line)
                break
            name, _, count = self._line.partition("=")
            count = count.strip()
            if name.split() != ["ngram", str(len(counts) + 1)] or not (count.isascii() and count.isdigit()):
                raise self._error(f"expected 'ngram {len(counts) + 1}=NUMBER', found {shortened(self._line, 40)}")
            if len(counts) == MOST_ORDER or len(count) > len(str(MOST_NGRAMS)):
                raise self._error(f"at most {MOST_ORDER} orders of together {MOST_NGRAMS:,} n-grams are read")
            counts.append(int(count))
        most = self.path.stat().st_size * (MOST_PACKED if self.path.suffix == ".gz" else 1) // LEAST_BYTES
        if not counts[0] or sum(counts) > min(most, MOST_NGRAMS):
            raise self._error(f"{sum(counts):,} n-grams announced; a file of this size has at most {most:,}")
        return counts

    def _section(self, order: int, count: int, *, last: bool) -> Iterator[tuple[list[str], float, float]]:
        """(symbols, log10 P, log10 of the back-off weight) of the n-grams of an order; last: without such a weight."""
        for row in range(count):
            self._advance("an n-gram")
            parts = self._line.replace("\t", " ").split(" ")
            parts = [part for part in parts if part] if "" in parts else parts
            if len(parts) != order + 1 and not (len(parts) == order + 2 and not last):
                raise self._error(
                    f"{order}-gram {row + 1:,} of {count:,}: expected a number, {order} symbols"
                    f"{'' if last else ', perhaps a number'}, found {shortened(self._line, 60)}"
                )
            log_prob = self._log10(parts[0], most=0.0)
            yield parts[1 : order + 1], log_prob, self._log10(parts[-1]) if len(parts) == order + 2 else 0.0

    def _log10(self, text: str, *, most: float = 1e4) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not -1e4 <= value <= most:
            raise self._error(f"expected a logarithm from -10,000 to {most:,.0f}, found {shortened(text, 40)}")
        return value

    def _ids_of(self, names: list[str], ids: dict[str, int]) -> list[int]:
        try:
            return [ids[name] for name in names]
        except KeyError as error:
            raise self._error(f"{shortened(error.args[0], 40)} is not among the unigrams") from None

    def _keys_of(
        self, ngrams: Int[ndarray, "count order"], keys: list[ndarray], *, first: int, vocabulary: int
    ) -> tuple[Int[ndarray, " count"], Int[ndarray, " count"]]:
        """(sorted keys, the n-gram of each); first: the line of the first one."""
        numbers = np.zeros(len(ngrams), dtype=np.int64)
        for order, column in enumerate(ngrams.T):
            own = numbers * vocabulary + column
            if order == ngrams.shape[1] - 1:
                break
            numbers = np.searchsorted(keys[order], own)
            there = numbers < len(keys[order])
            there[there] = keys[order][numbers[there]] == own[there]
            if not there.all():
                at = int(there.argmin())
                raise UserError(
                    f"{self.path}, line {first + at}: its first {order + 1} symbols are no n-gram of the file"
                )
        place = np.argsort(own, kind="stable")
        own = own[place]
        if (twice := np.flatnonzero(own[1:] == own[:-1])).size:
            raise UserError(f"{self.path}, line {first + int(place[twice[0] + 1])}: an n-gram that is listed twice")
        return own, place

    def _expect(self, heading: str) -> None:
        """Go on to a line that must come next, after empty ones."""
        for _ in range(PREAMBLE):
            self._advance(heading)
            if self._line:
                break
        if self._line != heading:
            raise self._error(f"expected '{heading}', found {shortened(self._line, 40)}")

    def _advance(self, wanted: str) -> None:
        if self._again:
            self._again = False
            return
        try:
            self._number, line = next(self._lines)
        except StopIteration:
            raise UserError(
                f"{self.path}: ends after line {self._number:,}, where '{wanted}' is expected: cut short, or not in "
                "ARPA format"
            ) from None
        self._line = line.strip(" \t\r")

    def _error(self, problem: str) -> UserError:
        return UserError(f"{self.path}, line {self._number:,}: {problem}")
