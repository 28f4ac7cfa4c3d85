"""From what a client gives as an input to a row of the model's: files in place, texts within their limits."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seq2see.api import Model
from seq2see.data.image_files import data_url
from seq2see.data.media_files import Job
from seq2see.errors import UserError, counted
from seq2see.files import shortened
from seq2see.looks import Video
from seq2see.modalities.base import Field
from seq2see.modalities.files import MediaField
from seq2see.modalities.sound import SoundField
from seq2see.modalities.text import TextField
from seq2see.modalities.texts import TextsField
from seq2see.pipeline.fields import Fields
from seq2see.studio.bodies import Scratch, Upload
from seq2see.studio.media import Decoded, MediaDecoder
from seq2see.studio.schemas import Invalid
from seq2see.studio.settings import Limits

DATA = re.compile(r"data:[\w.+-]+/([\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.ASCII)
EXAMPLE = "example"
LISTS: dict[str, tuple[str, tuple[type, ...]]] = {
    "texts": ("texts", (str,)),
    "set": ("texts", (str,)),
    "vector": ("numbers", (int, float)),
}
"""Kinds of inputs that may be given as lists: what of, for a message, and its types."""
HIDDEN = "this model has some, files that may not be shown; `seq2see serve MODEL --files FOLDER` shows those in FOLDER"

Row = dict[str, str]


@dataclass
class Reader:
    """Reads the inputs of one request; files that are sent along go into `scratch`, which lives as long as it does.

    examples: rows that clients may name by number; names: what to call the files, which a client knows by their own;
    hidden: there are examples, whose files nobody has said may be shown; media: decodes files, where the model reads
    any; held: what they were decoded to.
    """

    model: Model
    scratch: Scratch
    limits: Limits
    examples: list[Row] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    hidden: bool = False
    media: MediaDecoder | None = None
    held: list[Decoded] = field(default_factory=list)

    def row(self, given: Any) -> Row:
        """One input as a row by the recipe's names; Invalid where it has not the form that the schema states, another
        UserError where the model cannot read what it holds."""
        try:
            values = self._values(given)
            for name, value in values.items():
                self._check_form(name, value)
        except UserError as error:
            raise Invalid(str(error)) from None
        row = self.model.row(values)
        for name, text in row.items():
            self._check_length(name, text)
        if row and not any(value.strip() for value in row.values()):
            raise UserError("input: it is empty")
        empty = [name for name in self.model.recipe.needed if not row[name].strip()]
        if empty:
            raise UserError(f"input: {', '.join(empty)}: empty, and the model needs it")
        return row

    def _values(self, given: Any) -> dict[str, Any]:
        """The values by the names of the inputs; files are in place."""
        inputs = list(self.model.recipe.inputs)
        if isinstance(given, Mapping) and set(given) == {EXAMPLE} and EXAMPLE not in inputs:
            return self._example(given[EXAMPLE])
        if not inputs and given not in (None, "", {}):
            raise UserError("input: this model is a language model and reads none; `prefix` gives it a beginning")
        if inputs and given is None:
            raise UserError(f"input: missing; the model reads {', '.join(inputs)}")
        if inputs and not isinstance(given, Mapping):
            if len(inputs) > 1:
                raise UserError(f"input: the model reads {', '.join(inputs)}: give {{name: value}} with each of them")
            given = {inputs[0]: given}
        known: Mapping[str, Any] = given or {}
        if set(known) != set(inputs):
            names = shortened(", ".join(map(str, known)), quotes=False)
            raise UserError(f"input: the model reads the inputs {', '.join(inputs)}, got {names or 'none'}")
        return {name: self._value(name, value) for name, value in known.items()}

    def _check_form(self, name: str, value: Any) -> None:
        """What the schema says of a value; Python's own lists may hold more than JSON's should."""
        kind = self.model.recipe.inputs[name].kind
        if isinstance(value, str):
            self._check_length(name, value)
        elif kind in LISTS and isinstance(value, list):
            expected, types = LISTS[kind]
            wrong = [one for one in value if not isinstance(one, types) or isinstance(one, bool)]
            if wrong or (not value and kind == "vector"):
                got = f"{shortened(wrong[0])} in it" if wrong else "an empty one"
                raise UserError(f"input '{name}': expected a list of {expected}, got {got}")
        else:
            allowed = f"text or a list of {LISTS[kind][0]}" if kind in LISTS else "text"
            raise UserError(f"input '{name}': expected {allowed}, got {shortened(value)}")

    async def decode(self, rows: Sequence[Row], *, shown: bool, until: float) -> None:
        """Decode the files of rows, all that is needed to predict from them, and, where wanted, to show them; until:
        the moment by which the request is to be answered."""
        if self.media is None:
            return
        jobs, names, known = dict[str, Job](), dict[str, str](), self.file_names()
        for row in rows:
            for bundle in self.model.bundles:
                for name, column in bundle.fields.inputs.items():
                    if isinstance(column, MediaField):
                        for job in column.jobs(row[name], shown=shown and bundle is self.model.bundle):
                            jobs[job.key] = job
                            names.setdefault(job.key, f"input '{name}': {known.get(row[name], 'the file')}")
        self.held += await self.media.decode(jobs, names=names, until=until)

    def close(self) -> None:
        """The request has ended. What it held is let go now: a task that was broken off is not freed at once, and all
        requests share the memory for files."""
        self.held.clear()

    def file_names(self) -> dict[str, str]:
        """{path: what a client calls it}: uploads by the names they came with, examples by the last part of theirs."""
        files = [name for name, one in self.model.bundle.fields.inputs.items() if isinstance(one, MediaField)]
        return {row[name]: Path(row[name]).name for row in self.examples for name in files} | self.names

    def _value(self, name: str, given: Any) -> Any:
        if isinstance(given, Mapping) and set(given) == {EXAMPLE} and self.model.recipe.inputs.get(name) is not None:
            return self._example(given[EXAMPLE])[name]
        reads_files = isinstance(self.model.bundle.fields.inputs.get(name), MediaField)
        if isinstance(given, Upload):
            if not reads_files:
                raise UserError(f"input '{name}': a text is read here, not a file ('{given.name}')")
            self.names[str(given.path)] = given.name
            return str(given.path)
        if reads_files:
            return self._file(name, given)
        return given

    def _file(self, name: str, given: Any) -> str:
        """A file out of a data: URL. A path is never taken: clients have no business among the server's files."""
        head = DATA.match(given) if isinstance(given, str) else None
        if head is None:
            said = shortened(given)[:40]
            raise UserError(
                f"input '{name}': expected a file: multipart/form-data with a file '{name}', a URL of the form "
                f'data:TYPE;base64,..., or {{"{EXAMPLE}": number}}; got {said}'
            )
        try:
            content = base64.b64decode(given[head.end() :], validate=True)
        except (binascii.Error, ValueError) as error:
            raise UserError(f"input '{name}': the data: URL is damaged: {error}") from None
        suffix = re.sub(r"[^a-z0-9]", "", head[1].lower().removeprefix("x-"))[:8]
        with self.scratch.open(f"sent-{len(self.names)}.{suffix}") as file:
            file.write(content)
        self.names[file.name] = f"{name}.{suffix}"
        return file.name

    def _check_length(self, name: str, value: str) -> None:
        reads_files = isinstance(self.model.bundle.fields.inputs[name], MediaField)
        if not reads_files and len(value) > self.limits.characters:
            most = counted(self.limits.characters, "character")
            raise UserError(f"input '{name}': {len(value):,} characters; allowed: at most {most}")

    def _example(self, number: Any) -> Row:
        if isinstance(number, float) and number.is_integer():
            number = int(number)  # 1.0 is an integer in JSON
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.examples):
            if not self.examples:
                raise UserError(f"{EXAMPLE}: {HIDDEN if self.hidden else 'this model has none'}")
            raise UserError(f"{EXAMPLE}: {shortened(number)} is none; allowed: 0 to {len(self.examples) - 1}")
        return {name: self.examples[number][name] for name in self.model.recipe.inputs}


# ---------------- Inputs as the model reads them, for a page to light up

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
        if isinstance(seen, Video):
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


def _film(film: Video) -> dict[str, Any]:
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
