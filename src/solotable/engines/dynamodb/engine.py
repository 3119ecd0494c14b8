"""Records -> one request of DynamoDB -> reply records, blocking or awaited.

One request is one attempt: waiting and trying again is the flows' business, which know what may be
repeated. Nothing here reads credentials or settings.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from solotable._protocol.decode.replies import receive
from solotable._protocol.encode.requests import render
from solotable._protocol.requests import Request
from solotable._protocol.wire import call

from .clients import Clients
from .errors import Sent, explained
from .http.async_transport import AwaitedDirect
from .http.transport import Direct


class DynamoEngine:
    """Answers requests from a DynamoDB endpoint; safe for use by many threads."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._awaited: AwaitedDynamoEngine | None = None

    @property
    def endpoint_url(self) -> str:
        """Where requests go, unless botocore knows an endpoint of the account."""
        return self._clients.items.endpoint_url

    def handle(self, request: Request[Any], /) -> Any:
        """Send one request, and return its reply or raise what the service refused it with."""
        operation, members = render(request)
        channel = self._clients.channel(operation)
        try:
            wire = channel.send(operation, members)
        except Exception as fault:
            known = explained(fault, Sent(operation, members), channel.endpoint_url)
            if known is None:
                raise
            raise known from fault
        return receive(request, wire)

    def call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer a request in wire form, as `client.get_item(...)` would send it."""
        return call(self, operation, payload)

    def awaited(self) -> AwaitedDynamoEngine | None:
        """Return the engine to await; None where botocore sends, which blocks."""
        if self._awaited is None and isinstance(self._clients.items, Direct):
            self._awaited = AwaitedDynamoEngine(self, self._clients)
        return self._awaited

    def close(self) -> None:
        """Close the connections that the engine has made."""
        if self._awaited is not None:
            self._awaited.hang_up()
        self._clients.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AwaitedDynamoEngine:
    """Answers requests without a thread; closing it closes the engine that it was made from."""

    def __init__(self, engine: DynamoEngine, clients: Clients) -> None:
        self._engine = engine
        self._clients = clients
        self._ways: dict[int, AwaitedDirect] = {}

    async def handle(self, request: Request[Any], /) -> Any:
        """Send one request, and return its reply or raise what the service refused it with."""
        operation, members = render(request)
        # Making the client for streams takes botocore a tenth of a second.
        is_made = self._clients.is_made(operation)
        channel = (
            self._clients.channel(operation)
            if is_made
            else await asyncio.to_thread(self._clients.channel, operation)
        )
        try:
            if isinstance(channel, Direct):
                wire = await self._way(channel).send(operation, members)
            else:
                wire = await asyncio.to_thread(channel.send, operation, members)
        except Exception as fault:
            known = explained(fault, Sent(operation, members), channel.endpoint_url)
            if known is None:
                raise
            raise known from fault
        return receive(request, wire)

    async def close(self) -> None:
        """Close the connections, those of the blocking engine too."""
        self._engine.close()

    def hang_up(self) -> None:
        """Close the connections that are awaited."""
        for way in self._ways.values():
            way.close()

    def _way(self, direct: Direct) -> AwaitedDirect:
        found = self._ways.get(id(direct))
        if found is None:
            found = self._ways[id(direct)] = AwaitedDirect(direct)
        return found
