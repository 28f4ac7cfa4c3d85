"""Pictures of the studio for docs/studio.md and the front page, from trained models; needs the extra `dev`, Chromium.

python docs/make_screenshots.py translation=runs/multi30k transformer=runs/multi30k-transformer captions=runs/shapes \
    reviews=runs/imdb digits=runs/fsdd

Views whose model is not given are left as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
LARGEST = 200_000
SENTENCE = "A man with a hat is playing a guitar."
REVIEW = (
    "I went in expecting very little. The first half hour is slow, and the music does not help. Then the two sisters "
    "meet, and everything changes. Their scenes together are warm, funny and beautifully played. By the end I had "
    "forgotten every complaint. A wonderful film, and one of the best of the year."
)


@dataclass(frozen=True)
class View:
    """One picture: which models it needs (the first is asked, a second stands beside it), and what is done.

    part: selector of the part of the page that is pictured; without one, what is seen of it from the top.
    """

    name: str
    models: tuple[str, ...]
    do: Callable[[Any], None]
    dark: bool = False
    width: int = 1280
    height: int = 1180
    part: str = ""


def typed(page: Any, text: str = SENTENCE) -> None:
    page.fill("#entry textarea", text)
    page.press("#entry textarea", "Control+Enter")
    ready(page)


def picked(page: Any, example: int = 0) -> None:
    page.click(f".example[data-example='{example}']")
    ready(page)


def ready(page: Any, edits: int = 0) -> None:
    page.wait_for_selector(f".panel[data-state=ready][data-edits='{edits}']")
    page.wait_for_function("() => !document.querySelector('.panel:not([data-state=ready])')")


def looked(page: Any, word: str) -> None:
    """Point at the symbol that says this, or at the third."""
    found = page.locator(".token", has_text=word)
    (found.first if found.count() else page.locator(".token").nth(2)).click()


def text(page: Any) -> None:
    typed(page)
    looked(page, "Hut")


def edit(page: Any) -> None:
    typed(page)
    looked(page, "Hut")
    page.locator(".read .place", has_text="guitar").click()
    ready(page, edits=1)
    page.mouse.move(2, 2)


def tree(page: Any) -> None:
    typed(page, "A dog is running.")
    page.click("[data-part=tree] summary")
    page.wait_for_selector(".node")


def image(page: Any) -> None:
    picked(page, 2)
    looked(page, "green")


VIEWS = (
    View("text", ("translation",), text),
    View("edit", ("translation",), edit),
    View("tree", ("translation",), tree, part="[data-part=tree]"),
    View("image", ("captions",), image, height=1500),
    View("document", ("reviews",), lambda page: typed(page, REVIEW), dark=True),
    View("sound", ("digits",), lambda page: picked(page, 2)),
    View("beside", ("translation", "transformer"), typed, height=1500),
    View("phone", ("translation",), text, dark=True, width=390, height=1500),
)


@contextmanager
def served(models: dict[str, str]) -> Iterator[str]:
    """The address of a server that has them."""
    given = [f"{name}={folder}" for name, folder in models.items()]
    command = [sys.executable, "-m", "seq2see", "serve", *given, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines: list[str] = []
        for line in server.stderr:  # notices come before the address
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                break
        else:
            raise SystemExit("".join(lines))
        yield found[0]
        server.terminate()


def kept(content: bytes, path: Path) -> None:
    """A PNG with all its colours, or with as many as fit into the limit."""
    picture = Image.open(BytesIO(content)).convert("RGB")
    picture.save(path, optimize=True)
    for colours in (256, 128, 64, 32):
        if path.stat().st_size <= LARGEST:
            break
        picture.quantize(colours, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path} {path.stat().st_size:,} bytes")


def main() -> None:
    models = dict(one.split("=", 1) for one in sys.argv[1:])
    if not models:
        raise SystemExit(__doc__)
    with served(models) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for view in VIEWS:
            if not set(view.models) <= set(models):
                continue
            scheme = "dark" if view.dark else "light"
            page = browser.new_page(viewport={"width": view.width, "height": view.height}, color_scheme=scheme)
            page.set_default_timeout(120_000)
            page.goto(f"{address}#" + "&".join(map("=".join, zip(("model", "beside"), view.models, strict=False))))
            page.wait_for_selector("body[data-state=ready]")
            view.do(page)
            page.wait_for_function("() => document.fonts.status === 'loaded'")
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(400)  # what fades in is there
            pictured = page.locator(view.part) if view.part else page
            kept(pictured.screenshot(), PICTURES / f"studio-{view.name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
