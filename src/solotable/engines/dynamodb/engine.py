"""Records -> one request of DynamoDB -> reply records.

One request is one attempt: waiting and trying again is the flows' business, which know what may be
repeated. Nothing here reads credentials or settings.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from solotable.protocol.receive import receive
from solotable.protocol.render import render
from solotable.protocol.requests import Request
from solotable.protocol.wire import call

from .clients import Clients
from .faults import Sent, explained


class DynamoEngine:
    """Answers requests from a DynamoDB endpoint; safe for use by many threads."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @property
    def endpoint_url(self) -> str:
        """Where requests go, unless the account has an endpoint of its own."""
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

    def close(self) -> None:
        """Close the connections that the engine has made."""
        self._clients.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
