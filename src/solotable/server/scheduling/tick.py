"""Answer the requests of one tick of the event loop in stages, and send their replies together.

Requests that arrive together are decoded first and answered then: the code of one stage stays in the
processor's caches, which saves a fifth of the CPU of eight requests. A reply to a sleeping client wakes it,
and in a virtual machine that takes a quarter of a GetItem; replies that are sent together wake it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from .time_slices import GatedLoop

_LOG = logging.getLogger(__name__)
#: The most requests of a batch, and bytes of their bodies: each is decoded before the first one is answered.
_MOST_CALLS: Final = 16
_MOST_BYTES: Final = 16 * 1024
#: How long a reply waits for other requests of its batch.
_HOLD_SECONDS: Final = 0.0005


class Call(Protocol):
    """A request that was received whole."""

    @property
    def size(self) -> int:
        """The bytes of its body."""

    def decode(self) -> None:
        """Decode the request."""

    def answer(self) -> None:
        """Answer the decoded request, at once or later."""

    def abort(self) -> None:
        """Close the connection of the request."""


class Transport(Protocol):
    """What sends a reply."""

    def write(self, data: bytes, /) -> None:
        """Write a reply."""

    def abort(self) -> None:
        """Close the connection at once."""


class Tick:
    """The requests and replies that wait for the end of the event loop's tick."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self._now = now
        # Other loops have no hook before they wait: there, the work begins the next tick.
        self._gated_loop = loop if isinstance(loop, GatedLoop) else None
        self._defer: Callable[[Callable[[], None]], object] = (
            loop.call_soon if self._gated_loop is None else self._gated_loop.call_before_wait
        )
        self._calls: list[Call] = []
        #: The bytes of their bodies.
        self._size = 0
        self._replies: list[tuple[Transport, bytes]] = []
        #: Whether `_run` will be called or is running.
        self._scheduled = False
        #: Whether the one request of a tick is being answered.
        self._is_alone = False

    def add(self, call: Call) -> None:
        """Answer a request: at once if no other can arrive in this tick, else in a batch."""
        if not self._scheduled and self._gated_loop is not None and self._gated_loop.ready_sockets == 1:
            self._is_alone = True
            self._answer([call])
            self._is_alone = False
            return
        self._calls.append(call)
        self._size += call.size
        if not self._scheduled:
            self._schedule()
        if len(self._calls) >= _MOST_CALLS or self._size >= _MOST_BYTES:
            self._answer_batch()

    def send(self, transport: Transport, data: bytes) -> None:
        """Write a reply: at once if its request is alone, else at the end of the tick."""
        if self._is_alone:
            transport.write(data)
            return
        self._replies.append((transport, data))
        if not self._scheduled:
            self._schedule()

    def flush(self) -> None:
        """Write the waiting replies now."""
        replies, self._replies = self._replies, []
        for transport, data in replies:
            try:
                transport.write(data)
            except Exception:  # noqa: BLE001  # a process edge, as in `_answer`
                _LOG.exception("a reply was not sent")
                transport.abort()

    def _schedule(self) -> None:
        self._scheduled = True
        self._defer(self._run)

    def _run(self) -> None:
        self._answer_batch()
        self._scheduled = False
        if self._calls:
            self._schedule()

    def _answer_batch(self) -> None:
        calls, self._calls, self._size = self._calls, [], 0
        self._answer(calls)
        self.flush()

    def _answer(self, calls: list[Call]) -> None:
        """Decode and answer requests; flush the replies of those that take long."""
        for call in calls:
            try:
                call.decode()
            except Exception:  # noqa: BLE001  # a process edge: one request must not end the others
                _abort(call)
        held_since = self._now()
        for call in calls:
            try:
                call.answer()
            except Exception:  # noqa: BLE001  # the same
                _abort(call)
            if self._replies and self._now() - held_since > _HOLD_SECONDS:
                self.flush()
                held_since = self._now()


def _abort(call: Call) -> None:
    _LOG.exception("a request failed without a reply")
    call.abort()
