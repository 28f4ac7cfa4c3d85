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
from time import monotonic

from seq2see.errors import UserError
from seq2see.pipeline.bundle import folders_of
from seq2see.studio.http import RequestError
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelLoader, ModelRepository, fingerprint
from seq2see.studio.server import has_terminal
from seq2see.studio.workers import ReloadBoard

LOG = logging.getLogger("seq2see.studio")
TICK = 0.5
"""Seconds between two looks at what the other worker processes were asked for."""


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
        self._seen = dict(loader.loaded)

    def reload(self, name: str) -> None:
        """Load a model again and serve it. A UserError where it cannot be loaded: the old one is still served.

        Takes seconds, so it belongs into a thread; only one model is loaded at a time."""
        with self._loading:
            folder = self._loader.folders[name]
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

        The others follow within a second or so; they are waited for as long as a client waits for an answer. One that
        could not load it is not ready; the log says why."""
        self._repository.get(name)
        if self._loading.locked():
            raise RequestError(503, "a model is being loaded; try again in a moment", headers={"Retry-After": "2"})
        await asyncio.to_thread(self.reload, name)
        workers = ready = 1
        if self._board is not None:
            model, until = self._names.index(name), monotonic() + timeout
            number, workers = self._board.announce(model), self._board.workers
            while not self._board.all_tried(model, number) and monotonic() < until:
                await asyncio.sleep(TICK / 5)
            ready = self._board.ready(model, number)
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
        changed = []
        for name, folder in self._loader.folders.items():
            now = fingerprint(folder)
            if now == self._seen[name] != self._loader.loaded[name]:
                changed.append(name)
            self._seen[name] = now
        return changed

    async def _follow_board(self) -> None:
        """Load what a client of another worker asked for."""
        for model, name in enumerate(self._names if self._board is not None else ()):
            assert self._board is not None
            wanted = self._board.wanted(model)
            if wanted > self._board.tried(model):
                self._board.set_tried(model, wanted, loaded=await self._reload_all([name]))

    async def _reload_all(self, names: Sequence[str]) -> bool:
        """Whether all of them were loaded; the log says what was not."""
        loaded = True
        for name in names:
            try:
                await asyncio.to_thread(self.reload, name)
            except UserError:
                loaded = False
        return loaded


def shown(text: str) -> str:
    """A name or a message in the log, where no sign of it can end a line."""
    return text if text.isprintable() else ascii(text)


def _without_folders(message: str, model: str) -> str:
    """The message without the server's folders: clients know models by their names."""
    for folder in sorted(folders_of(model), key=len, reverse=True):
        message = message.replace(f"{folder.rstrip('/')}/", "").replace(folder, "the folder")
    return message
