"""Serve the console on the loopback address: in the foreground, or in a thread beside another server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from solotable.pages.bind import bind_port

from .app import create_app
from .state import Console


def listen_on(port: int) -> socket.socket:
    """Return a socket that accepts connections; they wait until the console answers them."""
    listener = bind_port(port)
    listener.listen()
    return listener


def serve_console(console: Console, listener: socket.socket) -> None:
    """Serve until the process is interrupted."""
    _server(console).run(sockets=[listener])


@contextmanager
def console_beside(console: Console, port: int) -> Iterator[int]:
    """Serve in a thread for as long as a block lasts; yield the port."""
    with listen_on(port) as listener:
        server = _server(console)
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="console", daemon=True
        )
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def _server(console: Console) -> uvicorn.Server:
    config = uvicorn.Config(
        create_app(console),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )
    return uvicorn.Server(config)
