"""Files of requests: decoded by other processes before the model needs them, and kept as long as the request.

Text never waits for files: they have a queue (`DecoderPool`) and threads of their own, and every file of a batch is
decoded before the batch starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar, TypeVar
from weakref import WeakValueDictionary

from seq2see.api import Model
from seq2see.data.decoder_pool import FAILURE_SECONDS, DecoderPool, Unavailable
from seq2see.data.decoder_process import Arrays
from seq2see.data.media_files import Job, MediaError, MediaSettings
from seq2see.errors import UserError
from seq2see.modalities.files import FileDecoder, FileField
from seq2see.studio.http import RequestError
from seq2see.studio.limits import MEGABYTE, Limits

THREADS = 4
"""For work with files other than decoding: saving uploads, drawing results."""

STALLED = 0.9
"""Share of `Limits.timeout` after which decoders that answer nothing are a problem."""

Result = TypeVar("Result")


@dataclass(eq=False)
class DecodedFile:
    """The arrays of one decoded file; freed when no request holds it any more."""

    arrays: Arrays

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class MediaDecoder(FileDecoder):
    """Decodes the files of a server's models. pool: its processes, started with the first file."""

    in_process: ClassVar[bool] = False

    def __init__(self, limits: Limits, pool: DecoderPool | None = None):
        self._limits = limits
        self.pool = pool or DecoderPool(
            processes=limits.decoders,
            memory=limits.decoder_memory,
            seconds=limits.decode_timeout,
            queue_size=limits.decode_queue,
            result_bytes=limits.decoded_bytes,
        )
        self._decoded: WeakValueDictionary[str, DecodedFile] = WeakValueDictionary()
        self._on_demand = False
        self._stalled_at = -FAILURE_SECONDS
        self._threads = ThreadPoolExecutor(THREADS, "seq2see-media")

    def attach(self, model: Model) -> bool:
        """Decode the files of this model from now on; False where it reads none. A UserError where a kind of input has
        a settings class that the processes cannot import."""
        fields = [field for bundle in model.bundles for field in bundle.fields.inputs.values()]
        files = [field for field in fields if isinstance(field, FileField)]
        for field in files:
            self.pool.add_kind(type(field.settings))
            field.decoder = self
        return bool(files)

    @contextmanager
    def on_demand(self) -> Iterator[None]:
        """Decode files when a model needs them: only while the server starts and checks its examples, since a model's
        thread must not wait for a file later."""
        self._on_demand = True
        try:
            yield
        finally:
            self._on_demand = False

    async def run_in_thread(self, work: Callable[[], Result]) -> Result:
        """Work with files, in a thread for that alone."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def problem(self) -> str | None:
        """Why no file is decoded: no process can be started, or all are busy and none has answered for about as long as
        clients wait. Their clients leave then, so a stall counts until the next answer, for a minute at most."""
        if self.pool.failure is not None:
            return self.pool.failure
        self._note_stall()
        if monotonic() - self._stalled_at < FAILURE_SECONDS and self.pool.answered < self._stalled_at:
            return f"no file was decoded within {STALLED * self._limits.timeout:g} s, and all decoders are busy"
        return None

    def _note_stall(self) -> None:
        if self.pool.stalled > STALLED * self._limits.timeout:
            self._stalled_at = monotonic()

    async def decode(
        self, jobs: Mapping[str, Job], *, names: Mapping[str, str], deadline: float | None = None
    ) -> list[DecodedFile]:
        """Decode files by the keys of their jobs. Fields find them as long as the caller holds what is returned.

        names: how messages begin, by the same keys; deadline: of the whole request."""
        held: list[DecodedFile] = []
        try:
            timeout = self._limits.timeout
            async with asyncio.timeout(timeout if deadline is None else max(deadline - monotonic(), 0.0)):
                await self._decode_all(jobs, names, held)
        except TimeoutError:
            held.clear()
            message = f"the files could not be decoded within {timeout:g} s; send fewer, or try later"
            raise RequestError(504, message) from None
        except Unavailable as error:
            held.clear()
            raise _unavailable(error) from None
        except BaseException:
            held.clear()  # at once: the exception's traceback may live longer
            raise
        return held

    async def _decode_all(self, jobs: Mapping[str, Job], names: Mapping[str, str], held: list[DecodedFile]) -> None:
        """Append the decoded files to `held`."""
        held += [file for job in jobs.values() for key in job.keys if (file := self._decoded.get(key)) is not None]
        missing = [job for job in jobs.values() if not all(key in self._decoded for key in job.keys)]
        first = {job.path: job for job in reversed(missing)}  # a file that cannot be decoded is tried only once
        await self._decode(list(first.values()), names, held)
        await self._decode([job for job in missing if first[job.path] is not job], names, held)

    async def _decode(self, jobs: Sequence[Job], names: Mapping[str, str], held: list[DecodedFile]) -> None:
        decodings = self.pool.submit(jobs) if jobs else []
        try:
            for decoding in decodings:
                try:
                    arrays = await asyncio.wrap_future(decoding)
                except MediaError as error:
                    raise UserError(f"{names[decoding.job.key]}: {error}") from None
                number = decoding.job.settings.decoded_arrays
                for place, key in enumerate(decoding.job.keys):  # another request may have it too
                    file = DecodedFile(arrays[place * number : (place + 1) * number])
                    held.append(self._decoded.setdefault(key, file))
                self._check_memory(held)
        finally:
            self._note_stall()
            self.pool.cancel(decodings)

    def close(self) -> None:
        self.pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _check_memory(self, held: Sequence[DecodedFile]) -> None:
        """Refuse a request whose decoded files (held), or those of all requests, take too much memory."""
        most = self._limits.decoded_bytes
        if sum(file.nbytes for file in held) > most:
            raise UserError(
                f"the files take more than {most // MEGABYTE:,} MB once they are decoded (serve --max-decoded)"
            )
        if sum(file.nbytes for file in self._decoded.values()) > most:
            raise _unavailable("the files of other requests take all the memory there is for them")

    # ------------------------------------------------------------ for the fields of models

    def arrays(self, path: str, settings: MediaSettings) -> Arrays:
        job = Job(path, settings)
        kept = self._decoded.get(job.key)
        if kept is not None:
            return kept.arrays
        if not self._on_demand:
            raise RuntimeError("a file was not decoded before the model needed it, or is no longer held")
        (decoding,) = self.pool.submit([job])
        try:
            return decoding.result(self._limits.timeout)
        except TimeoutError:
            self.pool.cancel([decoding])
            raise MediaError(f"could not be decoded within {self._limits.timeout:g} s") from None


def _unavailable(reason: object) -> RequestError:
    return RequestError(503, str(reason), headers={"Retry-After": "2"})
