"""The pictures of docs/seeing.md, made by its own commands.

python docs/make_pictures.py [--only lengths.png] runs/translation=/path/to/a/run multi30k=/path/to/data ...

Words of the commands that begin with a name given here (a run, a folder of data) are put in its place. What the page
trains itself, and the tables for that, are made in a folder that goes again.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from seq2see.cli.app import run
from seq2see.errors import UserError
from seq2see.looks import Looks
from seq2see.modalities.vector import written
from seq2see.modalities.video import Video

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"
MOST = 150_000
"""Bytes of a picture."""
RECIPE = """\
task: first
inputs: {source: {tokens: symbol}}
output: {kind: label}
encoder: {cell: gru, size: 32, bidirectional: false, embedding: {size: 16}}
attention: none
decoder: {kind: label, size: 32, start: source}
training: {learning_rate: 0.02, clip: 0.5, batch_rows: 32, batch_tokens: 4000, epochs: 1}
"""


def commands() -> list[list[str]]:
    """Every command of the page that draws a picture, in its order; blocks of Python are none."""
    page = (DOCS / "seeing.md").read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    lines = (line for language, block in blocks if not language for line in block.splitlines())
    return [words[1:] for words in (shlex.split(line, comments=True) for line in lines) if "--out" in words]


def strokes(number: int) -> np.ndarray:
    """(number, 64): blurred straight strokes of any length and direction, 8 x 8 pixels from 0 to 1."""
    random = np.random.default_rng(1)
    middle, angle = random.uniform(2.5, 4.5, (number, 2, 1)), random.uniform(0, np.pi, (number, 1))
    along = np.linspace(-1, 1, 9) * random.uniform(1, 3.5, (number, 1))
    x, y = middle[:, 0] + along * np.cos(angle), middle[:, 1] + along * np.sin(angle)
    down, across = np.mgrid[:8, :8]
    far = (down.ravel()[:, None] - y[:, None]) ** 2 + (across.ravel()[:, None] - x[:, None]) ** 2
    return np.asarray(np.exp(-far.min(2)))


def tables(folder: Path) -> None:
    """Rows that the page's commands speak of and that are nobody's data."""
    rows = "".join(f"{written(row)}\n" for row in strokes(900))
    (folder / "strokes.tsv").write_text(f"x\n{rows}", encoding="utf-8")
    random = np.random.default_rng(2)
    long = [random.choice(list("abcd"), size=random.integers(20, 41)) for _ in range(1200)]
    rows = "".join(f"{' '.join(row)}\t{row[0]}\n" for row in long)
    (folder / "first.tsv").write_text(f"source\toutput\n{rows}", encoding="utf-8")
    (folder / "first.yaml").write_text(RECIPE, encoding="utf-8")


def film(path: Path) -> None:
    """A ball that rolls over a hill, and weights that follow it: what a film strip looks like."""
    down, across = np.mgrid[:54, :96]
    times = np.arange(10) / 4
    frames = np.empty((10, 54, 96, 3), dtype=np.uint8)
    for number, time in enumerate(times):
        x = 8 + 80 * time / times[-1]
        y = 40 - 22 * np.sin(np.pi * x / 96)
        frames[number] = (150, 185, 225)
        frames[number][down > 46 - 22 * np.sin(np.pi * across / 96)] = (90, 140, 80)
        frames[number][(across - x) ** 2 + (down - y) ** 2 < 36] = (205, 60, 45)
    words = ["a", "ball", "rolls", "up", "and", "down", "<eos>"]
    middles = np.array([2, 1, 3, 2.5, 5, 7.5, 9])
    weights = np.exp(-(((np.arange(10) - middles[:, None]) / 1.4) ** 2))
    weights /= weights.sum(1, keepdims=True)
    Looks(
        maps={"video": weights.astype(np.float32)},
        inputs={"video": [f"{time:.2f} s" for time in times]},
        outputs=words,
        layouts={"video": {"kind": "frames", "shape": [10]}},
        pictures={"video": lambda: Video(frames, times.tolist())},
    ).save(path)


def lighter(path: Path) -> None:
    """The same picture in fewer colours, and smaller, where it takes too many bytes."""
    whole, share = Image.open(path).convert("RGB"), 1.0
    while path.stat().st_size > MOST:
        size = (round(share * whole.width), round(share * whole.height))
        small = whole.resize(size, Image.Resampling.LANCZOS)
        small.quantize(255, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
        share *= 0.85


def placed(word: str, given: dict[str, str]) -> str:
    """A word of a command with what was given in place of the name it begins with."""
    label, sign, path = word.partition("=")
    head, rest = (f"{label}{sign}", path) if sign and not label.startswith("-") and "." not in label else ("", word)
    name = max((one for one in given if rest == one or rest.startswith(f"{one}/")), key=len, default=None)
    return word if name is None else f"{head}{given[name]}{rest.removeprefix(name)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--only", action="append", default=[], metavar="PICTURE")
    asked = parser.parse_args()
    given = dict(place.split("=", 1) for place in asked.places)
    if not asked.only or "look-film.png" in asked.only:
        film(PICTURES / "look-film.png")
        lighter(PICTURES / "look-film.png")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tables(Path(folder))
        for command in commands():
            out = Path(command[command.index("--out") + 1])
            if asked.only and out.name not in asked.only and out.suffix == ".png":
                continue
            words = [
                str(PICTURES / word) if word == out.name and out.suffix else placed(word, given) for word in command
            ]
            print(shlex.join(words), flush=True)
            try:
                run(words)
            except UserError as error:
                print(f"not made: {error}")
                continue
            if out.suffix == ".png":
                lighter(PICTURES / out)


if __name__ == "__main__":
    main()
