"""Films and sounds as a part of a page: the drawing of the sheet inside the page itself, in either theme."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO

from seq2see.seeing.films import Reel
from seq2see.seeing.hearings import Hearing
from seq2see.seeing.scene_page import scene_section
from seq2see.seeing.seen import Seen, seen_box
from seq2see.seeing.style import THEMES, theme_named

DPI = 120


def seen_section(seen: Seen, *, theme: str | None, named: bool) -> str:
    """The section as HTML; needs the page's style sheet, and no script. Without a theme there is a drawing for each, of
    which the reader's system shows one."""
    if not isinstance(seen, Reel | Hearing):
        return scene_section(seen, theme=theme, named=named)
    what = "frames that were looked at" if isinstance(seen, Reel) else "spectrogram with the weights over time"
    themes = [theme_named(theme).name] if theme is not None else list(THEMES)
    title = f'<h2 dir="auto">{escape(seen.name)}</h2>\n' if named else ""
    words = escape(" ".join(seen.outputs))
    pictures = "".join(
        f'<img{"" if len(themes) == 1 else f" class={name}"} alt="{what} for: {words}" src="{_data(seen, name)}">'
        for name in themes
    )
    return f"""<section aria-label="{escape(seen.name)}">
{title}<figure class="drawing scroll">{pictures}</figure>
</section>"""


def _data(seen: Seen, theme: str) -> str:
    """The drawing as the address of itself."""
    from seq2see.seeing.lettering import Lettering  # late: pages of pictures need no matplotlib
    from seq2see.seeing.sheet import Manner, on_paper

    manner = Manner(theme_named(theme), Lettering())
    figure, file = on_paper(seen_box(seen, manner), manner.theme), BytesIO()
    manner.letters.report_missing()
    figure.savefig(file, format="png", dpi=DPI, facecolor=figure.get_facecolor(), metadata={"Software": "seq2see"})
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
