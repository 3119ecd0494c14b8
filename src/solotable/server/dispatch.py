"""What a whole request is answered with: the checks before an operation, and who reads and answers it.

Knows no socket: replies go to whatever the request came from.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from solotable._protocol import wire
from solotable._protocol.requests import Control
from solotable._values.limits import LARGEST_REQUEST
from solotable.errors import ServiceError

from .auth.allowed_hosts import echo
from .http import compression, response
from .http.request_buffer import Incoming
from .http.response import Body

if TYPE_CHECKING:
    from .run import Server

#: The collector looks at what is being parsed again and again: four fifths of the time of a large body.
_LARGE = 1024 * 1024
#: A body that takes long enough to read for others to notice.
_LONG_TO_READ = 256 * 1024
_JSON = b"application/json"
_JSON_TYPES = frozenset({_JSON, response.JSON_TYPE})
_UNKNOWN = b"<UnknownOperationException/>\n"
_TOO_LARGE = 413


class Client(Protocol):
    """Where a request came from."""

    @property
    def gone(self) -> bool:
        """Whether no reply is wanted any more."""

    def send(
        self, incoming: Incoming, status: int, body: Body, content_type: bytes, headers: bytes = b""
    ) -> None:
        """Send the reply to a request."""


def answer(server: Server, client: Client, incoming: Incoming) -> None:
    """Answer a request, at once or later."""
    if incoming.refusal:
        client.send(incoming, incoming.refusal, Body([]), b"text/plain")
        return
    host = incoming.headers.get(b"host")
    if host not in server.hosts.known:
        try:
            server.hosts.check(host)
        except ServiceError as refused:
            status, pieces = wire.refusal(refused)
            client.send(incoming, status, Body(pieces), response.JSON_TYPE)
            return
    if incoming.method != b"POST":
        status, page, content_type, headers = server.pages.get(incoming)
        client.send(incoming, status, Body([page], _encoding(incoming)), content_type, headers)
        return
    content_type = incoming.headers.get(b"content-type", b"")
    if content_type not in _JSON_TYPES:
        content_type = content_type.partition(b";")[0].strip().lower()
        if content_type not in _JSON_TYPES:
            if incoming.size:
                client.send(incoming, 404, Body([_UNKNOWN]), b"text/plain")
                return
            # DynamoDB: without a body, the type does not matter.
            content_type = _JSON
    _operate(server, client, incoming, content_type)


def _encoding(incoming: Incoming) -> str:
    accepted = incoming.headers.get(b"accept-encoding")
    return compression.choose(accepted.decode("latin-1")) if accepted else ""


def _operate(server: Server, client: Client, incoming: Incoming, content_type: bytes) -> None:
    target = incoming.header(b"x-amz-target")

    def encode(found: Callable[[], Any]) -> tuple[int, Body]:
        status, pieces = wire.render(target, found)
        return status, Body(pieces, _encoding(incoming))

    def done(reply: tuple[int, Body]) -> None:
        client.send(incoming, *reply, content_type)

    def take(read: Callable[[], Any]) -> None:
        if client.gone:
            server.room.leave(incoming)
            return
        try:
            request = read()
        except compression.TooLarge:
            client.send(incoming, _TOO_LARGE, Body([]), content_type)
        except Exception as error:  # noqa: BLE001  # `render` tells a refusal from a fault of ours
            done(encode(partial(_raise, error)))
        else:
            if isinstance(request, Control) and request.operation == "DescribeEndpoints":
                done(encode(lambda: _endpoints(incoming)))
            else:
                server.lanes.take(request, encode, done)

    read = partial(_read, server, incoming, target)
    if incoming.size > _LONG_TO_READ or b"content-encoding" in incoming.headers:
        # JSON is read in one go either way; what follows, most of the work, lets others in.
        server.lanes.read(read, take)
    else:
        take(read)


def _endpoints(incoming: Incoming) -> dict[str, Any]:
    """Return the answer to DescribeEndpoints: a client is to stay with the address that it has called."""
    address = echo(incoming.headers.get(b"host"))
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": 1440}]}


def _read(server: Server, incoming: Incoming, target: str) -> Any:
    body = incoming.body()
    if server.verifier is not None:
        server.verifier.verify(incoming.signed(body))
    encoding = incoming.header(b"content-encoding")
    if encoding:
        body = compression.inflate(body, encoding.strip().lower(), LARGEST_REQUEST)
    if len(body) < _LARGE or not gc.isenabled():
        return wire.parse(target, body, server.error_texts)
    gc.disable()
    try:
        return wire.parse(target, body, server.error_texts)
    finally:
        gc.enable()


def _raise(error: Exception) -> NoReturn:
    raise error
