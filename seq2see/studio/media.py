"""The files of requests: decoded by processes of their own before the model's turn comes, kept as long as the request.

Text never waits for this: files have their own queue (`DecoderPool`) and their own threads, and a model's batches find
every file decoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from seq2see.api import Model
from seq2see.data.decoder_pool import FAILED, DecoderPool, Unavailable
from seq2see.data.decoder_process import Arrays
from seq2see.data.image_files import ImageInput, Pixels
from seq2see.data.media_files import Job, MediaError
from seq2see.data.resampling import Samples
from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import Clip, VideoInput
from seq2see.errors import UserError
from seq2see.modalities.files import FileDecoder, MediaField
from seq2see.studio.http import Refused
from seq2see.studio.settings import MEGABYTE, Limits

THREADS = 4
"""For what is done with files apart from decoding them: written down on the way in, drawn on the way out."""

STALLED = 0.9
"""The share of the patience after which decoders that answer nothing are a problem: clients leave when it is over."""

Made = TypeVar("Made")


@dataclass(eq=False)
class Decoded:
    """What one file was decoded to; it is forgotten when no request holds it any more."""

    arrays: Arrays

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class MediaDecoder(FileDecoder):
    """Decodes the files of a server's models. pool: of processes, not used before the first file comes."""

    def __init__(self, limits: Limits, pool: DecoderPool | None = None):
        self._limits = limits
        self.pool = pool or DecoderPool(
            processes=limits.decoders,
            memory=limits.decoder_memory,
            seconds=limits.decoder_seconds,
            waiting=limits.decoder_waiting,
            result=limits.decoded,
        )
        self._decoded: WeakValueDictionary[str, Decoded] = WeakValueDictionary()
        self._on_demand = False
        self._stalled = -FAILED
        self._threads = ThreadPoolExecutor(THREADS, "seq2see-media")

    def serve(self, model: Model) -> bool:
        """Decode the files of a model; whether it reads any."""
        fields = [field for bundle in model.bundles for field in bundle.fields.inputs.values()]
        files = [field for field in fields if isinstance(field, MediaField)]
        for field in files:
            field.decoder = self
        return bool(files)

    @contextmanager
    def on_demand(self) -> Iterator[None]:
        """Decode files when their fields ask for them, as while a server starts and looks at its examples. Later that
        is an error: a model's thread may not wait for a file."""
        self._on_demand = True
        try:
            yield
        finally:
            self._on_demand = False

    async def aside(self, work: Callable[[], Made]) -> Made:
        """Work with files by a thread of their own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def problem(self) -> str | None:
        """Why no file is decoded: no process can be started, or all of them are busy and none has answered for about
        as long as clients wait. They leave then, so that counts until there is an answer, for a minute at most."""
        if self.pool.failure is not None:
            return self.pool.failure
        self._note_stall()
        if monotonic() - self._stalled < FAILED and self.pool.answered < self._stalled:
            return f"no file was decoded within {STALLED * self._limits.patience:g} s, and all decoders are busy"
        return None

    def _note_stall(self) -> None:
        if self.pool.stalled > STALLED * self._limits.patience:
            self._stalled = monotonic()

    async def decode(
        self, jobs: Mapping[str, Job], *, names: Mapping[str, str], until: float | None = None
    ) -> list[Decoded]:
        """Decode files by the keys of their jobs. The caller holds what is returned as long as it needs it: meanwhile
        all methods of this decoder find it. names: how messages begin, by the same keys; until: the moment by which
        the whole request is to be answered."""
        held: list[Decoded] = []
        try:
            patience = self._limits.patience
            async with asyncio.timeout(patience if until is None else max(until - monotonic(), 0.0)):
                await self._decode_all(jobs, names, held)
        except TimeoutError:
            held.clear()
            message = f"the files could not be decoded within {patience:g} s; send fewer, or try later"
            raise Refused(504, message) from None
        except Unavailable as error:
            held.clear()
            raise _unavailable(error) from None
        except BaseException:
            held.clear()  # now: an error is not freed at once, and what its traceback leads to neither
            raise
        return held

    async def _decode_all(self, jobs: Mapping[str, Job], names: Mapping[str, str], held: list[Decoded]) -> None:
        """Put into `held` what the files are decoded to."""
        held += filter(None, map(self._decoded.get, jobs))
        missing = [job for key, job in jobs.items() if key not in self._decoded]
        first = {job.path: job for job in reversed(missing)}  # what cannot be decoded once is not tried again
        await self._decode(list(first.values()), names, held)
        await self._decode([job for job in missing if first[job.path] is not job], names, held)

    async def _decode(self, jobs: Sequence[Job], names: Mapping[str, str], held: list[Decoded]) -> None:
        decodings = self.pool.submit(jobs) if jobs else []
        try:
            for decoding in decodings:
                key = decoding.job.key
                try:
                    arrays = await asyncio.wrap_future(decoding)
                except MediaError as error:
                    raise UserError(f"{names[key]}: {error}") from None
                held.append(self._decoded.setdefault(key, Decoded(arrays)))  # another request may have decoded it too
                self._check_memory(held)
        finally:
            self._note_stall()
            self.pool.stop(decodings)

    def close(self) -> None:
        self.pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _check_memory(self, held: Sequence[Decoded]) -> None:
        """Refuse what would take too much memory; held: what the same request has got."""
        most = self._limits.decoded
        if sum(one.nbytes for one in held) > most:
            raise UserError(
                f"the files take more than {most // MEGABYTE:,} MB once they are decoded (serve --max-decoded)"
            )
        if sum(one.nbytes for one in self._decoded.values()) > most:
            raise _unavailable("the files of other requests take all the memory there is for them")

    # ------------------------------------------------------------ for the fields of models

    def picture(self, path: str, settings: ImageInput) -> Pixels:
        return self._arrays(path, settings)[0]

    def picture_size(self, path: str, settings: ImageInput) -> tuple[int, int]:
        _, height, width = self.picture(path, settings).shape
        return height, width

    def check_picture(self, path: str, settings: ImageInput) -> None:
        self.picture(path, settings)

    def sound(self, path: str, settings: SoundInput) -> tuple[Samples, int]:
        samples, rate = self._arrays(path, settings)
        return samples, int(rate)

    def sound_length(self, path: str, settings: SoundInput) -> tuple[int, int]:
        samples, rate = self.sound(path, settings)
        return len(samples), rate

    def clip(self, path: str, settings: VideoInput) -> Clip:
        pixels, times = self._arrays(path, settings)
        return Clip(pixels, times)

    def clip_times(self, path: str, settings: VideoInput) -> NDArray[np.floating]:
        return self.clip(path, settings).times

    def _arrays(self, path: str, settings: ImageInput | SoundInput | VideoInput) -> Arrays:
        job = Job(path, settings)
        kept = self._decoded.get(job.key)
        if kept is not None:
            return kept.arrays
        if not self._on_demand:
            raise RuntimeError("a file was not decoded before the model's turn, or is no longer held")
        (decoding,) = self.pool.submit([job])
        try:
            return decoding.result(self._limits.patience)
        except TimeoutError:
            self.pool.stop([decoding])
            raise MediaError(f"could not be decoded within {self._limits.patience:g} s") from None


def _unavailable(reason: object) -> Refused:
    return Refused(503, str(reason), headers={"Retry-After": "2"})
