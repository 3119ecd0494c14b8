"""Memory limit for the bodies of all requests together.

When the limit is reached, the oldest request that is still arriving is rejected: its client sends slowly,
or not at all. Complete requests are always answered. Small bodies do not count: the number of connections
limits them.
"""

from __future__ import annotations

from typing import Protocol

from .request import HttpRequest

#: A body up to this size does not count.
SMALL = 64 * 1024


class Sender(Protocol):
    """A connection whose request is arriving."""

    def reject_unavailable(self) -> None:
        """Reject the arriving request with 503, and release its memory."""


class BodyBudget:
    """The memory, in bytes, that the request bodies of one server may take."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._sizes: dict[HttpRequest, int] = {}
        #: Requests that are still arriving, in order of arrival.
        self._senders: dict[HttpRequest, Sender] = {}

    def reserve(self, request: HttpRequest, sender: Sender) -> None:
        """Count the request's current size; reject the oldest arriving requests beyond the limit."""
        self._used += request.size - self._sizes.get(request, 0)
        self._sizes[request] = request.size
        self._senders[request] = sender
        while self._used > self._size and self._senders:
            oldest, its_sender = next(iter(self._senders.items()))
            self.release(oldest)
            its_sender.reject_unavailable()

    def complete(self, request: HttpRequest) -> None:
        """Protect a complete request from rejection; it keeps its memory until it is answered."""
        self._senders.pop(request, None)

    def release(self, request: HttpRequest) -> None:
        """Free the memory of a request, if it has any."""
        self._senders.pop(request, None)
        self._used -= self._sizes.pop(request, 0)
