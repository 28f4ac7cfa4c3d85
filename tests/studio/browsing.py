"""A browser before the studio's page, and words for what a person does there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seq2see.cli import main

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 90_000
"""Milliseconds before a page that never comes to rest fails a test; nothing is measured by it."""


@dataclass
class Visit:
    """One page of the browser, and what it complained of or asked elsewhere."""

    page: Any
    address: str
    faults: list[str] = field(default_factory=list)

    def open(self, model: str, *, beside: str = "") -> None:
        self.page.goto(f"{self.address}#model={model}" + (f"&beside={beside}" if beside else ""))
        shown = "name => document.body.dataset.state === 'ready' && document.querySelector('#model').value === name"
        self.page.wait_for_function(shown, arg=model)

    def type(self, *texts: str) -> None:
        """Fill the fields, press Enter in the last, wait for the answer."""
        areas = self.page.locator("#entry textarea")
        for number, text in enumerate(texts):
            areas.nth(number).fill(text)
        areas.nth(len(texts) - 1).press("Enter")
        self.rest()

    def rest(self, *, edits: int = 0, panels: int = 1) -> None:
        """Wait until that many panels have answered, that many edits after the first answer."""
        ready = f'.panel[data-state="ready"][data-edits="{edits}"]'
        self.page.wait_for_function("([name, n]) => document.querySelectorAll(name).length === n", arg=[ready, panels])

    def answer(self, panel: int = 0) -> str:
        return str(self.page.locator(".panel").nth(panel).locator(".answer").inner_text())

    def tokens(self) -> list[str]:
        return list(self.page.locator(".token .symbol").all_inner_texts())

    def texts(self, selector: str) -> list[str]:
        return list(self.page.locator(selector).all_inner_texts())

    def shares(self, selector: str) -> list[float]:
        """How strongly each of the elements is shaded, 0 to 1."""
        read = "all => all.map(one => one.classList.contains('shade') ? Number(one.style.getPropertyValue('--w')) : -1)"
        return list(self.page.locator(selector).evaluate_all(read))

    def colour(self, selector: str, of: str = "background-color") -> str:
        """As #rrggbb."""
        said = self.page.locator(selector).first.evaluate("(one, of) => getComputedStyle(one)[of]", of)
        return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", said)[:3])

    def direction(self, selector: str) -> str:
        return str(self.page.locator(selector).first.evaluate("one => getComputedStyle(one).direction"))


LEFTWARD = """() => {
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!/^[-<.,%0-9\\s]*[0-9][-<.,%0-9\\s]*$/.test(node.data)) continue;
    const lefts = [...node.data].flatMap((character, at) => {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const box = range.getBoundingClientRect();
      return character.trim() && box.width ? [box.left] : [];
    });
    if (lefts.some((left, at) => at && left < lefts[at - 1])) wrong.push(node.data);
  }
  return wrong;
}"""
"""Numbers on a page whose signs do not stand in the order in which they are written."""

BOXES = """() => [...document.querySelectorAll("body *")].map((one) => {
  const box = one.getBoundingClientRect();
  const drawn = box.width > 0 || box.height > 0;
  const name = [one.tagName.toLowerCase(), ...one.classList].join(".");
  if (one.parentElement.closest(".step")) return {name, box: []};
  return {name, box: drawn ? [box.left + scrollX, box.top + scrollY, box.width, box.height] : []};
})"""
"""Where every element of a page stands, but for what is inside the details of a step, which change with the step."""
KEEP = f"() => {{ window.boxes = ({BOXES})(); }}"
CENTRE = """(one) => {
  one.scrollIntoViewIfNeeded();
  const box = one.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}"""
MOVED = f"""() => {{
  const before = window.boxes, after = ({BOXES})();
  if (before.length !== after.length) return [`${{before.length}} elements, then ${{after.length}}`];
  const same = (one, other) => one.length === other.length && one.every((x, at) => Math.abs(x - other[at]) <= 0.02);
  return before.filter((one, at) => one.name !== "i.cell" && !same(one.box, after[at].box)).map((one) => one.name);
}}"""


def moved(page: Any, *selectors: str, most: int = 3) -> list[str]:
    """What is elsewhere, or of another size, while the pointer is on some of these elements."""
    page.mouse.move(1, 1)
    found = []
    for selector in selectors:
        every = page.locator(selector)
        count = every.count()
        assert count, selector
        for number in range(0, count, max(1, count // most)):
            one = every.nth(number)
            at = one.evaluate(CENTRE)
            page.mouse.move(1, 1)
            page.evaluate(KEEP)
            page.mouse.move(*at)
            if not one.evaluate("(one, [x, y]) => one.contains(document.elementFromPoint(x, y))", at):
                one.hover()  # there is something before it: some other point of it will do
            found += [f"{selector} {number}: {name}" for name in page.evaluate(MOVED)]
    return found


@contextmanager
def visiting(browser: Any, address: str, **options: Any) -> Iterator[Visit]:
    """A page with nothing kept from the visit before; afterwards it must have asked nobody else, and complained of
    nothing."""
    with _blank_page(browser, **options) as page:
        visit = Visit(page, address)
        allowed = (address, "data:", f"blob:{address}")
        heard = {
            "console": lambda message: visit.faults.append(message.text) if message.type == "error" else None,
            "pageerror": lambda error: visit.faults.append(str(error)),
            "request": lambda one: None if one.url.startswith(allowed) else visit.faults.append(f"asked {one.url}"),
        }
        for event, listener in heard.items():
            page.on(event, listener)
        yield visit
        page.mouse.move(0, 0)
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        for event, listener in heard.items():
            page.remove_listener(event, listener)
        assert visit.faults == []


@contextmanager
def _blank_page(browser: Any, *, viewport: Any = None, color_scheme: str = "light", **options: Any) -> Iterator[Any]:
    """The one page of a browser, since another takes long to open; with options that cannot change, one of its own."""
    shared = browser.contexts[0] if browser.contexts and not options else None
    context = shared or browser.new_context(**options)
    try:
        context.set_default_timeout(PATIENCE)
        page = context.pages[0] if context.pages else context.new_page()
        page.set_viewport_size(viewport or {"width": 1280, "height": 900})
        page.emulate_media(color_scheme=color_scheme)
        yield page
        page.goto("about:blank")
    except BaseException:
        context.close()
        raise
    if options:
        context.close()


def predicted(capsys: pytest.CaptureFixture[str], folder: Path, given: object, *options: object) -> dict[str, Any]:
    """What the command line says."""
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main(["predict", str(folder), str(given), "--json", "--looks", "-", *map(str, options)])
    return dict(json.loads(capsys.readouterr().out))


def percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.001 else f"{share * 100:.1f} %" if share * 100 < 9.95 else f"{share * 100:.0f} %"


def fraction(weight: float) -> str:
    return "< 0.01" if 0 < weight < 0.005 else f"{weight:.2f}"


def scaled(weights: list[float], everything: list[list[float]]) -> Any:
    """Weights as shares of the heaviest of all."""
    return pytest.approx([weight / max(map(max, everything)) for weight in weights], abs=2e-3)
