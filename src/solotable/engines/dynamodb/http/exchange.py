"""One request and its answer on one connection, whatever way bytes are moved; pure but for the clock.

What is raised says what may have happened. `Unsent`: the request never left whole, so that no server
can have carried it out. `Lost`: it was sent, and may have been carried out.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from .response import Answer, Unreadable

#: How long an answer may be under way to a request that was refused before it was read to its end.
_REFUSAL_SECONDS: Final = 1.0
#: Balancers say this to a connection that they close as idle; by RFC 9110 there was no whole request.
_GREW_OLD: Final = 408

#: Bytes to send, or the seconds to wait for what comes next; gets what came, b"" for the end.
Steps = Generator[bytes | float, bytes, Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited for what."""

    connect_seconds: float = 3
    #: For the next byte.
    read_seconds: float = 15
    #: For the last byte.
    answer_seconds: float = 60
    #: Older ones are not used again: their other end is likely to be about to close them.
    idle_seconds: float = 20
    #: Connections that are kept. More are made when more threads ask at once, and closed afterwards;
    #: on an event loop, who comes beyond their number waits.
    idle_connections: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where connections go; `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Unreachable(Exception):
    """There is no connection, so nothing was sent; `cause` is the operating system's or OpenSSL's."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Unsent(Exception):
    """The end of the request never left, so no server can have carried it out."""


class Lost(Exception):
    """The request was sent and no whole answer came; `stale` if the connection may have been dead."""

    def __init__(self, reason: str, *, stale: bool = False) -> None:
        super().__init__(reason)
        self.stale = stale


def exchange(request: bytes, patience: Patience, *, reused: bool) -> Steps:
    """Send a request and return its whole answer, or raise Unsent, Lost or Unreadable.

    An OSError of a step is thrown in where the step was taken.
    """
    try:
        yield request
    except OSError as fault:
        refusal = yield from _refusal(patience)
        if refusal is not None:
            return refusal
        if isinstance(fault, TimeoutError):
            # A clock may strike, or a signal's handler, just as the last byte has left.
            raise Lost(_reason(fault)) from fault
        raise Unsent(_reason(fault)) from fault
    answer = Answer()
    try:
        yield from _reading(answer, patience.read_seconds, patience)
    except OSError as fault:
        silent = not answer.begun and not isinstance(fault, TimeoutError)
        raise Lost(_reason(fault), stale=reused and silent) from fault
    except Unreadable as fault:
        if answer.begun:
            raise
        raise Lost("the connection was closed", stale=reused) from fault
    if reused and answer.status == _GREW_OLD:
        raise Unsent("the server closed the connection for its age")
    return answer


def _reading(answer: Answer, seconds: float, patience: Patience) -> Generator[float, bytes, None]:
    data = yield seconds
    if data:
        answer.feed(data)
    # Only what comes in pieces needs a clock: the first wait has its own.
    latest = 0.0 if answer.whole else time.monotonic() + patience.answer_seconds
    while data and not answer.whole:
        data = yield seconds
        if data:
            answer.feed(data)
        if time.monotonic() > latest:
            raise TimeoutError("its end did not come in time")
    if not data:
        answer.end()
    answer.judge()


def _refusal(patience: Patience) -> Generator[float, bytes, Answer | None]:
    # A server may refuse a request for its size before it has read it, and close.
    answer = Answer()
    try:
        yield from _reading(answer, min(_REFUSAL_SECONDS, patience.read_seconds), patience)
    except (OSError, Unreadable):
        return None
    answer.reusable = False
    return answer if answer.status >= 400 and answer.status != _GREW_OLD else None


def _reason(fault: OSError) -> str:
    return fault.strerror or str(fault) or type(fault).__name__
