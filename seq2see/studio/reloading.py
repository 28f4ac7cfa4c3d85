"""Models that are loaded again while the server runs: the new one is loaded beside the old one, then replaces it.

Three things start it: a folder whose files have changed, SIGHUP, and `POST /api/models/NAME/reload`. A folder that
cannot be loaded leaves the old model in service.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from seq2see.errors import UserError
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, folders_of
from seq2see.pipeline.weights import CHECKSUMS
from seq2see.studio.http import RequestError
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelLoader, ModelRepository
from seq2see.studio.server import has_terminal
from seq2see.studio.workers import ReloadBoard

LOG = logging.getLogger("seq2see.studio")
TICK = 0.5
"""Seconds between two looks at what the other worker processes were asked for."""

Fingerprint = tuple[tuple[int, int, int] | None, ...]


def fingerprint(model: str) -> Fingerprint:
    """What tells that a model was saved anew: inode, size and time of its weights, recipe and checksums. A training
    writes other files all the time."""
    paths = [Path(folder) / name for folder in folders_of(model) for name in (WEIGHTS, RECIPE, CHECKSUMS)]
    return tuple(map(_stamp, paths))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


class Reloader:
    """Replaces models of a repository. watch: seconds between two looks at their folders, 0: they are not watched;
    board: shared with other worker processes."""

    def __init__(
        self,
        repository: ModelRepository,
        loader: ModelLoader,
        metrics: ServerMetrics,
        *,
        watch: float = 0,
        board: ReloadBoard | None = None,
    ):
        self._repository, self._loader, self._metrics = repository, loader, metrics
        self._watch, self._board = watch, board
        self._names = list(loader.folders)
        self._loading = threading.Lock()
        self._hangup = asyncio.Event()
        self._loaded = {name: fingerprint(folder) for name, folder in loader.folders.items()}
        self._seen = dict(self._loaded)

    def reload(self, name: str) -> None:
        """Load a model again and serve it. A UserError where it cannot be loaded: the old one is still served.

        Takes seconds, so it belongs into a thread; only one model is loaded at a time."""
        with self._loading:
            folder = self._loader.folders[name]
            self._loaded[name] = self._seen[name] = fingerprint(folder)
            try:
                served = self._loader.load(name)
            except Exception as error:  # noqa: BLE001 - a folder that somebody is writing may be anything
                self._metrics.count_reload(name, "failed")
                reason = str(error) if isinstance(error, UserError) else type(error).__name__
                LOG.warning("%s: not loaded again, the old model is still served: %s", shown(name), shown(reason))
                short = _without_folders(reason, folder)
                raise UserError(f"'{name}' was not loaded again, the old model is still served: {short}") from None
            self._repository.replace(served)
            self._metrics.count_reload(name, "done")
            LOG.info("%s: loaded again", shown(name))

    async def request(self, name: str, timeout: float) -> dict[str, object]:
        """`reload` for a client, in every worker: {"model", "reloaded", "workers", "ready": how many of them serve it}.

        The others follow within a second or so; they are waited for as long as a client waits for an answer."""
        self._repository.get(name)
        if self._loading.locked():
            raise RequestError(503, "a model is being loaded; try again in a moment", headers={"Retry-After": "2"})
        await asyncio.to_thread(self.reload, name)
        workers = ready = 1
        if self._board is not None:
            model, until = self._names.index(name), monotonic() + timeout
            number, workers = self._board.announce(model), self._board.workers
            while (ready := self._board.ready(model, number)) < workers and monotonic() < until:
                await asyncio.sleep(TICK / 5)
        return {"model": name, "reloaded": True, "workers": workers, "ready": ready}

    async def run(self) -> None:
        """Reload what changes, until cancelled; part of the server's event loop."""
        loop = asyncio.get_running_loop()
        handled = hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
        if handled:
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup, has_terminal())
        looked = monotonic()
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hangup.wait(), TICK)
                if self._hangup.is_set():
                    self._hangup.clear()
                    await self._reload_all(self._names)
                await self._follow_board()
                if self._watch and monotonic() - looked >= self._watch:
                    await self._reload_all(await asyncio.to_thread(self.changed))
                    looked = monotonic()
        finally:
            if handled:
                loop.remove_signal_handler(signal.SIGHUP)

    def _on_hangup(self, had_terminal: bool) -> None:
        """SIGHUP means reload, unless it comes because the terminal of the server was closed."""
        if had_terminal and not has_terminal():
            signal.raise_signal(signal.SIGTERM)
        else:
            self._hangup.set()

    def changed(self) -> list[str]:
        """Models whose folders have changed since they were loaded, and not since the last look: nobody writes them
        just now."""
        found = []
        for name, folder in self._loader.folders.items():
            now = fingerprint(folder)
            if now == self._seen[name] != self._loaded[name]:
                found.append(name)
            self._seen[name] = now
        return found

    async def _follow_board(self) -> None:
        """Load what a client of another worker asked for."""
        for model, name in enumerate(self._names if self._board is not None else ()):
            assert self._board is not None
            wanted = self._board.wanted(model)
            if wanted > self._board.done(model):
                await self._reload_all([name])
                self._board.set_done(model, wanted)

    async def _reload_all(self, names: Sequence[str]) -> None:
        for name in names:
            with suppress(UserError):  # it is in the log
                await asyncio.to_thread(self.reload, name)


def shown(text: str) -> str:
    """A name or a message in the log, where no sign of it can end a line."""
    return text if text.isprintable() else ascii(text)


def _without_folders(message: str, model: str) -> str:
    """The message without the server's folders: clients know models by their names."""
    for folder in sorted(folders_of(model), key=len, reverse=True):
        message = message.replace(f"{folder.rstrip('/')}/", "").replace(folder, "the folder")
    return message
