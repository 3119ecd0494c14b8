"""Check and decode one HTTP request, hand it to the scheduler, and send the reply.

It does no I/O: replies go to the `Client` of the request.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from solotable._protocol import wire
from solotable._protocol.heat import encode_heat
from solotable._protocol.json_codec import loads
from solotable._protocol.operations import DESCRIBE_HEAT, HEAT_TARGET
from solotable._protocol.requests import Control, Request
from solotable._values.limits import LARGEST_REQUEST
from solotable.errors import ServiceError

from .auth.allowed_hosts import echo_host
from .health import HEALTHY, WITHOUT_WRITER, PageReply
from .http import compression, response
from .http.request import HttpRequest
from .http.response import Body

if TYPE_CHECKING:
    from .run import Server

#: Parse a body of this size without the garbage collector, which takes four fifths of the time.
_LARGE = 1024 * 1024
#: A thread parses a larger body, so that the event loop does not block.
_LONG_TO_PARSE = 256 * 1024
_JSON = b"application/json"
_JSON_TYPES = frozenset({_JSON, response.JSON_TYPE})
_UNKNOWN = b"<UnknownOperationException/>\n"
_TOO_LARGE = 413
#: What a process with a forwarder answers itself: requests that read items, and those about the server.
_ANSWERED_BY_WORKERS: Final = frozenset(
    f"DynamoDB_20120810.{operation}"
    for operation in (
        "BatchGetItem",
        "DescribeEndpoints",
        "GetItem",
        "Query",
        "Scan",
        "TransactGetItems",
    )
)


class Client(Protocol):
    """The connection of a request."""

    @property
    def is_closed(self) -> bool:
        """Whether the connection can send no further reply."""

    def send(
        self, http_request: HttpRequest, status: int, body: Body, content_type: bytes, headers: bytes = b""
    ) -> None:
        """Send the reply to a request."""

    def abort(self) -> None:
        """Close the connection at once."""


class Forwarder(Protocol):
    """The process that answers what this one does not."""

    def forward(self, target: str, body: bytes, done: Callable[[int, bytes], None], /) -> None:
        """Send a request whose signature was verified; call `done` with the status and body of the reply."""

    def check(self, done: Callable[[bool], None], /) -> None:
        """Call `done` with whether the process answers."""


def answer(server: Server, client: Client, http_request: HttpRequest) -> None:
    """Answer a request, at once or later."""
    if http_request.rejection_status:
        client.send(http_request, http_request.rejection_status, Body([]), b"text/plain")
        return
    host = http_request.headers.get(b"host")
    if host not in server.allowed_hosts.accepted:
        try:
            server.allowed_hosts.check(host)
        except ServiceError as denied:
            status, pieces = wire.encode_error(denied)
            client.send(http_request, status, Body(pieces), response.JSON_TYPE)
            return
    if http_request.method != b"POST":
        _answer_page(server, client, http_request)
        return
    content_type = http_request.headers.get(b"content-type", b"")
    if content_type not in _JSON_TYPES:
        content_type = content_type.partition(b";")[0].strip().lower()
        if content_type not in _JSON_TYPES:
            if http_request.size:
                client.send(http_request, 404, Body([_UNKNOWN]), b"text/plain")
                return
            # DynamoDB: without a body, the type does not matter.
            content_type = _JSON
    operate(server, client, http_request, content_type)


def _answer_page(server: Server, client: Client, http_request: HttpRequest) -> None:
    def send(page: PageReply) -> None:
        status, text, content_type, headers = page
        client.send(http_request, status, Body([text], _encoding(http_request)), content_type, headers)

    page, forwarder = server.health_pages.get(http_request), server.forwarder
    if forwarder is not None and page is HEALTHY:
        forwarder.check(lambda answers: send(HEALTHY if answers else WITHOUT_WRITER))
    else:
        send(page)


def _encoding(http_request: HttpRequest) -> str:
    accepted = http_request.headers.get(b"accept-encoding")
    return compression.choose(accepted.decode("latin-1")) if accepted else ""


def operate(server: Server, client: Client, http_request: HttpRequest, content_type: bytes) -> None:
    """Answer the request of an operation, at the end of the tick or later."""
    call = _Call(server, client, http_request, content_type)
    if http_request.size > _LONG_TO_PARSE or b"content-encoding" in http_request.headers:
        # The JSON parser holds the GIL; decoding, most of the work, releases it to other requests.
        server.scheduler.run_in_reader(call.parse, call.resume)
    else:
        server.tick.add(call)


class _Call:
    """The request of one operation, from its body to its reply."""

    __slots__ = (
        "_client",
        "_content_type",
        "_encoding",
        "_forwarder",
        "_http_request",
        "_is_answered",
        "_request",
        "_server",
        "_target",
        "size",
    )

    def __init__(
        self, server: Server, client: Client, http_request: HttpRequest, content_type: bytes
    ) -> None:
        self._server = server
        self._client = client
        self._http_request = http_request
        self._content_type = content_type
        #: The bytes of the body, as sent.
        self.size = http_request.size
        self._target = target = http_request.headers.get(b"x-amz-target", b"").decode("latin-1")
        forwarder = server.forwarder
        self._forwarder = None if forwarder is None or target in _ANSWERED_BY_WORKERS else forwarder
        self._encoding = _encoding(http_request) if b"accept-encoding" in http_request.headers else ""
        self._is_answered = False
        self._request: Any = None

    def parse(self) -> Any:
        """Return the decoded request; for a forwarder, its body."""
        server = self._server
        body = _read_body(server, self._http_request)
        if self._forwarder is not None:
            return body
        if self._target == HEAT_TARGET:
            return Control(operation=DESCRIBE_HEAT, members=_members(body))
        if len(body) < _LARGE or not gc.isenabled():
            return wire.decode_body(self._target, body, server.error_texts)
        gc.disable()
        try:
            return wire.decode_body(self._target, body, server.error_texts)
        finally:
            gc.enable()

    def resume(self, parse: Callable[[], Any]) -> None:
        """Answer a request that a thread has parsed; `parse` returns the result or raises its error."""
        if self._client.is_closed:
            self._server.body_budget.release(self._http_request)
        else:
            self.decode(parse)
            self.answer()

    def decode(self, parse: Callable[[], Any] | None = None) -> None:
        """Decode the request, or send the reply of an invalid one."""
        try:
            self._request = self.parse() if parse is None else parse()
        except compression.TooLarge:
            self._is_answered = True
            self._client.send(self._http_request, _TOO_LARGE, Body([]), self._content_type)
        except Exception as error:  # noqa: BLE001  # `encode` makes a service error or a 500 of it
            self._is_answered = True
            self._done(self._encode(partial(_raise, error)))

    def answer(self) -> None:
        """Answer the decoded request, at once or later."""
        if self._is_answered:
            return
        request, server = self._request, self._server
        if self._forwarder is not None:
            self._forwarder.forward(self._target, request, self._forwarded)
            return
        if server.log is not None:
            self._http_request.table = _table(request)
        if isinstance(request, Control):
            if request.operation == "DescribeEndpoints":
                self._done(self._encode(lambda: _endpoints(self._http_request)))
                return
            if request.operation == DESCRIBE_HEAT:
                self._done(self._encode(lambda: _heat(server, request.members)))
                return
        server.scheduler.schedule(request, self._encode, self._done)

    def abort(self) -> None:
        """Close the connection of the request."""
        self._client.abort()

    def _encode(self, answer: Callable[[], Any]) -> tuple[int, Body]:
        status, pieces = wire.encode_response(self._target, answer)
        return status, Body(pieces, self._encoding)

    def _done(self, reply: tuple[int, Body]) -> None:
        self._client.send(self._http_request, *reply, self._content_type)

    def _forwarded(self, status: int, body: bytes) -> None:
        if len(body) > response.LARGE:
            compress = partial(Body, [body], self._encoding)
            self._server.scheduler.run_in_reader(compress, lambda reply: self._done((status, reply())))
        else:
            self._done((status, Body([body], self._encoding)))


def _table(request: Request[Any]) -> str | None:
    named = request.members.get("TableName") if isinstance(request, Control) else None
    table = named or getattr(request, "table", None)
    return table if isinstance(table, str) else None


def _endpoints(http_request: HttpRequest) -> dict[str, Any]:
    """Return the reply to DescribeEndpoints: the address that the client has called."""
    address = echo_host(http_request.headers.get(b"host"))
    return {"Endpoints": [{"Address": address, "CachePeriodInMinutes": 1440}]}


def _heat(server: Server, members: Mapping[str, Any]) -> dict[str, Any]:
    since = members.get("Since", 0)
    if isinstance(since, bool) or not isinstance(since, int | float):
        raise ServiceError("ValidationException", f"Since is a number of seconds since 1970, got {since!r}.")
    found = server.read_heat(float(since))
    if found is None:
        raise ServiceError("HeatNotRecorded", "The server was started with --no-heat.")
    return encode_heat(found)


def _read_body(server: Server, http_request: HttpRequest) -> bytes:
    """Return the body as JSON, after the signature was verified."""
    body = http_request.body()
    if server.verifier is not None:
        server.verifier.verify(http_request.signed(body))
    if b"content-encoding" in http_request.headers:
        encoding = http_request.header(b"content-encoding").strip().lower()
        if encoding:
            body = compression.inflate(body, encoding, LARGEST_REQUEST)
    return body


def _members(body: bytes) -> dict[str, Any]:
    try:
        members = loads(body or b"{}")
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise ServiceError("SerializationException", "The body is not a JSON object.")
    return members


def _raise(error: Exception) -> NoReturn:
    raise error
