"""How much memory the bodies of requests may take together.

When there is no more room, the request that has been coming in for the longest has to go: that of a client
who sends slowly, or not at all. What has come in whole is answered. Small bodies are not counted: the
number of connections bounds them.
"""

from __future__ import annotations

from typing import Protocol

from .request_buffer import Incoming

#: A body up to this size needs no room.
SMALL = 64 * 1024


class Guest(Protocol):
    """A connection whose request is coming in."""

    def make_room(self) -> None:
        """Give up the request that is coming in, and its memory."""


class Room:
    """The room of one server, in bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._sizes: dict[Incoming, int] = {}
        #: Whose requests are still coming in, who came first first.
        self._guests: dict[Incoming, Guest] = {}

    def hold(self, incoming: Incoming, guest: Guest) -> None:
        """Keep what a request has by now; others may have to go for it, or it itself."""
        self._taken += incoming.size - self._sizes.get(incoming, 0)
        self._sizes[incoming] = incoming.size
        self._guests[incoming] = guest
        while self._taken > self._size and self._guests:
            oldest, its_guest = next(iter(self._guests.items()))
            self.leave(oldest)
            its_guest.make_room()

    def complete(self, incoming: Incoming) -> None:
        """Note that a request has come in whole: it stays until it is answered."""
        self._guests.pop(incoming, None)

    def leave(self, incoming: Incoming) -> None:
        """Forget a request, if it is here."""
        self._guests.pop(incoming, None)
        self._taken -= self._sizes.pop(incoming, 0)
