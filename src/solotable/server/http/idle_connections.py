"""Connections by when they were last of use, so that the one to close is found without a search."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A connection."""

    @property
    def spare(self) -> bool:
        """Whether it has no request to answer."""


ConnectionT = TypeVar("ConnectionT", bound=Closable)

#: How many connections are looked at for a spare one.
_MOST_LOOKS = 16


class Idle(Generic[ConnectionT]):
    """Connections, the one that has been idle for the longest first; every step takes constant time."""

    def __init__(self) -> None:
        self._order: OrderedDict[ConnectionT, None] = OrderedDict()

    def add(self, connection: ConnectionT) -> None:
        """Take in a connection, which is of use now."""
        self._order[connection] = None

    def touch(self, connection: ConnectionT) -> None:
        """Note that a connection was of use."""
        try:  # noqa: SIM105 - every request passes here, and this costs nothing unless it fails
            self._order.move_to_end(connection)
        except KeyError:
            # It is being closed.
            pass

    def remove(self, connection: ConnectionT) -> None:
        """Forget a connection."""
        self._order.pop(connection, None)

    def take_oldest(self) -> ConnectionT | None:
        """Remove and return the connection that has been idle for the longest; None if none is found."""
        for _ in range(min(_MOST_LOOKS, len(self._order))):
            connection = next(iter(self._order))
            if connection.spare:
                del self._order[connection]
                return connection
            # It is busy, so it is of use now.
            self._order.move_to_end(connection)
        return None
