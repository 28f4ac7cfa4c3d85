"""A server in a thread of this program: for a notebook, or for tests of programs that ask one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from seq2see.errors import imported

MODULES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
"""Of the extra `studio`."""


@contextmanager
def serve(*models: str | Path, port: int = 0) -> Iterator[str]:
    """Serve models, with the studio, on this machine alone while inside the block, which is given the address.

    models: folders or packed models, also NAME=MODEL, and A+B for an ensemble; port: 0 takes a free one. Requests in
    progress when the block ends have a few seconds.
    """
    for module in MODULES:
        imported(module, extra="studio")
    from seq2see.studio.app import LOOPBACK, create_app
    from seq2see.studio.limits import SHUTDOWN_GRACE, Limits
    from seq2see.studio.metrics import ServerMetrics
    from seq2see.studio.model_repository import ModelLoader
    from seq2see.studio.server import create_server, listen, server_url

    limits, metrics = Limits(), ServerMetrics()
    with closing(listen(LOOPBACK, port)) as listening:
        repository = ModelLoader([str(model) for model in models], limits, metrics).load_all()
        server = create_server(create_app(repository, limits, metrics), limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="seq2see.serve", daemon=True)
        thread.start()
        try:
            yield server_url(listening).rstrip("/")
        finally:
            server.should_exit = True
            thread.join(SHUTDOWN_GRACE + 1)
