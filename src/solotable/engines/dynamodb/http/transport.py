"""Blocking HTTP transport: signs and sends without botocore, for an eighth of its CPU time.

One call sends one request. It sends a second one only if the first was certainly not executed: it was not
sent whole, it was a read on a dead connection, or the server rejected a wrong clock or expired credentials.
"""

from __future__ import annotations

from typing import Any

from solotable.engines.dynamodb.idempotency import is_read_only
from solotable.engines.dynamodb.select_transport import is_botocore_unpatched

from .botocore_transport import BotocoreTransport
from .exchange import ResponseLost
from .pool import BlockingPool
from .wire_protocol import Service, WireProtocol


class HttpTransport:
    """Sends requests itself, or through botocore while a tool has patched botocore."""

    def __init__(
        self, service: Service, protocol: WireProtocol, pool: BlockingPool, *, fallback: BotocoreTransport
    ) -> None:
        self.endpoint_url = service.endpoint_url
        self.protocol = protocol
        self.pool = pool
        self.fallback = fallback

    def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the reply."""
        if not is_botocore_unpatched():
            return self.fallback.send(operation, members)
        steps = self.protocol.call_steps(operation, members, self.protocol.signers.current())
        try:
            step = next(steps)
            while True:
                if not isinstance(step, bytes):
                    step = steps.send(step())
                    continue
                try:
                    response = self.pool.exchange(step)
                except ResponseLost as lost:
                    if not lost.stale or not is_read_only(operation, members):
                        raise
                    response = self.pool.exchange(step, new_connection=True)
                step = steps.send(response)
        except StopIteration as done:
            reply: dict[str, Any] = done.value
            return reply

    def close(self) -> None:
        """Close the connections, and botocore's."""
        self.pool.close()
        self.fallback.close()
