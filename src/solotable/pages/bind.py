"""Bind a server's port before the program prints its address."""

from __future__ import annotations

import socket


class PortInUse(Exception):
    """The port is in use, or the process may not bind it."""


def bind_port(port: int, *, host: str = "127.0.0.1") -> socket.socket:
    """Return a bound socket for `uvicorn.Server.run(sockets=[...])`, or raise PortInUse."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PortInUse(f"Cannot bind port {port} on {host} ({why}); choose another with --port.") from error
    return bound
