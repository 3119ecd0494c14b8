"""An app on a free port of this machine, for as long as a block lasts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.waiting import HANG_SECONDS, wait_until


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an app on a free port of this machine."""
    with listening() as listener, serving_on(listener, app) as base:
        yield base


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Bind a free port, whose number is known before its app is made."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a port."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def serving_on(listener: socket.socket, app: Any) -> Iterator[str]:
    """Serve an app on a bound port."""
    config = uvicorn.Config(app, log_level="error", proxy_headers=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join(HANG_SECONDS)
