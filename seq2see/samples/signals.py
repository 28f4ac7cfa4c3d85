"""Words as sounds and as pictures: Morse code, and printed lines."""

from __future__ import annotations

import json
import random
import tempfile
import wave
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seq2see.data.tables import write as write_table
from seq2see.rendering import Rendering, render
from seq2see.samples import Written
from seq2see.samples.texts import CLUBS, KINDS, LOOKS, NAMES, ROOMS, SCORERS, TOWNS

WORDS = tuple(sorted({*NAMES, *ROOMS, *KINDS, *LOOKS, *CLUBS, *TOWNS, *SCORERS}))

# ---------------- Morse code

MORSE = {"train": 1200, "dev": 200}
MARKS = [
    ".-",
    "-...",
    "-.-.",
    "-..",
    ".",
    "..-.",
    "--.",
    "....",
    "..",
    ".---",
    "-.-",
    ".-..",
    "--",
    "-.",
    "---",
    ".--.",
    "--.-",
    ".-.",
    "...",
    "-",
    "..-",
    "...-",
    ".--",
    "-..-",
    "-.--",
    "--..",
]
CODE = dict(zip("abcdefghijklmnopqrstuvwxyz", MARKS, strict=True))
RATE = 8000  # Hz
UNIT = (0.035, 0.05)  # seconds of a dot, the range of speeds
PITCH = (500.0, 900.0)  # Hz
NOISE = 0.05
LETTERS = (2, 5)


def write_morse(folder: Path, rows: Mapping[str, int] = MORSE, *, seed: int = 1) -> Written:
    """Sounds of two to five random letters in Morse code, at different speeds and pitches and with some noise; `text`
    has the letters with spaces between them, `times` each letter with its start and end in seconds."""
    for part, number in rows.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        draw, table = random.Random(f"morse {part} {seed}"), []
        noise = np.random.default_rng(draw.getrandbits(32))
        for count in range(number):
            letters = draw.choices(list(CODE), k=draw.randint(*LETTERS))
            unit, pitch = draw.uniform(*UNIT), draw.uniform(*PITCH)
            sound = beeps(letters, unit=unit, pitch=pitch)
            path = f"{part}/{count}.wav"
            _write_wave(folder / path, sound + NOISE * noise.standard_normal(len(sound)))
            table.append({"audio": path, "text": " ".join(letters), "times": json.dumps(times_of(letters, unit=unit))})
        write_table(folder / f"{part}.tsv", table, ("audio", "text", "times"))
    return {f"{part}.tsv": number for part, number in rows.items()}


def times_of(letters: list[str], *, unit: float) -> list[tuple[str, float, float]]:
    """(letter, start, end) in seconds."""
    times, now = list[tuple[str, float, float]](), 1
    for letter in letters:
        units = sum(4 if mark == "-" else 2 for mark in CODE[letter])
        times.append((letter, round(now * unit, 3), round((now + units - 1) * unit, 3)))
        now += units + 2
    return times


def beeps(letters: list[str], *, unit: float, pitch: float) -> NDArray[np.float64]:
    """The sound of letters in Morse code: a dash is three units long, as is the silence between letters."""
    on: list[bool] = [False]
    for letter in letters:
        for mark in CODE[letter]:
            on += [True] * (3 if mark == "-" else 1) + [False]
        on += [False, False]
    heard = np.repeat(np.array(on, dtype=float), round(unit * RATE))
    smooth = np.convolve(heard, np.hanning(41) / np.hanning(41).sum(), mode="same")  # without clicks
    return 0.5 * smooth * np.sin(2 * np.pi * pitch * np.arange(len(heard)) / RATE)


def _write_wave(path: Path, sound: NDArray[np.float64]) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound.clip(-1, 1) * 32767).astype("<i2").tobytes())


# ---------------- Printed lines

LINES = 2200
LINES_DEV = 0.15
FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Oblique")
"""Those that come with matplotlib."""


def write_lines(folder: Path, *, seed: int = 1, lines: int = LINES) -> Written:
    """Pictures of one or two printed words in four fonts, slanted, warped and in different weights."""
    import matplotlib

    draw = random.Random(f"lines {seed}")
    texts: dict[str, None] = {}
    while len(texts) < lines:  # each once
        texts[" ".join(draw.sample(WORDS, draw.choice((1, 2, 2))))] = None
    fonts = [str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf") for name in FONTS]
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "lines.txt"
        source.write_text("\n".join(texts) + "\n", encoding="utf-8")
        settings = Rendering(fonts=fonts, size=32, max_characters=0, dev_share=LINES_DEV, seed=seed)
        counts = render(source, folder, settings, say=lambda message: None, overwrite=True)
    return {"train.tsv": counts.train, "dev.tsv": counts.dev}
