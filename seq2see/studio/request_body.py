"""Bodies of requests: JSON, or a form with files, read into the same dictionary."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TypeVar

from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from seq2see.files import HalfCharacter, parse_json, shortened
from seq2see.studio.http import LARGE_BODY, InvalidRequest, RequestError, offload

JSON, FORM = "application/json", "multipart/form-data"
TEXTS = ("model", "prefix", "target", "output")
"""Options that are texts: in a form `prefix=5` is the text 5."""
MAX_FILES, MAX_FIELDS, FIELD_BYTES = 16, 64, 1 << 20
CHUNK = 1 << 20
MAX_VALUES = 1_000_000
"""Values in one body: the weights of a hundred steps over ten thousand places."""
DEPTH = 32
"""Nesting of lists and objects; no request needs more than six levels."""

Body = TypeVar("Body")
InputKinds = Callable[[str | None], Mapping[str, bool]]
"""From the name of a model to {input: whether it is a file}."""


class ScratchFolder(AbstractContextManager["ScratchFolder"]):
    """A temporary folder for the files of one request, created with the first file and removed at the request's end.

    A request whose client hangs up may end while a thread still writes its files. From then on no file is opened, and
    the folder is removed when the last open file is closed: the end of a request waits for no thread.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._open_files, self._closed = 0, False

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A new file to write; its own `name` is its path."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the request has ended: no more files are written")
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="seq2see-", ignore_cleanup_errors=True)
            self._open_files += 1
            path = Path(self._folder.name) / name
        try:
            with path.open("wb") as file:
                yield file
        finally:
            with self._lock:
                self._open_files -= 1
            self._remove_unused()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._remove_unused()

    def _remove_unused(self) -> None:
        with self._lock:
            folder = self._folder if self._closed and not self._open_files else None
        if folder is not None:
            folder.cleanup()


class UploadedFile:
    """A file that a client sent; name: what the client calls it."""

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name


async def read_body(
    request: Request, scratch: ScratchFolder, input_kinds: InputKinds, validate: Callable[[Any], Body]
) -> Body:
    """The request's body as `validate` makes it of plain values; in a form, inputs are fields or files of their own."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        body = await request.body()
        return await offload(lambda: validate(parse_body(body)), large=len(body) > LARGE_BODY)
    if kind == FORM:
        _check_charset(request.headers["content-type"])
        try:
            async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=FIELD_BYTES) as form:
                model = form.get("model")
                inputs = input_kinds(model if isinstance(model, str) else None)
                fields = await _read_fields(form, scratch, inputs)
                size = sum(len(value) for _, value in fields if isinstance(value, str))
                return await offload(lambda: validate(_parse_form(fields, inputs)), large=size > LARGE_BODY)
        except MultiPartException as error:
            raise RequestError(400, f"the form cannot be read: {error.message}") from None
    raise RequestError(415, f"Content-Type '{kind or 'none'}' is not read; allowed: {JSON}, {FORM}")


def parse_body(body: bytes) -> Any:
    """Strict JSON in UTF-8: no NaN or Infinity. The number of values is limited, since parsing JSON keeps all
    other threads waiting."""
    _check_values(body.count(b","))
    try:
        return parse_json(body.decode("utf-8-sig"), depth=DEPTH)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"the body is not UTF-8 text (byte {error.start})") from None
    except ValueError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None


def _check_values(commas: int) -> None:
    if commas > MAX_VALUES:
        raise RequestError(413, f"the body holds too many values ({commas:,} commas); allowed: at most {MAX_VALUES:,}")


# ---------------------------------------------------------------- forms


def _check_charset(content_type: str) -> None:
    """Only UTF-8: with other codecs of Python a form could hold lone surrogates."""
    charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in ("utf-8", "utf8"):
        raise RequestError(415, f"charset '{shortened(charset, quotes=False)}' is not read; allowed: utf-8")


async def _read_fields(
    form: FormData, scratch: ScratchFolder, inputs: Mapping[str, bool]
) -> list[tuple[str, str | UploadedFile]]:
    """The form's fields, with its files written to the scratch folder."""
    fields: dict[str, str | UploadedFile] = {}
    for number, (key, value) in enumerate(form.multi_items()):
        if key in fields:
            raise InvalidRequest(f"{shortened(key, quotes=False)}: given twice in the form")
        if isinstance(value, UploadFile):
            if key not in inputs:
                name = shortened(key, quotes=False)
                raise InvalidRequest(f"file '{name}': no input has this name; the model's inputs: {', '.join(inputs)}")
            fields[key] = await _save(value, scratch, number)
        else:
            fields[key] = value
    return list(fields.items())


async def _save(upload: UploadFile, scratch: ScratchFolder, number: int) -> UploadedFile:
    """Write a file under a name of our own; of the client's name only an ordinary suffix is kept."""
    name = Path(upload.filename or "file").name
    suffix = Path(name).suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", Path(name).suffix) else ""
    with scratch.open(f"upload-{number}{suffix}") as file:
        while chunk := await upload.read(CHUNK):
            await run_in_threadpool(file.write, chunk)
    return UploadedFile(Path(file.name), name)


def _parse_form(fields: Sequence[tuple[str, str | UploadedFile]], input_kinds: Mapping[str, bool]) -> dict[str, Any]:
    """The dictionary that the same request would have as JSON."""
    _check_values(sum(value.count(",") for _, value in fields if isinstance(value, str)))
    record: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for key, value in fields:
        if key == "output" and value == "":
            continue  # an empty field of a form was not filled in
        if key in input_kinds:
            is_file = input_kinds[key]
            inputs[key] = value if isinstance(value, UploadedFile) else _parse_input(value, is_file=is_file)
        else:
            record[key] = _parse_field(key, str(value))
    if inputs:
        if "input" in record or "inputs" in record:
            raise InvalidRequest(f"input: given as a whole and by name ({', '.join(inputs)}); give one of them")
        record["input"] = inputs
    return record


def _parse_input(value: str, *, is_file: bool) -> Any:
    """A text as it is; for a file, `{"example": 0}` names one of the server's examples."""
    if not is_file or not value.lstrip().startswith("{"):
        return value
    return _parse_field("", value)


def _parse_field(key: str, value: str) -> Any:
    """A field as JSON if it is, otherwise as text: `beam=5`, `sample=true`, `oracle={"0": [1, 0]}`."""
    if key in TEXTS and not value.lstrip().startswith("["):
        return value
    try:
        parsed = parse_json(value, depth=DEPTH)
    except HalfCharacter as error:
        raise RequestError(400, f"{shortened(key, quotes=False)}: {error}") from None
    except ValueError:
        return value
    if parsed is None or (key in TEXTS and not all(isinstance(symbol, str) for symbol in parsed)):
        return value  # a form has no null: what is not given is left out
    return parsed
