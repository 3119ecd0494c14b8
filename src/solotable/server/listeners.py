"""The listening sockets of a server, and why they cannot be opened."""

from __future__ import annotations

import errno
import os
import socket
import sys
from typing import Any

from solotable.errors import EngineError, SolotableError

#: How many connections wait to be accepted.
BACKLOG = 1024


class PortTaken(SolotableError):
    """Another process listens on the port."""


def open_listeners(host: str, port: int) -> list[socket.socket]:
    """Listen on each address of a host; port 0 picks a free port, the same for all addresses."""
    listeners: list[socket.socket] = []
    bound = port
    try:
        for family, address in _resolve(host, port):
            listeners.append(_listen(family, (address[0], bound, *address[2:])))
            bound = listeners[0].getsockname()[1]
    except (OSError, UnicodeError) as fault:
        for each in listeners:
            each.close()
        raise _explain(fault, host, port) from fault
    return listeners


def _resolve(host: str, port: int) -> list[tuple[int, Any]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = dict.fromkeys((family, address) for family, _, _, _, address in found)
    # A name may have an IPv6 address on a system without IPv6.
    return [each for each in addresses if each[0] != socket.AF_INET6 or _has_ipv6()] or list(addresses)


def _has_ipv6() -> bool:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _listen(family: int, address: Any) -> socket.socket:
    # asyncio sets TCP_NODELAY only on sockets that name their protocol; accepted sockets inherit it.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix" and sys.platform != "cygwin":
            # A restarted server can listen at once; on Windows the option would share the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # The IPv4 address of the host has its own socket.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _explain(fault: OSError | UnicodeError, host: str, port: int) -> SolotableError:
    if isinstance(fault, UnicodeError | socket.gaierror):
        return EngineError(f"Cannot resolve the host {host!r}.")
    if fault.errno == errno.EADDRINUSE:
        return PortTaken(
            f"Port {port} on {host} is already in use "
            "(by DynamoDB Local or another solotable server?). --port 0 picks a free port."
        )
    return EngineError(f"Cannot listen on {host}:{port}: {fault.strerror or fault}.")
