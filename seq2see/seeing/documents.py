"""Looks at a document: words inside sentences, sentences inside the whole, each with its share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seq2see.looks import Looks
from seq2see.seeing.panels import ALL, Panel
from seq2see.seeing.scale import round_top
from seq2see.seeing.symbols import Direction, as_words, direction_of

Shares = NDArray[np.float64]
SENTENCE, WORD = "share of a sentence in all", "share of a word in its sentence"
"""What the two scales of a document measure."""


@dataclass(frozen=True)
class Document:
    """words: by sentence; within: like words, the share of each in its sentence; sentences: the share of each in the
    document, the mean over outputs where there are several, None where nothing tells.

    by: who looked at the words, encoder or decoder (at the sentences it is always the decoder);
    covers: the maps this shows as well as any panel could.
    """

    name: str
    words: list[list[str]]
    within: list[Shares]
    sentences: Shares | None
    output: str | None
    direction: Direction
    covers: frozenset[str]
    by: str = "decoder"

    @property
    def title(self) -> str:
        """Whose looks these are, for a picture with other maps on it."""
        return f"{self.name} ({self.by}: words in their sentence)"

    def top_of_words(self, scale: str = "auto") -> float:
        """The share in its sentence at which a word has the strongest colour."""
        return round_top(max((float(shares.max()) for shares in self.within if len(shares)), default=0.0), scale=scale)

    def top_of_sentences(self, scale: str = "auto") -> float:
        """The same for the shares of sentences."""
        return round_top(0.0 if self.sentences is None else float(self.sentences.max()), scale=scale)

    @property
    def caption(self) -> str:
        """What the shades mean."""
        return f"left: the decoder's share of a sentence; colour of a word: the {self.by}'s share in its sentence"


def documents_of(looks: Looks, *, map: str | None = None, direction: str = "auto") -> list[Document]:
    """A document for each input whose words know their sentences; none where a map is asked for by name.

    What the encoder saw in the words of each sentence comes first; where it saw nothing, what the decoder saw in them.
    """
    if map not in (None, ALL):
        return []
    found: dict[str, Document] = {}
    if not looks.maps:
        return []
    for name in sorted([looks.name, *looks.maps], key=lambda name: name not in looks.rows):
        whole = name.partition(".")[0]
        layout = looks.layouts.get(name, {})
        of_words = "parts" in layout and layout.get("kind") != "frames-grid"
        if of_words and whole not in found and looks.inputs.get(name):
            found[whole] = _document(looks, name, whole, direction)
    return list(found.values())


def left_over(groups: list[list[Panel]], documents: list[Document]) -> list[list[Panel]]:
    """The panels of maps that no document shows."""
    covered = frozenset[str]().union(*(document.covers for document in documents))
    return [group for group in groups if group[0].name not in covered]


def _document(looks: Looks, name: str, whole: str, direction: str) -> Document:
    parts = [int(part) for part in looks.layouts[name]["parts"]]
    ends = np.cumsum(parts)
    spans = [slice(end - part, end) for end, part in zip(ends, parts, strict=True)]
    words = as_words(looks.inputs[name])
    weights = _flat(looks.maps[name])
    single = len(looks.outputs) == 1
    if name in looks.rows:
        within = [weights[row, span] for row, span in enumerate(spans)]
        sentences = _seen(looks, whole, spans)
        covers = {name} | ({whole} if single else set())
    else:
        seen = weights.mean(0)
        sentences = np.array([seen[span].sum() for span in spans])
        within = [seen[span] / max(float(seen[span].sum()), 1e-12) for span in spans]
        covers = {name} if single else set()
    way: Direction = direction_of(words) if direction == "auto" else "rtl" if direction == "rtl" else "ltr"
    output = looks.outputs[0] if single else None
    cut = [words[span] for span in spans]
    by = "encoder" if name in looks.rows else "decoder"
    return Document(whole, cut, within, sentences, output, way, frozenset(covers & looks.maps.keys()), by)


def _seen(looks: Looks, whole: str, spans: list[slice]) -> Shares | None:
    """The share of each sentence: as the decoder looked at it, or at its words."""
    if whole in looks.maps:
        return np.asarray(_flat(looks.maps[whole]).mean(0))
    named = [looks.name, *looks.maps]
    words = next((name for name in named if name.startswith(f"{whole}.") and name not in looks.rows), None)
    return None if words is None else np.array([_flat(looks.maps[words]).mean(0)[span].sum() for span in spans])


def _flat(weights: NDArray[np.float32]) -> Shares:
    """(rows, places), the mean of the heads where there are some."""
    exact = np.asarray(weights, dtype=np.float64)
    return exact if exact.ndim == 2 else np.asarray(exact.mean(0))
