"""Connections that wait for their next request: kept, found dead, retired; opens and uses none.

The most recently used goes first, so that those over the need grow old and are closed. One that the
other side has closed meanwhile is found before it is used.

No locks: a deque's ends are safe for threads, so a fork can leave nothing locked. A child process
drops what it has inherited, as the parent is using it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections import deque
from typing import Generic, Protocol, TypeVar

from solotable.errors import EngineError

from .exchange import Patience
from .response import Answer


class Kept(Protocol):
    """A connection that can be kept."""

    #: When its last answer came, by the monotonic clock; 0 while there was none.
    used_at: float

    @property
    def socket(self) -> socket.socket:
        """What it sends through."""
        ...

    def close(self) -> None:
        """Close it at once."""
        ...


KeptT = TypeVar("KeptT", bound=Kept)


class Idle(Generic[KeptT]):
    """The connections of one engine to one endpoint that nobody is using."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._kept: deque[KeptT] = deque()
        self._process = os.getpid()
        self._closed = False

    def take(self) -> KeptT | None:
        """Return a connection that is alive, None when a new one is to be made."""
        if self._process != os.getpid():
            inherited, self._kept = self._kept, deque()
            self._process = os.getpid()
            for connection in inherited:
                connection.close()
        earliest = time.monotonic() - self._patience.idle_seconds
        while True:
            try:
                connection = self._kept.pop()
            except IndexError:
                return None
            if connection.used_at >= earliest and not _readable(connection.socket):
                return connection
            connection.close()

    def check_open(self) -> None:
        """Raise when no further connection is to be made."""
        if self._closed:
            raise EngineError("The store was closed; open it again.")

    def done(self, connection: KeptT, answer: Answer | None) -> None:
        """Keep a connection after its answer; after none, what comes next on it would be misread."""
        if answer is None or not answer.reusable or len(self._kept) >= self._patience.idle_connections:
            connection.close()
            return
        connection.used_at = now = time.monotonic()
        self._kept.append(connection)
        if self._closed:
            self.drop()
            return
        # Those at the left are not needed any more, and nobody would come across them.
        with contextlib.suppress(IndexError, ValueError):
            while (oldest := self._kept[0]).used_at < now - self._patience.idle_seconds:
                self._kept.remove(oldest)
                oldest.close()

    def close(self) -> None:
        """Close the connections; those in use close when they are done."""
        self._closed = True
        self.drop()

    def drop(self) -> None:
        """Close the connections that are kept now."""
        with contextlib.suppress(IndexError):
            while True:
                self._kept.pop().close()


def _readable(sock: socket.socket) -> bool:
    # Nothing was asked: what can be read is the end, or nothing that anybody wants.
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    # Windows has no poll(); elsewhere select() takes no more than 1024 files.
    return bool(select.select([sock], [], [], 0)[0])
