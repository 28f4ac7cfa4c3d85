"""A process that decodes files for a server, so that no file can exhaust or control the server itself.

It reads jobs from its standard input and writes arrays to its standard output, until the input ends. A message is its
length in four bytes, then JSON; the bytes of the arrays that a message announces follow it. There is no pickle: even a
decoder that a file controls cannot control the server through what it sends. That is no sandbox: such a decoder still
runs as the server's user and may do what that user may, within the limits below.

The kinds of files that it decodes are arguments of the process: the names of their settings classes ("module:Class",
subclasses of `MediaSettings` with a method `decode`). It imports these modules before it limits itself. The names come
from the models served, never from a request. Nothing here imports torch; a module that does works too, and makes every
process larger.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seq2see.data.media_files import Job, MediaError, MediaSettings
from seq2see.errors import UserError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LENGTH = struct.Struct(">I")
MAX_FILES = 64
"""Files open at a time, those of libraries included."""
OVERHEAD = 1 << 30
"""Bytes of address space beside the memory that is allowed and what is mapped already, for libraries that are loaded
with the first file: they are mapped and hardly read."""
NICE = 10
"""Priority below the server's."""
MESSAGE_LENGTH = 500
"""Characters of a message about a file."""

Arrays = list[NDArray[Any]]
Decode = Callable[[Job], Arrays]


def decode_file(job: Job) -> Arrays:
    """The arrays of a file, those of its preview behind them."""
    if job.preview is None:
        return job.settings.decode(job.path)
    return job.settings.decode_with_preview(job.path, job.preview)


def import_name(kind: type[MediaSettings]) -> str:
    """The name by which another process imports a class; a UserError where it cannot.

    >>> from seq2see.data.image_files import ImageInput
    >>> import_name(ImageInput)
    'seq2see.data.image_files:ImageInput'
    """
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        if kind.__module__ != "__main__" and import_kind(name) is kind:
            return name
    except (ImportError, AttributeError):
        pass
    raise UserError(
        f"the settings class {name.replace(':', '.')} cannot be imported by the processes that decode files; "
        "define it at the top level of a module, not of the program itself"
    )


def import_kind(name: str) -> type[MediaSettings]:
    """The settings class of that name ("module:Class")."""
    module, _, path = name.partition(":")
    kind: Any = import_module(module)
    for part in path.split("."):
        kind = getattr(kind, part)
    return kind  # type: ignore[no-any-return]


def send(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write one message."""
    body = json.dumps(message).encode()
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: BinaryIO, most: int = 1 << 20) -> dict[str, Any] | None:
    """Read the next message; None at the end of the stream, a ValueError where it is no message."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    if length > most:
        raise ValueError(f"a message of {length:,} bytes")
    body = stream.read(length)
    if len(body) < length:
        return None
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("a message that is not an object")
    return message


def serve(
    jobs: BinaryIO, answers: BinaryIO, kinds: Mapping[str, type[MediaSettings]], *, seconds: float, decode: Decode
) -> None:
    """Decode files until the jobs end; kinds: by name; seconds: computing time of each file."""
    send(answers, {"ready": True, "resident": resident()})
    while (message := receive(jobs)) is not None:
        _limit_time(seconds)
        try:
            arrays = decode(_read_job(message, kinds))
        except UserError as error:
            answer = {"problem": str(error)[:MESSAGE_LENGTH], "media": isinstance(error, MediaError)}
            send(answers, answer | {"resident": resident()})
            continue
        except Exception as error:  # noqa: BLE001 - whatever a file does to a decoder is that file's problem
            answer = {"problem": f"cannot be decoded ({type(error).__name__})", "media": True}
            send(answers, answer | {"resident": resident()})
            continue
        shapes = [{"dtype": array.dtype.name, "shape": array.shape} for array in arrays]
        send(answers, {"arrays": shapes, "resident": resident()})
        for array in arrays:
            answers.write(np.ascontiguousarray(array).data)
        answers.flush()


def _read_job(message: Mapping[str, Any], kinds: Mapping[str, type[MediaSettings]]) -> Job:
    kind = kinds[message["kind"]]
    preview = message["preview"]
    return Job(
        message["path"],
        kind.model_validate(message["settings"]),
        None if preview is None else kind.model_validate(preview),
    )


def resident() -> int:
    """Bytes of memory of this process; 0 where the system does not report it."""
    return _pages(1)


def _pages(column: int) -> int:
    """Bytes that a column of /proc/self/statm counts: 0, mapped; 1, in memory. 0 where there is no such file."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[column]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _limit(memory: int) -> None:
    """Limit this process: memory, open files, no writing, a lower priority; and end it with the server."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    if resource is not None:
        wanted = {
            "RLIMIT_DATA": memory,
            "RLIMIT_AS": _pages(0) + memory + OVERHEAD,
            "RLIMIT_FSIZE": 0,
            "RLIMIT_NOFILE": MAX_FILES,
            "RLIMIT_CORE": 0,
        }
        for name, most in wanted.items():
            with contextlib.suppress(
                AttributeError, OSError, ValueError
            ):  # not every system has, or allows, every limit
                resource.setrlimit(getattr(resource, name), (most, most))
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _limit_time(seconds: float) -> None:
    """Limit the computing time of the next file: without a server nobody else would end a decoder that hangs."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime + seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def main(decode: Decode = decode_file) -> None:
    """Arguments: bytes of memory, seconds for each file, names of settings classes."""
    memory, seconds, names = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the answers
    kinds = _import_kinds(names, answers)
    _limit(memory)
    serve(sys.stdin.buffer, answers, kinds, seconds=seconds, decode=decode)


def _import_kinds(names: Sequence[str], answers: BinaryIO) -> dict[str, type[MediaSettings]]:
    """Settings classes by name; where one cannot be imported, the server is sent the reason and the process ends."""
    try:
        return {name: import_kind(name) for name in names}
    except Exception as error:
        send(answers, {"problem": f"{type(error).__name__}: {error}"[:MESSAGE_LENGTH]})
        raise


if __name__ == "__main__":
    main()
