"""One request and its response on one connection, for any kind of I/O; pure except for the clock.

The exceptions say what may have happened. `RequestNotSent`: no server can have executed the request.
`ResponseLost`: the request was sent, and a server may have executed it.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from .response import HttpResponse, InvalidResponse

#: How long to wait for the response to a request that a server rejected before reading it whole.
_EARLY_RESPONSE_SECONDS: Final = 1.0
#: Load balancers send this on an idle connection that they close; RFC 9110: no whole request arrived.
_REQUEST_TIMEOUT: Final = 408

#: Yields bytes to send, or the seconds to wait for the next bytes; is sent those, b"" at the end.
IoSteps = Generator[bytes | float, bytes, HttpResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """Timeouts and the size of the connection pool."""

    connect_seconds: float = 3
    #: For the next byte.
    read_seconds: float = 15
    #: For the last byte.
    response_seconds: float = 60
    #: Older connections are not reused: the server is likely to close them soon.
    idle_seconds: float = 20
    #: How many connections the pool holds. Concurrent threads open more and close them afterwards; on an
    #: event loop, further requests wait.
    idle_connections: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where connections go; `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class ConnectFailed(Exception):
    """No connection, so nothing was sent; `cause` is the operating system's or OpenSSL's error."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class RequestNotSent(Exception):
    """The end of the request was not sent, so no server can have executed it."""


class ResponseLost(Exception):
    """The request was sent without a whole response; `stale` if the connection may have been dead."""

    def __init__(self, reason: str, *, stale: bool = False) -> None:
        super().__init__(reason)
        self.stale = stale


def exchange(request: bytes, settings: HttpSettings, *, reused: bool) -> IoSteps:
    """Send a request and return its response, or raise RequestNotSent, ResponseLost or InvalidResponse.

    The runner throws the OSError of a step into the generator.
    """
    try:
        yield request
    except OSError as fault:
        early = yield from _receive_early(settings)
        if early is not None:
            return early
        if isinstance(fault, TimeoutError):
            # A timeout, or a signal handler, may raise just after the last byte was sent.
            raise ResponseLost(_reason(fault)) from fault
        raise RequestNotSent(_reason(fault)) from fault
    response = HttpResponse()
    try:
        yield from _receive(response, settings.read_seconds, settings)
    except OSError as fault:
        silent = not response.started and not isinstance(fault, TimeoutError)
        raise ResponseLost(_reason(fault), stale=reused and silent) from fault
    except InvalidResponse as fault:
        if response.started:
            raise
        raise ResponseLost("the connection was closed", stale=reused) from fault
    if reused and response.status == _REQUEST_TIMEOUT:
        raise RequestNotSent("server closed a kept-alive connection")
    return response


def _receive(response: HttpResponse, seconds: float, settings: HttpSettings) -> Generator[float, bytes, None]:
    data = yield seconds
    if data:
        response.feed(data)
    # Only a response in several pieces needs the clock: the first wait has its own timeout.
    latest = 0.0 if response.complete else time.monotonic() + settings.response_seconds
    while data and not response.complete:
        data = yield seconds
        if data:
            response.feed(data)
        if time.monotonic() > latest:
            raise TimeoutError("the end of the response did not arrive in time")
    if not data:
        response.feed_eof()
    response.finish()


def _receive_early(settings: HttpSettings) -> Generator[float, bytes, HttpResponse | None]:
    # A server may reject a request for its size before reading it whole, and close.
    response = HttpResponse()
    try:
        yield from _receive(response, min(_EARLY_RESPONSE_SECONDS, settings.read_seconds), settings)
    except (OSError, InvalidResponse):
        return None
    response.reusable = False
    return response if response.status >= 400 and response.status != _REQUEST_TIMEOUT else None


def _reason(fault: OSError) -> str:
    return fault.strerror or str(fault) or type(fault).__name__
