"""A document as a part of a page: a list of sentences, each with its share, its words shaded by theirs."""

from __future__ import annotations

from html import escape

from seq2see.seeing.documents import SENTENCE, WORD, Document
from seq2see.seeing.style import strength
from seq2see.seeing.symbols import visible


def document_section(document: Document, *, named: bool, scale: str = "auto") -> str:
    """The section as HTML; needs the page's style sheet, and no script."""
    title = f'<h2 dir="auto">{escape(document.title)}</h2>\n' if named else ""
    said = "" if document.output is None else f"output: <bdi>{escape(visible(document.output))}</bdi> · "
    of_sentences, of_words = document.top_of_sentences(scale), document.top_of_words(scale)
    sentences = "\n".join(_sentence(document, number, of_sentences, of_words) for number in range(len(document.words)))
    keys = [key_line(of_sentences, SENTENCE)] if document.sentences is not None else []
    return f"""<section aria-label="{escape(document.name)}">
{title}<p class="caption">{said}{escape(document.caption)}</p>
<ol class="document" dir="{document.direction}">
{sentences}
</ol>
{"".join([*keys, key_line(of_words, WORD)])}
</section>"""


def key_line(top: float, meaning: str = "attention weight") -> str:
    """Which colour stands for which weight."""
    return f'<p class="key"><span>0</span><i></i><span>{top:g}</span><span>{meaning}</span></p>'


def _sentence(document: Document, number: int, top: float, of_words: float) -> str:
    share = ""
    if document.sentences is not None:
        weight = float(document.sentences[number])
        share = f'<b class="share {strength(weight / top)}" style="--w:{weight / top:.3f}">{weight:.2f}</b>'
    pairs = zip(document.words[number], document.within[number], strict=True)
    words = " ".join(_word(word, float(weight), of_words) for word, weight in pairs)
    return f"<li>{share}<span>{words}</span></li>"


def _word(word: str, weight: float, top: float) -> str:
    share = weight / top
    shown, told = escape(visible(word)), f'title="{weight:.3f}"'
    return f'<span class="word {strength(share)}" {told} style="--w:{share:.3f}">{shown}</span>'
