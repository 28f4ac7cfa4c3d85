"""A tiny table for every shipped recipe, the same on every machine: what is trained on, what is held out."""

from __future__ import annotations

import json
import random
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

Row = Mapping[str, Any]

TRAINING, HELD = 36, 6
RATE = 8000
SIDE = 24
NAMES = ("anna", "ben", "cora", "dan", "eva", "finn")
VERBS = ("sees", "likes", "draws", "finds")
THINGS = ("dog", "cat", "boat", "tree", "house")
COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220)}
SHAPES = ("square", "circle")
TONES = {"low": 300.0, "middle": 700.0, "high": 1500.0}
STEPS = {"left": (0, -2), "right": (0, 2), "up": (-2, 0), "down": (2, 0)}


@dataclass(frozen=True)
class Table:
    """data: rows to train on; held: further ones; inputs: of two of those, as `predict` takes them; output: of one."""

    data: Path
    held: Path
    inputs: list[Any]
    output: str


Draw = random.Random
Make = Callable[[Path, Draw, int], dict[str, Any]]
"""One row: (folder, draw, number) -> {column: value}; files are written into the folder."""


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Rows as JSON lines, as plain lines or as TSV, as the suffix says."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    elif path.suffix == ".txt":
        lines = [str(value) for row in rows for value in row.values()]
    else:
        lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


# ---------------------------------------------------------------- texts


def sentence(draw: Draw) -> list[str]:
    words = [draw.choice(NAMES), draw.choice(VERBS), "a", draw.choice(list(COLOURS)), draw.choice(THINGS)]
    return words if draw.random() < 0.7 else [words[0], words[1], "no", words[4]]


def _word(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    """A word and the same letters in Devanagari; links tell which letter is which."""
    letters = draw.choices("abcdefgh", k=draw.randint(3, 6))
    native = "".join(chr(0x0915 + "abcdefgh".index(letter)) for letter in letters)
    links = " ".join(f"{place}-{place}" for place in range(len(letters)))
    return {"latin": "".join(letters), "native": native, "links": links}


def _spoken(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    word = "".join(draw.choices("abcdefgh", k=draw.randint(3, 6)))
    return {"word": word, "phonemes": " ".join(f"{letter.upper()}{number % 2}" for letter in word)}


def _translated(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    words = sentence(draw)
    return {"en": " ".join(words), "de": " ".join(word[::-1] for word in words)}


def _judged(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    premise = sentence(draw)
    label = ("entailment", "contradiction", "neutral")[number % 3]
    other = {"entailment": premise[:2] + premise[-1:], "contradiction": ["nobody", *premise[1:]]}
    hypothesis = other.get(label, sentence(draw))
    return {"premise": " ".join(premise), "hypothesis": " ".join(hypothesis), "label": label}


def _talked(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    history = [" ".join(sentence(draw)) for _ in range(draw.randint(1, 4))]
    return {"history": history, "response": " ".join(["yes", *history[-1].split()[:3]])}


def _abstract(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    sentences = [sentence(draw) for _ in range(draw.randint(2, 4))]
    text = " ".join(f"{' '.join(words).capitalize()}." for words in sentences)
    return {"abstract": text, "title": f"{sentences[0][0]} and the {sentences[0][-1]}"}


def _document(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    row = _abstract(folder, draw, number)
    return {"text": row["abstract"], "label": "boats" if "boat" in row["abstract"] else "others"}


def _asked(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    words = sentence(draw)
    return {"question": f"What {words[1]} {words[0]} ?", "answer": f"the {words[-1]}"}


def _found(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    sentences = [sentence(draw) for _ in range(3)]
    words = draw.choice(sentences)
    passage = " . ".join(" ".join(one) for one in sentences)
    return {"passage": passage, "question": f"what {words[1]} {words[0]} ?", "answer": f"the {words[-1]}"}


def _line(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    return {"text": " ".join(sentence(draw))}


def _set(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    items = draw.choices("abcdef", k=draw.randint(2, 5))
    return {"items": items, "sorted": " ".join(sorted(items))}


def _vector(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    one, other = draw.uniform(-1, 1), draw.uniform(-1, 1)
    numbers = [one, other, one + other, one - other, one * other, 2.0]
    return {"x": " ".join(f"{value + draw.gauss(0, 0.1):.4f}" for value in numbers)}


def _recorded(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    """Two channels with a bump in one of them, and a gap."""
    steps, label = draw.randint(9, 14), ("up", "down")[number % 2]
    at, gap = draw.randrange(1, steps - 1), draw.randrange(steps)
    height = 3 if label == "up" else -3
    rows = [[draw.gauss(0, 0.3) + height * (step == at), draw.gauss(5, 0.3)] for step in range(steps)]
    words = [[f"{value:.3f}" for value in row] for row in rows]
    words[gap][number % 2] = "?"
    return {"series": "; ".join(" ".join(row) for row in words), "label": label}


def _continued(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    """A line that goes on, beside a channel that has nothing to do with it."""
    start, slope = draw.uniform(-2, 2), draw.uniform(-1, 1)
    past = [f"{start + slope * step:.3f} {draw.gauss(0, 1):.3f}" for step in range(8)]
    future = [f"{start + slope * step:.3f}" for step in range(8, 11)]
    return {"history": "; ".join(past), "future": " ".join(future)}


# ---------------------------------------------------------------- pictures, sounds, videos


def _drawn(path: Path, draw: Draw, colour: str, shape: str) -> None:
    picture = Image.new("RGB", (SIDE, SIDE), "white")
    brush = ImageDraw.Draw(picture)
    x, y, side = draw.randint(1, 8), draw.randint(1, 8), draw.randint(8, 14)
    (brush.rectangle if shape == "square" else brush.ellipse)((x, y, x + side, y + side), fill=COLOURS[colour])
    picture.save(path)


def _captioned(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    colour, shape, path = draw.choice(list(COLOURS)), draw.choice(SHAPES), f"{number}.png"
    _drawn(folder / path, draw, colour, shape)
    return {"image": path, "caption": f"a {colour} {shape} on white"}


def _questioned(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    colour, shape, path = draw.choice(list(COLOURS)), draw.choice(SHAPES), f"{number}.png"
    _drawn(folder / path, draw, colour, shape)
    what, answer = (("colour", colour), ("shape", shape))[number % 2]
    return {"image": path, "question": f"what {what} is it ?", "answer": answer}


def _strokes(folder: Path, draw: Draw, number: int, letters: str = "ilH") -> dict[str, Any]:
    """A line of strokes of three heights: letters without a font, which would differ from machine to machine."""
    text = "".join(draw.choices(letters, k=draw.randint(2, 4)))
    picture = Image.new("L", (8 * len(text) + draw.randint(4, 12), 16), 255)
    brush = ImageDraw.Draw(picture)
    for place, letter in enumerate(text):
        height = 4 + 4 * letters.index(letter)
        x = 8 * place + 4
        brush.rectangle((x, 14 - height, x + 2, 14), fill=draw.randint(0, 60))
    picture.save(folder / f"{number}.png")
    return {"image": f"{number}.png", "text": text}


def _arabic(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    return _strokes(folder, draw, number, "\u062f\u0631\u0633")


def _heard(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    """A tone for each word, with pauses between, as 16-bit WAV."""
    words = draw.choices(list(TONES), k=draw.randint(1, 3))
    parts = []
    for word in words:
        time = np.arange(round(draw.uniform(0.05, 0.08) * RATE)) / RATE
        tone = np.sin(2 * np.pi * TONES[word] * draw.uniform(0.95, 1.05) * time) * np.hanning(len(time))
        parts += [tone, np.array([draw.gauss(0, 0.002) for _ in range(RATE // 40)])]
    with wave.open(str(folder / f"{number}.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.round(12000 * np.concatenate(parts)).astype("<i2").tobytes())
    return {"audio": f"{number}.wav", "text": " ".join(words)}


def _filmed(path: Path, draw: Draw, direction: str) -> None:
    """A bright square that goes one way, each frame kept without loss."""
    import av

    down, across = STEPS[direction]
    row, column, light = draw.randrange(SIDE), draw.randrange(SIDE), draw.randint(120, 220)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=10)
        stream.height, stream.width, stream.pix_fmt = SIDE, SIDE, "bgr0"
        for number in range(draw.randint(5, 8)):
            frame = np.full((SIDE, SIDE, 3), 30, dtype=np.uint8)
            rows = (np.arange(6) + row + down * number) % SIDE
            columns = (np.arange(6) + column + across * number) % SIDE
            frame[rows[:, None], columns] = light - 5 * number
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _moved(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    direction = list(STEPS)[number % len(STEPS)]
    _filmed(folder / f"{number}.avi", draw, direction)
    return {"video": f"{number}.avi", "text": f"it goes {direction}"}


def _turned(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    return {"video": _moved(folder, draw, number)["video"]}


def _labelled(folder: Path, draw: Draw, number: int) -> dict[str, Any]:
    row = _moved(folder, draw, number)
    return {"video": row["video"], "label": row["text"].split()[-1]}


# ---------------------------------------------------------------- by recipe

MAKERS: dict[str, tuple[Make, str]] = {
    "arrow-of-time": (_turned, "tsv"),
    "autoencoder": (_vector, "tsv"),
    "dialog": (_talked, "jsonl"),
    "dialog-history": (_talked, "jsonl"),
    "document-classification": (_document, "jsonl"),
    "entailment": (_judged, "tsv"),
    "entailment-generation": (_judged, "tsv"),
    "forecasting": (_continued, "tsv"),
    "grapheme-to-phoneme": (_spoken, "tsv"),
    "image-autoencoder": (_captioned, "tsv"),
    "image-captioning": (_captioned, "tsv"),
    "language-model": (_line, "txt"),
    "question-answering": (_asked, "tsv"),
    "question-answering-passage": (_found, "tsv"),
    "sequence-autoencoder": (_line, "tsv"),
    "series-classification": (_recorded, "tsv"),
    "set-to-sequence": (_set, "jsonl"),
    "speech-recognition": (_heard, "tsv"),
    "summarisation": (_abstract, "tsv"),
    "summarisation-hierarchical": (_abstract, "jsonl"),
    "text-line-recognition": (_strokes, "tsv"),
    "translation": (_translated, "tsv"),
    "translation-transformer": (_translated, "tsv"),
    "transliteration": (_word, "tsv"),
    "video-captioning": (_moved, "tsv"),
    "video-classification": (_labelled, "tsv"),
    "visual-question-answering": (_questioned, "tsv"),
}
"""{recipe: (how a row is made, how the table is written)}"""

OTHERS: dict[str, tuple[Make, str]] = {"lines from the right": (_arabic, "tsv")}
"""Further tables, for cases that ask for them by name."""

INPUTS: dict[str, dict[str, str]] = {
    "dialog": {"utterance": "history"},
    "document-classification": {"document": "text"},
    "entailment": {"premise": "premise", "hypothesis": "hypothesis"},
    "entailment-generation": {"premise": "premise"},
    "grapheme-to-phoneme": {"source": "word"},
    "language-model": {},
    "question-answering-passage": {"passage": "passage", "question": "question"},
    "sequence-autoencoder": {"source": "text"},
    "summarisation": {"document": "abstract"},
    "summarisation-hierarchical": {"document": "abstract"},
    "translation": {"source": "en"},
    "translation-transformer": {"source": "en"},
    "transliteration": {"source": "latin"},
    "visual-question-answering": {"image": "image", "question": "question"},
}
"""{recipe: {input: column}}, where an input is not called as the only or the first column is."""

OUTPUTS = {
    "entailment": "label",
    "question-answering-passage": "answer",
    "visual-question-answering": "answer",
}
"""{recipe: column of the output}, where it is not the second one, or the only one."""

FILES = {".png", ".wav", ".avi"}


def make(name: str, folder: Path) -> Table:
    """The table of a recipe, or another one by its name, with its files in the folder."""
    maker, suffix = MAKERS.get(name) or OTHERS[name]
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"table of {name}")
    rows = [maker(folder, draw, number) for number in range(TRAINING + HELD)]
    data = write(folder / f"data.{suffix}", rows[:TRAINING])
    held = write(folder / f"held.{suffix}", rows[TRAINING:])
    first, second = rows[TRAINING : TRAINING + 2]
    output = OUTPUTS.get(name, list(first)[min(1, len(first) - 1)])
    inputs = [_input(name, folder, row) for row in (first, second)]
    return Table(data, held, inputs, "forward" if name == "arrow-of-time" else str(first[output]))


def _input(name: str, folder: Path, row: Row) -> Any:
    """What `predict` is given of a row: one value, or several by the names of the inputs."""
    first = next(iter(row))
    values = {key: _given(folder, row[column]) for key, column in INPUTS.get(name, {first: first}).items()}
    if name == "dialog":
        return values["utterance"][-1]
    if not values:
        return None
    return values if len(values) > 1 or isinstance(next(iter(values.values())), list) else next(iter(values.values()))


def _given(folder: Path, value: Any) -> Any:
    """A file as its path, all else as it is."""
    return str(folder / value) if isinstance(value, str) and Path(value).suffix in FILES else value
