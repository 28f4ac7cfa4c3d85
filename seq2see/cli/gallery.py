"""A folder of pictures with a page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
  :root {{ color-scheme: light dark }}
  body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
  main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.5rem }}
  figure {{ margin: 0 }} img {{ width: 100% }}
</style>
<h1>{title}</h1><p>{about}</p>
<main>
{figures}
</main></html>
"""
FIGURE = """\
  <figure>
    <a href="{page}"><img src="{picture}" alt="where the model looked for {caption}"></a>
    <figcaption>{caption}</figcaption>
  </figure>"""


def write_index(folder: Path, title: str, about: str, *, pictures: Sequence[tuple[str, str]]) -> Path:
    """index.html; pictures: (name of a .png and .html beside it without their suffix, caption)."""
    figures = [
        FIGURE.format(page=f"{escape(name)}.html", picture=f"{escape(name)}.png", caption=escape(caption))
        for name, caption in pictures
    ]
    path = folder / "index.html"
    page = PAGE.format(title=escape(title), about=escape(about), figures="\n".join(figures))
    path.write_text(page, encoding="utf-8")
    return path
