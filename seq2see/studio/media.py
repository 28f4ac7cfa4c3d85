"""The files of requests: decoded by processes of their own before the model's turn comes, kept as long as the request.

Text never waits for this: files have their own queue (`DecoderPool`) and their own threads, and a model's batches find
every file decoded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from seq2see.api import Model
from seq2see.data.decoder_pool import DecoderPool, Unavailable
from seq2see.data.decoder_process import Arrays
from seq2see.data.media import FileDecoder, MediaField
from seq2see.data.media_files import Job, MediaError
from seq2see.data.pictures import Pixels
from seq2see.data.resampling import Samples
from seq2see.data.videos import Clip
from seq2see.errors import UserError
from seq2see.recipe.media_settings import ImageInput
from seq2see.recipe.sound_settings import SoundInput
from seq2see.recipe.video_settings import VideoInput
from seq2see.studio.refusing import Refused
from seq2see.studio.settings import MEGABYTE, Limits

THREADS = 4
"""For what is done with files apart from decoding them: written down on the way in, drawn on the way out."""

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
        self._threads = ThreadPoolExecutor(THREADS, "seq2see-media")

    def serve(self, model: Model) -> bool:
        """Decode the files of a model; whether it reads any."""
        fields = [field for bundle in model.bundles for field in bundle.fields.inputs.values()]
        files = [field for field in fields if isinstance(field, MediaField)]
        for field in files:
            field.decoder = self
        return bool(files)

    async def aside(self, work: Callable[[], Made]) -> Made:
        """Work with files by a thread of their own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def decode(self, jobs: Mapping[str, Job], *, names: Mapping[str, str]) -> list[Decoded]:
        """Decode files by the keys of their jobs. The caller holds what is returned as long as it needs it: meanwhile
        all methods of this decoder find it. names: how messages begin, by the same keys."""
        found = {key: self._decoded.get(key) for key in jobs}
        held = [one for one in found.values() if one is not None]
        missing = [job for key, job in jobs.items() if found[key] is None]
        first = {job.path: job for job in reversed(missing)}  # what cannot be decoded once is not tried again
        try:
            async with asyncio.timeout(self._limits.patience):
                await self._decode(list(first.values()), names, held)
                await self._decode([job for job in missing if first[job.path] is not job], names, held)
        except TimeoutError:
            message = f"the files could not be decoded within {self._limits.patience:g} s; send fewer, or try later"
            raise Refused(504, message) from None
        except Unavailable as error:
            raise _unavailable(error) from None
        return held

    async def _decode(self, jobs: Sequence[Job], names: Mapping[str, str], held: list[Decoded]) -> None:
        decodings = self.pool.submit(jobs) if jobs else []
        try:
            for decoding in decodings:
                key = decoding.job.key
                try:
                    made = Decoded(await asyncio.wrap_future(decoding))
                except MediaError as error:
                    raise UserError(f"{names[key]}: {error}") from None
                held.append(made)
                self._keep(key, made, held)
        finally:
            self.pool.stop(decodings)

    def close(self) -> None:
        self.pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _keep(self, key: str, made: Decoded, held: list[Decoded]) -> None:
        """Refuse what would take too much memory; held: what the same request has got."""
        most = self._limits.decoded
        self._decoded[key] = made
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
        """What a request holds; another file is decoded now, as while the server starts and looks at its examples."""
        job = Job(path, settings)
        kept = self._decoded.get(job.key)
        return self.pool.submit([job])[0].result() if kept is None else kept.arrays


def _unavailable(reason: object) -> Refused:
    return Refused(503, str(reason), headers={"Retry-After": "2"})
