"""Inputs as the model reads them, for a page to light up: words with their spans, pictures, sounds, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2see.data.field import Field
from seq2see.data.fields import Fields
from seq2see.data.media import MediaField
from seq2see.data.pictures import data_url
from seq2see.data.sound import SoundField
from seq2see.data.text import TextField
from seq2see.data.texts import TextsField
from seq2see.looks import Film

TALLEST = 240
"""Pixels of a spectrogram, low to high."""


def shown(fields: Fields, row: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Each input of a row by name; `kind` is that of the recipe and says what else there is."""
    return {name: {"kind": field.settings.kind} | _one(field, row[name]) for name, field in fields.inputs.items()}


def _one(field: Field, value: str) -> dict[str, Any]:
    if isinstance(field, SoundField):
        return _sound(field, value)
    if isinstance(field, MediaField):
        seen = field.shown(value)
        if isinstance(seen, Film):
            return _film(seen)
        return _picture(seen) if isinstance(seen, np.ndarray) else {}
    if isinstance(field, TextsField):
        return {"text": value, "sentences": field.sentences(value)}
    if isinstance(field, TextField):
        symbols = field.symbols(value)
        return {"text": value, "symbols": symbols, "spans": spans(value, symbols)}
    return {"text": value}


def spans(text: str, symbols: Sequence[str]) -> list[list[int] | None]:
    """Where each symbol stands in the text, as [from, to); None for those that were changed beyond recognition.

    Symbols are those of the text as the model reads it, whose case, spaces and accents may differ.

    >>> spans("A dog, a Dog", ["a", "dog", "<unk>", "a", "dog"])
    [[0, 1], [2, 5], None, [7, 8], [9, 12]]
    """
    lowered = text.lower() if len(text.lower()) == len(text) else text
    found: list[list[int] | None] = []
    start = 0
    for symbol in symbols:
        wanted = symbol.lower()
        at = lowered.find(wanted, start) if wanted else -1
        found.append(None if at < 0 else [at, at + len(wanted)])
        start = start if at < 0 else at + len(wanted)
    return found


def _picture(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    return {"picture": data_url(pixels), "height": pixels.shape[0], "width": pixels.shape[1]}


def _film(film: Film) -> dict[str, Any]:
    """The frames that the model is shown, with the second of each."""
    height, width = film.frames.shape[1:3]
    return {"frames": [data_url(frame) for frame in film.frames], "times": film.times, "height": height, "width": width}


def _sound(field: SoundField, value: str) -> dict[str, Any]:
    """The spectrogram that the model reads, time from left to right, low frequencies at the bottom."""
    mels = field.batch([value]).values[0].numpy()
    low, high = float(mels.min()), float(mels.max())
    grey = np.rint(255 * (mels - low) / max(high - low, 1e-9)).astype(np.uint8).T[::-1]
    times = max(TALLEST // grey.shape[0], 1)
    seconds = len(mels) * field.settings.hop / 1000
    return _picture(grey.repeat(times, axis=0)) | {"seconds": seconds}
