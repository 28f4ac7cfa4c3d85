"""A document as a part of a page: a list of sentences, each with its share, its words shaded by theirs."""

from __future__ import annotations

from html import escape

from seq2see.seeing.documents import Document
from seq2see.seeing.style import strength
from seq2see.seeing.symbols import visible


def document_section(document: Document, top: float, *, named: bool) -> str:
    """The section as HTML; needs the page's style sheet, and no script."""
    title = f'<h2 dir="auto">{escape(document.title)}</h2>\n' if named else ""
    said = "" if document.output is None else f"output: <bdi>{escape(visible(document.output))}</bdi> · "
    sentences = "\n".join(_sentence(document, number, top) for number in range(len(document.words)))
    return f"""<section aria-label="{escape(document.name)}">
{title}<p class="caption">{said}{escape(document.caption)}</p>
<ol class="document" dir="{document.direction}">
{sentences}
</ol>
</section>"""


def _sentence(document: Document, number: int, top: float) -> str:
    share = ""
    if document.sentences is not None:
        weight = float(document.sentences[number])
        share = f'<b class="share {strength(weight / top)}" style="--w:{weight / top:.3f}">{weight:.2f}</b>'
    pairs = zip(document.words[number], document.within[number], strict=True)
    words = " ".join(_word(word, float(weight), top) for word, weight in pairs)
    return f"<li>{share}<span>{words}</span></li>"


def _word(word: str, weight: float, top: float) -> str:
    share = weight / top
    shown, told = escape(visible(word)), f'title="{weight:.3f}"'
    return f'<span class="word {strength(share)}" {told} style="--w:{share:.3f}">{shown}</span>'
