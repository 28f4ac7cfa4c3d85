"""Several texts in one input: the sentences of a document, the utterances of a dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from pydantic import Field as Setting
from torch import Tensor

from seq2see.data.batches import Nested, Ragged, flatten_document, nest, pad_lists
from seq2see.data.sentences import join_texts, shortened, split_texts
from seq2see.modalities.base import Chosen, Elements, Example, Occlusion, inputs, random_mask
from seq2see.modalities.text import TextField, TextInputColumn
from seq2see.registry import Problem
from seq2see.settings.base import Count, no_effect
from seq2see.settings.columns import ColumnSettings

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class TextsInput(TextInputColumn):
    """One input that holds several texts: the sentences of a document, the utterances of a dialogue so far."""

    copied_part: ClassVar[str] = "words"
    kind: Literal["texts"] = Setting("texts", description="what the column holds; it may also be a list of texts")
    sentences: Annotated[str, Setting(min_length=1)] = Setting(
        "rule",
        description="where they end: rule (full stops and their like), newline, tab, or a mark such as |||",
    )
    max_sentences: Count = Setting(0, description="at most this many are read; 0: no limit")
    keep: Literal["first", "last"] = Setting(
        "first", description="which ones max_sentences keeps: documents begin with what matters, dialogues end with it"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if not self.max_sentences:
            yield from no_effect(self, path, ["keep"], "without max_sentences all are kept")


@inputs.register("texts")
class TextsField(TextField):
    """Text as sentences of symbols; what `max_length` and `max_sentences` leave out is not read.

    >>> field = TextsField(TextsInput(sentences="|||"))
    >>> field.build(["a b ||| c"])
    >>> field.sentences("c ||| a"), field.ids("c ||| a b")
    ([['c'], ['a']], [6, 3, 4, 5, 3])
    """

    Settings: ClassVar[type[ColumnSettings]] = TextsInput
    elements: ClassVar[Elements] = Elements("texts", (str,), {"type": "string"})
    hidden_parts: ClassVar[tuple[str, ...]] = ("", "words")
    settings: TextsInput

    def from_list(self, items: Sequence[str]) -> str:
        return join_texts(items, by=self.settings.sentences)

    def normalise(self, value: str) -> str:
        """Sentences are found first: the rule goes by capital letters."""
        return " ".join(self._texts(value))

    def _texts(self, value: str) -> list[str]:
        return [super(TextsField, self).normalise(text) for text in split_texts(value, self.settings.sentences)]

    def observe(self, value: str) -> None:
        self._counts.update(self.whole(value))

    def whole(self, value: str) -> list[str]:
        return [symbol for text in self._texts(value) for symbol in self.splitter.split(text)]

    def sentences(self, value: str) -> list[list[str]]:
        """What is read of a value: symbols by sentence; a sentence without any does not count."""
        return self._shortened(list(map(self.splitter.split, self._texts(value))))

    def _shortened(self, sentences: list[list[str]]) -> list[list[str]]:
        limits = self.settings
        return shortened(sentences, most=limits.max_sentences, keep=limits.keep, longest=limits.max_length)

    def symbols(self, value: str) -> list[str]:
        return [symbol for sentence in self.sentences(value) for symbol in sentence]

    def places(self, value: str, part: str = "") -> list[str]:
        return self.symbols(value) if part == "words" else [self.join(row) for row in self.sentences(value)]

    def ids(self, value: str) -> list[int]:
        return flatten_document(map(self.vocabulary.encode, self.sentences(value)))

    @property
    def limit(self) -> str:
        limits = {"max_sentences": self.settings.max_sentences, "max_length": self.settings.max_length}
        return " or ".join(f"{name} {most:,}" for name, most in limits.items() if most)

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        """Words in all, and one for each sentence, which the second network reads."""
        return store.lengths

    def pad(self, store: Ragged, rows: Chosen) -> Nested:
        chosen = np.asarray(rows, dtype=np.int64)
        starts = np.asarray(store.offsets[chosen])
        return nest(store.flat, starts, np.asarray(store.offsets[chosen + 1]) - starts)

    def read(self, value: str) -> Example:
        sentences = list(map(self.splitter.split, self._texts(value)))
        read = self._shortened(sentences)
        ids = flatten_document(map(self.vocabulary.encode, read))
        return Example(self, value, ids, read, sum(map(len, sentences)))

    def row_of(self, example: Example) -> list[str]:
        return [symbol for sentence in example.symbols for symbol in sentence]

    def collate(self, examples: Sequence[Example]) -> Nested:
        symbols = [example.symbols for example in examples]
        lengths = np.array([len(example.ids) for example in examples], dtype=np.int64)
        flat = np.array([i for example in examples for i in example.ids], dtype=np.int64)
        texts = [[self.join(sentence) for sentence in one] for one in symbols]
        return replace(nest(flat, np.cumsum(lengths) - lengths, lengths), symbols=symbols, texts=texts)

    def cut_message(self, name: str) -> tuple[str, str]:
        return f"cut by {self.limit}", f"longer than inputs.{name} allows"

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Nested:
        """Documents of up to `length` sentences, of up to as many words."""
        mask = random_mask(rows, length)[..., None] & random_mask(length, length)
        return Nested(torch.from_numpy(random.integers(0, self.size, mask.shape)) * mask, mask)

    def preview(self, example: Example) -> dict[str, Any]:
        return {"text": example.value, "sentences": example.symbols}

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        return WordOcclusion(column) if part == "words" else SentenceOcclusion(column)


# --- Places that can be hidden

Word = TypeVar("Word")


@dataclass
class WordOcclusion:
    """Places are the words of a document; a sentence that loses its only word is gone."""

    column: Nested

    @property
    def count(self) -> int:
        return int(self.column.mask[0].sum())

    def without(self, places: Int[Tensor, " rows"]) -> Nested:
        real = self.column.mask
        number = (real.flatten(1).cumsum(1) - 1).view_as(real)
        return _kept(self.column, real & (number != places[:, None, None]))

    @property
    def room(self) -> int:
        return self.column.ids[0].numel()

    def by_place(self, vectors: Float[Tensor, "sentences words size"]) -> Float[Tensor, "rows places"]:
        mask = self.column.mask
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return norms.view(mask.shape)[mask].view(len(mask), -1)


@dataclass
class SentenceOcclusion:
    """Places are the sentences of a document; what its words' vectors have is added up."""

    column: Nested

    @property
    def count(self) -> int:
        return int(self.column.sentences[0].sum())

    def without(self, places: Int[Tensor, " rows"]) -> Nested:
        real = self.column.mask
        number = torch.arange(real.shape[1], device=real.device)
        return _kept(self.column, real & (number != places[:, None])[..., None])

    @property
    def room(self) -> int:
        return self.column.ids[0].numel()

    def by_place(self, vectors: Float[Tensor, "sentences words size"]) -> Float[Tensor, "rows places"]:
        mask = self.column.mask
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return (norms.view(mask.shape) * mask).sum(-1)


def _kept(column: Nested, kept: Tensor) -> Nested:
    """The documents of those words alone, sentences moved up where others are gone.

    How a sentence would be written without a word is not known here: `texts` is not given.
    """
    chosen = kept.tolist()
    documents = [_filled(*pair) for pair in zip(column.ids.tolist(), chosen, strict=True)]
    rows = [flatten_document(document) for document in documents]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    made = nest(np.array([i for row in rows for i in row], dtype=np.int64), np.cumsum(lengths) - lengths, lengths)
    if column.symbols is not None:
        made.symbols = [_filled(*pair) for pair in zip(column.symbols, chosen, strict=True)]
    if column.copyable is not None:
        stays = [flags[real] for flags, real in zip(kept, column.mask, strict=True)]
        ids = [row[: len(flags)][flags].tolist() for row, flags in zip(column.copyable.ids, stays, strict=True)]
        made.copyable = replace(column.copyable, ids=pad_lists(ids, eos=False).ids)
    return made.to(column.ids.device)


def _filled(sentences: list[list[Word]], kept: list[list[bool]]) -> list[list[Word]]:
    """The words that are kept, by sentence; sentences that keep none are left out. Padding has no words to zip with."""
    split_texts = [
        [word for word, stays in zip(sentence, row, strict=False) if stays]
        for sentence, row in zip(sentences, kept, strict=False)
    ]
    return [sentence for sentence in split_texts if sentence]
