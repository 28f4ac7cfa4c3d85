"""Scenes as a part of a page: pictures inside the page itself, one for each word, which grow when they are chosen."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO

from PIL import Image

from seq2see.looks import Pixels
from seq2see.seeing.scenes import Scene
from seq2see.seeing.style import THEMES, Theme, theme_named
from seq2see.seeing.symbols import visible

QUALITY = 88


def scene_section(scene: Scene, *, theme: str | None, named: bool) -> str:
    """The section as HTML; needs the page's style sheet, and no script. Without a theme there is a picture for each,
    of which the reader's system shows one."""
    themes = [theme_named(theme)] if theme is not None else list(THEMES.values())
    head = "" if scene.head is None else f" · head {scene.head}"
    title = f'<h2 dir="auto">{escape(scene.name)}{head}</h2>\n' if named or head else ""
    whole = _figure("as the model sees it", "", f'<img alt="the picture" src="{_data(scene.picture)}">', kind=" whole")
    looks = "\n".join(_look(scene, step, themes) for step in range(len(scene.outputs)))
    return f"""<section aria-label="{escape(scene.name)}">
{title}<p class="caption">lit: where it looked, fully at a weight of {scene.top:g}</p>
<div class="scenes">
{whole}
{looks}
</div>
</section>"""


def _look(scene: Scene, step: int, themes: list[Theme]) -> str:
    word = escape(visible(scene.outputs[step]))
    alone = len(themes) == 1
    pictures = "".join(
        f'<img{"" if alone else f" class={theme.name}"} alt="where it looked for {word}" '
        f'src="{_data(scene.lit(step, theme))}">'
        for theme in themes
    )
    return _figure(word, scene.said(step) or "", pictures)


def _figure(word: str, said: str, pictures: str, *, kind: str = "") -> str:
    caption = f"<figcaption><b><bdi>{word}</bdi></b> <span>{said}</span></figcaption>"
    return f'<figure class="scene{kind}" tabindex="0">{caption}{pictures}</figure>'


def _data(picture: Pixels) -> str:
    """A picture as the address of itself."""
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
