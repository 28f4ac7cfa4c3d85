"""Attention over text: shaded words, and documents of shaded sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seq2see.looks import Looks
from seq2see.seeing.labels import Direction, as_words, broken, direction_of, visible
from seq2see.seeing.panels import ALL, Panel
from seq2see.seeing.sheet import Box, ColourBar, Column, Row, Sheet, Style, TextLine, flow
from seq2see.seeing.style import round_top

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Shares = NDArray[np.float64]
SENTENCE, WORD = "share of a sentence in all", "share of a word in its sentence"
"""Captions of the two colour bars of a document."""


@dataclass(frozen=True)
class Document:
    """The attention over a document of sentences.

    words: by sentence; within: like words, the share of each word in its sentence;
    sentences: the share of each sentence in the document, averaged over outputs; None if unknown;
    by: what looked at the words, encoder or decoder (it is always the decoder that looks at the sentences);
    covered: the maps that this shows in full.
    """

    name: str
    words: list[list[str]]
    within: list[Shares]
    sentences: Shares | None
    output: str | None
    direction: Direction
    covered: frozenset[str]
    by: str = "decoder"

    @property
    def title(self) -> str:
        """The heading in a figure with several maps."""
        return f"{self.name} ({self.by}: words in their sentence)"

    def top_of_words(self, scale: str = "auto") -> float:
        """The share in its sentence at which a word has the strongest colour."""
        return round_top(max((float(shares.max()) for shares in self.within if len(shares)), default=0.0), scale=scale)

    def top_of_sentences(self, scale: str = "auto") -> float:
        """The share at which a sentence has the strongest colour."""
        return round_top(0.0 if self.sentences is None else float(self.sentences.max()), scale=scale)

    @property
    def caption(self) -> str:
        """What the shades mean."""
        return f"left: the decoder's share of a sentence; colour of a word: the {self.by}'s share in its sentence"


def documents_of(looks: Looks, *, map: str | None = None, direction: str = "auto") -> list[Document]:
    """A document for each input whose words know their sentences; none if one map is selected by name.

    Shows the encoder's attention over the words of each sentence, or else the decoder's.
    """
    if map not in (None, ALL):
        return []
    documents: dict[str, Document] = {}
    if not looks.maps:
        return []
    for name in sorted([looks.name, *looks.maps], key=lambda name: name not in looks.rows):
        whole = name.partition(".")[0]
        layout = looks.layouts.get(name, {})
        of_words = "parts" in layout and layout.get("kind") != "frames-grid"
        if of_words and whole not in documents and looks.inputs.get(name):
            documents[whole] = _document(looks, name, whole, direction)
    return list(documents.values())


def without_document(groups: list[list[Panel]], documents: list[Document]) -> list[list[Panel]]:
    """The panels of maps that no document shows."""
    covered = frozenset[str]().union(*(document.covered for document in documents))
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
        sentences = _sentence_shares(looks, whole, spans)
        covered = {name} | ({whole} if single else set())
    else:
        mean = weights.mean(0)
        sentences = np.array([mean[span].sum() for span in spans])
        within = [mean[span] / max(float(mean[span].sum()), 1e-12) for span in spans]
        covered = {name} if single else set()
    reading: Direction = direction_of(words) if direction == "auto" else "rtl" if direction == "rtl" else "ltr"
    output = looks.outputs[0] if single else None
    cut = [words[span] for span in spans]
    by = "encoder" if name in looks.rows else "decoder"
    return Document(whole, cut, within, sentences, output, reading, frozenset(covered & looks.maps.keys()), by)


def _sentence_shares(looks: Looks, whole: str, spans: list[slice]) -> Shares | None:
    """The share of each sentence: the decoder's attention over sentences, or over their words."""
    if whole in looks.maps:
        return np.asarray(_flat(looks.maps[whole]).mean(0))
    named = [looks.name, *looks.maps]
    words = next((name for name in named if name.startswith(f"{whole}.") and name not in looks.rows), None)
    return None if words is None else np.array([_flat(looks.maps[words]).mean(0)[span].sum() for span in spans])


def _flat(weights: NDArray[np.float32]) -> Shares:
    """(rows, places), averaged over heads."""
    exact = np.asarray(weights, dtype=np.float64)
    return exact if exact.ndim == 2 else np.asarray(exact.mean(0))


LINE = 7.2  # inches of text to a line
SHARE = 0.5  # inches of the share of a sentence
_SIZE = 11.0
_PAD = 0.07
_GAP = 0.05
_NUMBERED = 60  # up to this number of words, each has its weight in figures


@dataclass
class ShadedWords:
    """The words of one input in lines, each shaded by its weight.

    numbered: write the weights below the words; None: if there are few words.
    """

    panel: Panel
    style: Style
    numbered: bool | None = None
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.labels = [self.style.labeller.symbol(symbol) for symbol in self.panel.inputs]
        sizes = [label.measure(_SIZE) for label in self.labels]
        if self.numbered is None:
            self.numbered = len(self.labels) <= _NUMBERED
        least = 0.3 if self.numbered else 0.18
        self.widths = [max(least, width + 2 * _PAD) for width, _ in sizes]
        self.box_height = max(0.3, max(height for _, height in sizes) + 2 * _PAD)
        self.pitch = self.box_height + (0.24 if self.numbered else 0.07)
        self.lines = self._broken()
        self.width = max(self._length(line) for line in self.lines)
        self.height = len(self.lines) * self.pitch

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        axes = sheet.axes(x, y, self.width, self.height)
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        for row, line in enumerate(self.lines):
            left = 0.0
            for place in line:
                wide = self.widths[place]
                start = self.width - left - wide if self.panel.direction == "rtl" else left
                self._draw_word(axes, place, start, row * self.pitch)
                left += wide + _GAP

    def _draw_word(self, axes: Axes, place: int, x: float, y: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        theme, label, wide = self.style.theme, self.labels[place], self.widths[place]
        weight = float(self.panel.weights[0, place])
        share = weight / self.style.top
        rounded = "round,pad=0,rounding_size=0.05"
        box = FancyBboxPatch((x, y), wide, self.box_height, boxstyle=rounded, fc=theme.colormap()(share), ec="none")
        box.set_gid(f"place {place + 1}")
        axes.add_patch(box)
        centre: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
        middle, colour = x + wide / 2, theme.ink_on(share)
        axes.text(middle, y + self.box_height / 2, label.text, color=colour, **centre, **label.style(_SIZE))
        if self.numbered:
            axes.text(middle, y + self.box_height + 0.09, f"{weight:.2f}", color=theme.muted, fontsize=6.5, **centre)

    def _broken(self) -> list[list[int]]:
        """Places broken into lines like a paragraph."""
        lines: list[list[int]] = [[]]
        for place in range(len(self.labels)):
            if lines[-1] and self._length([*lines[-1], place]) > min(LINE, self.style.room):
                lines.append([])
            lines[-1].append(place)
        return lines

    def _length(self, line: list[int]) -> float:
        return sum(self.widths[place] for place in line) + _GAP * (len(line) - 1)


def shaded_document(document: Document, style: Style, *, named: bool = False, scale: str = "auto") -> Box:
    """A whole document below its output, with one colour bar for words and one for sentences.

    named: add the document's title, for figures with several maps.
    """
    of_words = replace(style, top=document.top_of_words(scale))
    of_sentences = replace(style, top=document.top_of_sentences(scale))
    rows: list[Box] = []
    for number, (words, within) in enumerate(zip(document.words, document.within, strict=True)):
        panel = Panel(document.name, within[None], words, [""], document.direction)
        text = ShadedWords(panel, replace(of_words, room=style.room - SHARE - 0.14), numbered=False)
        share = None if document.sentences is None else float(document.sentences[number])
        rows.append(Row([Share(share, of_sentences, text.box_height), text], gap=0.14))
    caption = [] if document.output is None else [f"output: {visible(document.output)}"]
    caption.append(document.caption)
    head = [TextLine(style.labeller.text(document.title), style.theme.ink, size=11, bold=True)] if named else []
    head += [
        TextLine(style.labeller.text(line), style.theme.muted, size=9)
        for line in broken(style.labeller, " · ".join(caption), 9, style.room)
    ]
    keys: list[Box] = [ColourBar(of_sentences, SENTENCE)] if document.sentences is not None else []
    keys.append(ColourBar(of_words, WORD))
    return Column([Column([*head, *rows], gap=0.1), flow(keys, width=style.room)], gap=0.24)


@dataclass
class Share:
    """The share of a sentence in figures on its colour; empty if unknown."""

    share: float | None
    style: Style
    height: float
    width: float = field(default=SHARE, init=False)

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        if self.share is None:
            return
        theme, strength = self.style.theme, self.share / self.style.top
        axes = sheet.axes(x, y, self.width, self.height)
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        rounded = "round,pad=0,rounding_size=0.05"
        colour = theme.colormap()(strength)
        axes.add_patch(FancyBboxPatch((0, 0), self.width, self.height, boxstyle=rounded, fc=colour, ec="none"))
        figures, ink = f"{self.share:.2f}", theme.ink_on(strength)
        middle = self.width / 2, self.height / 2
        axes.text(*middle, figures, color=ink, fontsize=9, fontweight="bold", ha="center", va="center_baseline")
