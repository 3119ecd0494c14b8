"""Connections in order of last use, so that the server finds one to close without a search."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Evictable(Protocol):
    """A connection that the server may close to make way for another."""

    @property
    def is_evictable(self) -> bool:
        """Whether the server can close the connection without losing a complete request."""


ConnectionT = TypeVar("ConnectionT", bound=Evictable)

#: How many connections `pop_evictable` checks at most.
_MAX_CHECKS = 16


class IdleConnections(Generic[ConnectionT]):
    """Connections, least recently used first; every operation takes constant time."""

    def __init__(self) -> None:
        self._order: OrderedDict[ConnectionT, None] = OrderedDict()

    def add(self, connection: ConnectionT) -> None:
        """Add a connection as the most recently used."""
        self._order[connection] = None

    def touch(self, connection: ConnectionT) -> None:
        """Mark a connection as the most recently used."""
        try:  # noqa: SIM105 - every request passes here, and this costs nothing unless it fails
            self._order.move_to_end(connection)
        except KeyError:
            # It is closing.
            pass

    def remove(self, connection: ConnectionT) -> None:
        """Remove a connection, if it is present."""
        self._order.pop(connection, None)

    def pop_evictable(self) -> ConnectionT | None:
        """Remove and return the least recently used evictable connection; None if none is found."""
        for _ in range(min(_MAX_CHECKS, len(self._order))):
            connection = next(iter(self._order))
            if connection.is_evictable:
                del self._order[connection]
                return connection
            # A busy connection counts as just used.
            self._order.move_to_end(connection)
        return None
