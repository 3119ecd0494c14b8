"""The DynamoDB engine: encodes a request, sends it, and decodes the reply; blocking or async.

Each request is one attempt: flows retry, because they know which requests are safe to repeat.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final, Self

from solotable._protocol.decode.replies import decode_reply
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.engine import Capabilities, ReplyT
from solotable._protocol.heat import HeatLog, decode_heat
from solotable._protocol.operations import DESCRIBE_HEAT
from solotable._protocol.requests import Request
from solotable.errors import ServiceError

from .errors import WireRequest, translate_error
from .http.async_transport import AsyncHttpTransport
from .http.transport import HttpTransport
from .transports import Transports

#: Errors of servers that know no heat: DynamoDB Local and others, and ours without it.
_WITHOUT_HEAT: Final = frozenset({"UnknownOperationException", "HeatNotRecorded"})


class DynamoEngine:
    """Answers requests from a DynamoDB endpoint; safe for use by many threads."""

    def __init__(self, transports: Transports) -> None:
        self._transports = transports
        self._awaited: AsyncDynamoEngine | None = None

    @property
    def endpoint_url(self) -> str:
        """The URL of the endpoint; botocore may use an account endpoint instead."""
        return self._transports.items.endpoint_url

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares about itself: it can be awaited, and whether Amazon answers."""
        items = self._transports.items
        return Capabilities(
            make_async=self.make_async,
            amazon=self._transports.is_amazon,
            clock_offset=items.protocol.server_clock.offset if isinstance(items, HttpTransport) else None,
            heat=None if self._transports.is_amazon else self._read_heat,
        )

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Send one request; return its reply, or raise its error."""
        operation, members = encode_request(request)
        transport = self._transports.get(operation)
        try:
            wire = transport.send(operation, members)
        except Exception as fault:
            known = translate_error(fault, WireRequest(operation, members), transport.endpoint_url)
            if known is None:
                raise
            raise known from fault
        return decode_reply(request, wire)

    def _read_heat(self, since: float) -> HeatLog | None:
        """Ask the server for its heat; None if it is another program's, or does not record it."""
        transport = self._transports.items
        if not isinstance(transport, HttpTransport):
            return None
        members = {"Since": since}
        try:
            return decode_heat(transport.send(DESCRIBE_HEAT, members))
        except Exception as fault:
            known = translate_error(fault, WireRequest(DESCRIBE_HEAT, members), transport.endpoint_url)
            if isinstance(known, ServiceError) and known.code in _WITHOUT_HEAT:
                return None
            if known is None:
                raise
            raise known from fault

    def call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer a request in wire form, as `client.get_item(...)` would send it."""
        # Imported here: a store sends records, and needs neither the parser nor the constraints.
        from solotable._protocol.wire import call

        return call(self, operation, payload)

    def make_async(self) -> AsyncDynamoEngine | None:
        """Return the async engine; None if botocore sends, which blocks."""
        if self._awaited is None and isinstance(self._transports.items, HttpTransport):
            self._awaited = AsyncDynamoEngine(self, self._transports)
        return self._awaited

    def close(self) -> None:
        """Close the connections that the engine has opened."""
        if self._awaited is not None:
            self._awaited.close_connections()
        self._transports.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncDynamoEngine:
    """Answers requests on an event loop; closing it closes the blocking engine too."""

    def __init__(self, engine: DynamoEngine, transports: Transports) -> None:
        self._engine = engine
        self._transports = transports
        self._async_transports: dict[int, AsyncHttpTransport] = {}

    @property
    def capabilities(self) -> Capabilities:
        """What the blocking engine declares about itself."""
        return self._engine.capabilities

    async def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Send one request; return its reply, or raise its error."""
        operation, members = encode_request(request)
        if self._transports.is_open(operation):
            transport = self._transports.get(operation)
        else:
            # botocore takes a tenth of a second to create the client for streams.
            transport = await asyncio.to_thread(self._transports.get, operation)
        try:
            if isinstance(transport, HttpTransport):
                wire = await self._async_transport(transport).send(operation, members)
            else:
                wire = await asyncio.to_thread(transport.send, operation, members)
        except Exception as fault:
            known = translate_error(fault, WireRequest(operation, members), transport.endpoint_url)
            if known is None:
                raise
            raise known from fault
        return decode_reply(request, wire)

    async def sleep(self, seconds: float, /) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connections, including the blocking engine's."""
        self._engine.close()

    def close_connections(self) -> None:
        """Close the connections of the event loop."""
        for transport in self._async_transports.values():
            transport.close()

    def _async_transport(self, blocking: HttpTransport) -> AsyncHttpTransport:
        found = self._async_transports.get(id(blocking))
        if found is None:
            found = self._async_transports[id(blocking)] = AsyncHttpTransport(blocking)
        return found
