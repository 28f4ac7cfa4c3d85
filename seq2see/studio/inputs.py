"""Inputs of a request: read into rows of the model, with files saved and lengths checked."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2see.api import Model
from seq2see.data.media_files import Job
from seq2see.errors import UserError, counted
from seq2see.files import shortened
from seq2see.modalities.files import FileField
from seq2see.pipeline.fields import Fields
from seq2see.studio.http import InvalidRequest
from seq2see.studio.limits import Limits
from seq2see.studio.media import DecodedFile, MediaDecoder
from seq2see.studio.request_body import ScratchFolder, UploadedFile

DATA_URL = re.compile(r"data:[\w.+-]+/([\w.+-]+)(?:;[\w=.+-]+)*;base64,", re.ASCII)
EXAMPLE = "example"
HIDDEN = "this model has some, files that may not be shown; `seq2see serve MODEL --files FOLDER` shows those in FOLDER"

Row = dict[str, str]


@dataclass
class InputReader:
    """Reads the inputs of one request; files that come with it are saved in `scratch`.

    examples: rows that clients may name by number; names: {path: the client's name of the file}; hidden: the model has
    examples whose files may not be shown; media: decodes files, None where the model reads none; held: decoded files,
    kept in memory for the request.
    """

    model: Model
    scratch: ScratchFolder
    limits: Limits
    examples: list[Row] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    hidden: bool = False
    media: MediaDecoder | None = None
    held: list[DecodedFile] = field(default_factory=list)

    def read(self, value: Any) -> Row:
        """One input as a row by the recipe's names; InvalidRequest where it breaks the schema, another UserError where
        the model cannot read it."""
        try:
            values = self._values(value)
            for name, part in values.items():
                self._check_type(name, part)
        except UserError as error:
            raise InvalidRequest(str(error)) from None
        row = self.model.row(values)
        for name, text in row.items():
            self._check_length(name, text)
        if row and not any(text.strip() for text in row.values()):
            raise UserError("input: it is empty")
        empty = [name for name in self.model.recipe.needed if not row[name].strip()]
        if empty:
            raise UserError(f"input: {', '.join(empty)}: empty, and the model needs it")
        return row

    def _values(self, value: Any) -> dict[str, Any]:
        """The values by the names of the inputs; files are saved."""
        inputs = list(self.model.recipe.inputs)
        if isinstance(value, Mapping) and set(value) == {EXAMPLE} and EXAMPLE not in inputs:
            return self._example(value[EXAMPLE])
        if not inputs and value not in (None, "", {}):
            raise UserError("input: this model is a language model and reads none; `prefix` gives it a beginning")
        if inputs and value is None:
            raise UserError(f"input: missing; the model reads {', '.join(inputs)}")
        if inputs and not isinstance(value, Mapping):
            if len(inputs) > 1:
                raise UserError(f"input: the model reads {', '.join(inputs)}: give {{name: value}} with each of them")
            value = {inputs[0]: value}
        values: Mapping[str, Any] = value or {}
        if set(values) != set(inputs):
            names = shortened(", ".join(map(str, values)), quotes=False)
            raise UserError(f"input: the model reads the inputs {', '.join(inputs)}, got {names or 'none'}")
        return {name: self._value(name, part) for name, part in values.items()}

    def _check_type(self, name: str, value: Any) -> None:
        """Check a value against the schema, elements of lists included."""
        elements = self.model.bundle.fields.inputs[name].elements
        if isinstance(value, str):
            self._check_length(name, value)
        elif elements is not None and isinstance(value, list):
            wrong = [item for item in value if not isinstance(item, elements.types) or isinstance(item, bool)]
            if wrong or not (value or elements.may_be_empty):
                got = f"{shortened(wrong[0])} in it" if wrong else "an empty one"
                raise UserError(f"input '{name}': expected a list of {elements.name}, got {got}")
        else:
            allowed = "text" if elements is None else f"text or a list of {elements.name}"
            raise UserError(f"input '{name}': expected {allowed}, got {shortened(value)}")

    async def decode(self, rows: Sequence[Row], *, shown: bool, deadline: float) -> None:
        """Decode the files of rows as the model needs them, shown: and for display too."""
        if self.media is None:
            return
        jobs, names, known = dict[str, Job](), dict[str, str](), self.file_names()
        for row in rows:
            for bundle in self.model.bundles:
                for name, column in bundle.fields.inputs.items():
                    if isinstance(column, FileField) and column.decoder is self.media:
                        job = column.job(row[name], preview=shown and bundle is self.model.bundle)
                        if job.key not in jobs or job.preview is not None:
                            jobs[job.key] = job
                            names.setdefault(job.key, f"input '{name}': {known.get(row[name], 'the file')}")
        self.held += await self.media.decode(jobs, names=names, deadline=deadline)

    def close(self) -> None:
        """Free the decoded files at the end of the request: a cancelled task is not freed at once, and all requests
        share the memory for files."""
        self.held.clear()

    def file_names(self) -> dict[str, str]:
        """{path: the client's name of the file}: uploads by the names they came with, examples by their own."""
        files = [name for name, settings in self.model.recipe.inputs.items() if settings.file]
        return {row[name]: Path(row[name]).name for row in self.examples for name in files} | self.names

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, Mapping) and set(value) == {EXAMPLE} and self.model.recipe.inputs.get(name) is not None:
            return self._example(value[EXAMPLE])[name]
        reads_files = name in self.model.recipe.inputs and self.model.recipe.inputs[name].file
        if isinstance(value, UploadedFile):
            if not reads_files:
                raise UserError(f"input '{name}': a text is read here, not a file ('{value.name}')")
            self.names[str(value.path)] = value.name
            return str(value.path)
        if reads_files:
            return self._save_data_url(name, value)
        return value

    def _save_data_url(self, name: str, value: Any) -> str:
        """The path of a file with the contents of a data: URL. Paths of clients are never read."""
        head = DATA_URL.match(value) if isinstance(value, str) else None
        if head is None:
            raise UserError(
                f"input '{name}': expected a file: multipart/form-data with a file '{name}', a URL of the form "
                f'data:TYPE;base64,..., or {{"{EXAMPLE}": number}}; got {shortened(value)[:40]}'
            )
        try:
            content = base64.b64decode(value[head.end() :], validate=True)
        except (binascii.Error, ValueError) as error:
            raise UserError(f"input '{name}': the data: URL is damaged: {error}") from None
        suffix = re.sub(r"[^a-z0-9]", "", head[1].lower().removeprefix("x-"))[:8]
        with self.scratch.open(f"sent-{len(self.names)}.{suffix}") as file:
            file.write(content)
        self.names[file.name] = f"{name}.{suffix}"
        return file.name

    def _check_length(self, name: str, value: str) -> None:
        if not self.model.recipe.inputs[name].file and len(value) > self.limits.text_characters:
            most = counted(self.limits.text_characters, "character")
            raise UserError(f"input '{name}': {len(value):,} characters; allowed: at most {most}")

    def _example(self, number: Any) -> Row:
        if isinstance(number, float) and number.is_integer():
            number = int(number)  # 1.0 is an integer in JSON
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.examples):
            if not self.examples:
                raise UserError(f"{EXAMPLE}: {HIDDEN if self.hidden else 'this model has none'}")
            raise UserError(f"{EXAMPLE}: {shortened(number)} is none; allowed: 0 to {len(self.examples) - 1}")
        return {name: self.examples[number][name] for name in self.model.recipe.inputs}


def preview_inputs(fields: Fields, row: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Each input of a row as the model reads it, for the page; `kind` says which other keys there are."""
    read = fields.read(row)
    return {name: {"kind": field.settings.kind} | field.preview(read[name]) for name, field in fields.inputs.items()}
