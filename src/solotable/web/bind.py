"""A port for a server to be, taken before anything is said about it; one that is in use is one sentence."""

from __future__ import annotations

import socket


class PortInUse(Exception):
    """Somebody else has the port, or it is not ours to take."""


def listening(port: int, *, host: str = "127.0.0.1") -> socket.socket:
    """Return a bound socket, for `uvicorn.Server.run(sockets=[...])`, or raise PortInUse."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PortInUse(f"Port {port} of {host} cannot be had ({why}); name another with --port.") from error
    return made
