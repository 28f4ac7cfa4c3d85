"""Media files: errors and checks shared by image, sound and video files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from pydantic import Field

from seq2see.errors import MissingExtra, UserError
from seq2see.settings.columns import EncoderSettings, InputColumn


class MediaSettings(InputColumn):
    """Settings of all columns of files: the base class of one class for each kind of files.

    decoded_arrays: how many arrays `decode` returns; noun: what people call such a file; media: what a file chooser of
    a browser accepts, "image/*", "audio/*" and "video/*" (which the page shows or plays) or suffixes (".csv,.npy").

    A server decodes files in processes of their own, which import the module of the settings class and call `decode`
    there, under limits of time and memory. A module without torch keeps these processes small.
    """

    decoded_arrays: ClassVar[int] = 1
    noun: ClassVar[str] = "a file"
    media: ClassVar[str] = ""

    column: str | None = Field(
        None, description="column of paths relative to the table (default: the name of the input)"
    )
    encoder: EncoderSettings | None = Field(None, description="settings that differ from the recipe's `encoder`")

    @property
    def file(self) -> bool:
        return True

    def decode(self, path: str) -> list[NDArray[Any]]:
        """All that a model reads of a file, as `decoded_arrays` arrays; a MediaError where it cannot be used."""
        raise NotImplementedError(f"{type(self).__name__} has no decoder")

    def decode_with_preview(self, path: str, preview: Self) -> list[NDArray[Any]]:
        """The arrays of `decode`, to the bit, and behind them as many for people to look at, as `preview` says. A kind
        overrides it to decode a file only once."""
        return [*self.decode(path), *preview.decode(path)]


class MediaError(UserError):
    """A file that cannot be used, and why; the message does not repeat the file name."""


@dataclass(frozen=True)
class Job:
    """A file and the settings with which it is decoded; preview: settings of the same class for arrays that people look
    at, None where none are needed."""

    path: str
    settings: MediaSettings
    preview: MediaSettings | None = None

    @cached_property
    def key(self) -> str:
        """Equal for arrays that a model reads alike, as long as the file does not change."""
        return self._key(self.settings)

    @cached_property
    def keys(self) -> list[str]:
        """One for the arrays of each of its settings."""
        return [self.key, *([self._key(self.preview)] if self.preview is not None else [])]

    def _key(self, settings: MediaSettings) -> str:
        return f"{self.path}|{settings.model_dump_json(exclude={'column', 'encoder'})}"


def check_file(path: str | Path, kind: str) -> Path:
    """The path of a regular file; folders, pipes and devices are refused. kind: for the message."""
    file = Path(path)
    try:
        if file.is_dir():
            raise MediaError(f"a folder, not a {kind}")
        if not file.exists():
            raise MediaError("no such file")
        if not file.is_file():
            raise MediaError(f"not a regular file, so not a {kind}")
    except (OSError, ValueError) as error:  # a name that is too long, or contains a zero byte
        raise MediaError(f"no such file: {getattr(error, 'strerror', None) or error}") from None
    return file


@contextmanager
def decoding(problem: str = "damaged or cut short") -> Iterator[None]:
    """Turn whatever a decoder raises into a MediaError that begins with `problem`.

    Decoders may raise anything on unexpected bytes.
    """
    try:
        yield
    except (MediaError, MissingExtra):
        raise
    except MemoryError:
        raise MediaError("decoding it takes too much memory") from None
    except Exception as error:  # noqa: BLE001 - see above
        message = str(getattr(error, "strerror", None) or getattr(error, "error_string", None) or error)
        raise MediaError(f"{problem}: {message.strip().rstrip('.') or type(error).__name__}") from None
