"""Bodies of requests: JSON, or a form with files, as the same dictionary."""

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
from seq2see.studio.http import BYTES, Refused, aside
from seq2see.studio.schemas import Invalid

# ---------------- A folder that a request has for its files, made when the first one comes


class Scratch(AbstractContextManager["Scratch"]):
    """Gone at the end of the request, with all that is in it.

    A request whose client hangs up may end while a thread still writes its files. From then on no file is begun, and
    the folder is removed by whoever is the last to close one: the end of a request waits for no thread.
    """

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        self._open_files, self._closed = 0, False

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """A new file of this name, to be written; its own `name` is its path."""
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
            self._remove()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
        self._remove()

    def _remove(self) -> None:
        """The folder, once nobody needs it."""
        with self._lock:
            folder = self._folder if self._closed and not self._open_files else None
        if folder is not None:
            folder.cleanup()


JSON, FORM = "application/json", "multipart/form-data"
TEXTS = ("model", "prefix", "target", "output")
"""Options that are texts: in a form `prefix=5` is the text 5."""
FILES, FIELDS, FIELD_BYTES = 16, 64, 1 << 20
CHUNK = 1 << 20
VALUES = 1_000_000
"""In one body: the weights of a hundred steps over ten thousand places."""
DEPTH = 32
"""Lists and objects within each other; no request needs more than six."""

Body = TypeVar("Body")
Names = Callable[[str | None], Mapping[str, bool]]
"""{name of an input: whether it is a file}, by the model's own name."""


class Upload:
    """A file that a client sent, kept in the request's own folder; name: what the client calls it."""

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name


async def body_of(request: Request, scratch: Scratch, names: Names, read: Callable[[Any], Body]) -> Body:
    """What was asked, as `read` makes it of plain values; names: of inputs, which a form may hold as fields or files of
    their own."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        body = await request.body()
        return await aside(lambda: read(parsed(body)), large=len(body) > BYTES)
    if kind == FORM:
        _check_charset(request.headers["content-type"])
        try:
            async with request.form(max_files=FILES, max_fields=FIELDS, max_part_size=FIELD_BYTES) as form:
                model = form.get("model")
                inputs = names(model if isinstance(model, str) else None)
                fields = await _fields(form, scratch, inputs)
                size = sum(len(value) for _, value in fields if isinstance(value, str))
                return await aside(lambda: read(_from_form(fields, inputs)), large=size > BYTES)
        except MultiPartException as error:
            raise Refused(400, f"the form cannot be read: {error.message}") from None
    raise Refused(415, f"Content-Type '{kind or 'none'}' is not read; allowed: {JSON}, {FORM}")


def parsed(body: bytes) -> Any:
    """JSON in UTF-8, strictly: NaN and Infinity are none. No thread gets a turn while Python reads JSON, so there may
    not be any number of values."""
    _check_values(body.count(b","))
    try:
        return parse_json(body.decode("utf-8-sig"), depth=DEPTH)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 text (byte {error.start})") from None
    except ValueError as error:
        raise Refused(400, f"the body is no JSON: {error}") from None


def _check_charset(content_type: str) -> None:
    """Of a form: whoever may choose among Python's codecs gets halves of surrogate pairs past all checks."""
    charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in ("utf-8", "utf8"):
        raise Refused(415, f"charset '{shortened(charset, quotes=False)}' is not read; allowed: utf-8")


def _check_values(commas: int) -> None:
    if commas > VALUES:
        raise Refused(413, f"the body holds too many values ({commas:,} commas); allowed: at most {VALUES:,}")


async def _fields(form: FormData, scratch: Scratch, names: Mapping[str, bool]) -> list[tuple[str, str | Upload]]:
    """The form's fields with its files in place."""
    found: dict[str, str | Upload] = {}
    for number, (key, value) in enumerate(form.multi_items()):
        if key in found:
            raise Invalid(f"{shortened(key, quotes=False)}: given twice in the form")
        if isinstance(value, UploadFile):
            if key not in names:
                name = shortened(key, quotes=False)
                raise Invalid(f"file '{name}': no input has this name; the model's inputs: {', '.join(names)}")
            found[key] = await _kept(value, scratch, number)
        else:
            found[key] = value
    return list(found.items())


def _from_form(fields: Sequence[tuple[str, str | Upload]], names: Mapping[str, bool]) -> dict[str, Any]:
    _check_values(sum(value.count(",") for _, value in fields if isinstance(value, str)))
    asked: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for key, value in fields:
        if key == "output" and value == "":
            continue  # an empty field of a form is one that was not filled in
        if key in names:
            inputs[key] = value if isinstance(value, Upload) else _input(value, file=names[key])
        else:
            asked[key] = _option(key, str(value))
    if inputs:
        if "input" in asked or "inputs" in asked:
            raise Invalid(f"input: given as a whole and by name ({', '.join(inputs)}); give one of them")
        asked["input"] = inputs
    return asked


def _input(value: str, *, file: bool) -> Any:
    """A text as it stands; where a file is read, `{"example": 0}` names one that is here already."""
    if not file or not value.lstrip().startswith("{"):
        return value
    return _option("", value)


def _option(key: str, value: str) -> Any:
    """A field as JSON where it is any, as text where it is not: `beam=5`, `sample=true`, `oracle={"0": [1, 0]}`."""
    if key in TEXTS and not value.lstrip().startswith("["):
        return value
    try:
        made = parse_json(value, depth=DEPTH)
    except HalfCharacter as error:
        raise Refused(400, f"{shortened(key, quotes=False)}: {error}") from None
    except ValueError:
        return value
    if made is None or (key in TEXTS and not all(isinstance(symbol, str) for symbol in made)):
        return value  # what is not given is left out of a form
    return made


async def _kept(upload: UploadFile, scratch: Scratch, number: int) -> Upload:
    """A file under a name of ours: the client's may be anything, its suffix is kept where it is an ordinary one."""
    name = Path(upload.filename or "file").name
    suffix = Path(name).suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", Path(name).suffix) else ""
    with scratch.open(f"upload-{number}{suffix}") as file:
        while chunk := await upload.read(CHUNK):
            await run_in_threadpool(file.write, chunk)
    return Upload(Path(file.name), name)
