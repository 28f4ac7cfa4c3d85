"""A process that decodes files for a server, so that no file can exhaust or control the server itself.

It reads jobs from its standard input and writes arrays to its standard output, until the input ends. A message is its
length in four bytes, then JSON; the bytes of the arrays that a message announces follow it. There is no pickle: even a
decoder that a file controls cannot control the server through what it sends. That is no sandbox: such a decoder still
runs as the server's user and may do what that user may, within the limits below. Nothing here imports torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seq2see.data.image_files import ImageInput
from seq2see.data.media_files import MediaError, MediaSettings
from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import VideoInput
from seq2see.errors import UserError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LENGTH = struct.Struct(">I")
MAX_FILES = 64
"""Files open at a time, those of libraries included."""
OVERHEAD = 1 << 30
"""Bytes of address space beside the memory that is allowed, for libraries that are mapped and hardly read."""
NICE = 10
"""Priority below the server's."""
MESSAGE_LENGTH = 500
"""Characters of a message about a file."""

Arrays = list[NDArray[Any]]
Decode = Callable[[str, Any], Arrays]


def _decode(kind: type[MediaSettings], path: str, settings: Any) -> Arrays:
    return kind.model_validate(settings).decode(path)


DECODERS: dict[str, Decode] = {
    "image": partial(_decode, ImageInput),
    "sound": partial(_decode, SoundInput),
    "video": partial(_decode, VideoInput),
}
"""By kind of input."""


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


def serve(jobs: BinaryIO, answers: BinaryIO, *, seconds: float, decoders: Mapping[str, Decode] = DECODERS) -> None:
    """Decode files until the jobs end; seconds: computing time of each."""
    send(answers, {"ready": True})
    while (job := receive(jobs)) is not None:
        _limit_time(seconds)
        try:
            arrays = decoders[job["kind"]](job["path"], job["settings"])
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


def resident() -> int:
    """Bytes of memory of this process; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _limit(memory: int) -> None:
    """Limit this process: memory, open files, no writing, a lower priority; and end it with the server."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    if resource is not None:
        wanted = {
            "RLIMIT_DATA": memory,
            "RLIMIT_AS": memory + OVERHEAD,
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


def main(decoders: Mapping[str, Decode] = DECODERS) -> None:
    """Arguments: bytes of memory, seconds for each file."""
    memory, seconds = int(sys.argv[1]), float(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the answers
    _limit(memory)
    serve(sys.stdin.buffer, answers, seconds=seconds, decoders=decoders)


if __name__ == "__main__":
    main()
