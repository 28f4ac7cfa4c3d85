"""A document as a picture: each sentence beside a box shaded by its share, its words shaded by theirs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from seq2see.seeing.documents import SENTENCE, WORD, Document
from seq2see.seeing.key import Key
from seq2see.seeing.panels import Panel
from seq2see.seeing.shaded import ShadedWords
from seq2see.seeing.sheet import Box, Column, Manner, Row, Sheet, Words
from seq2see.seeing.symbols import visible


def shaded_document(document: Document, manner: Manner, *, named: bool = False, scale: str = "auto") -> Box:
    """The box of a whole document, what came of it above, below it a key for its words and one for its sentences,
    which are fewer and have more each; named: whose looks it shows, beside other maps."""
    of_words = replace(manner, top=document.top_of_words(scale))
    of_sentences = replace(manner, top=document.top_of_sentences(scale))
    rows: list[Box] = []
    for number, (words, within) in enumerate(zip(document.words, document.within, strict=True)):
        panel = Panel(document.name, within[None], words, [""], document.direction)
        text = ShadedWords(panel, of_words, numbered=False)
        share = None if document.sentences is None else float(document.sentences[number])
        rows.append(Row([Share(share, of_sentences, text.box_height), text], gap=0.14))
    said = [] if document.output is None else [f"output: {visible(document.output)}"]
    said.append(document.caption)
    head = [Words(manner.letters.text(document.title), manner.theme.ink, size=11, bold=True)] if named else []
    head.append(Words(manner.letters.text(" · ".join(said)), manner.theme.muted, size=9))
    keys: list[Box] = [Key(of_sentences, SENTENCE)] if document.sentences is not None else []
    keys.append(Key(of_words, WORD))
    return Column([Column([*head, *rows], gap=0.1), Row(keys)], gap=0.24)


@dataclass
class Share:
    """The share of a sentence in figures, on its colour; empty where it is not known."""

    share: float | None
    manner: Manner
    height: float
    width: float = field(default=0.5, init=False)

    def draw(self, sheet: Sheet, x: float, y: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        if self.share is None:
            return
        theme, strength = self.manner.theme, self.share / self.manner.top
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
