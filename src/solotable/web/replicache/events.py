"""Pokes as server-sent events, and the tickets that an EventSource sends in place of a header."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from hashlib import sha256

from fastapi import HTTPException, Request

from solotable.sync import Sync

_TICKET_SECONDS = 60
_DIGEST_BYTES = 32
_LONGEST_TICKET = 2_000


async def poke_events(
    sync: Sync, tenant: str, user: str, *, pause_seconds: float, heartbeat_seconds: float
) -> AsyncGenerator[bytes, None]:
    """Yield an event after commits, at most one in each pause, and comments as heartbeats."""
    loop = asyncio.get_running_loop()
    poked = asyncio.Event()

    def notify() -> None:
        try:
            loop.call_soon_threadsafe(poked.set)
        except RuntimeError:
            # The server is closing its event loop.
            return

    with sync.pokes(tenant, user, notify=notify):
        # A commit before this moment may be unknown to the client, so begin with a poke.
        yield b"retry: 1000\ndata: poke\n\n"
        while True:
            try:
                await asyncio.wait_for(poked.wait(), heartbeat_seconds)
            except TimeoutError:
                yield b": heartbeat\n\n"
                continue
            await asyncio.sleep(pause_seconds)
            poked.clear()
            yield b"data: poke\n\n"


class Tickets:
    """Short-lived tickets for GET poke, because a browser's EventSource sends no Authorization."""

    def __init__(self, secrets: Sequence[bytes], clock: Callable[[], float] = time.time) -> None:
        self._secrets = secrets
        self._clock = clock

    def issue(self, tenant: str, user: str) -> str:
        """Return a ticket that opens one stream within a minute."""
        body = json.dumps([int(self._clock()) + _TICKET_SECONDS, tenant, user]).encode()
        return urlsafe_b64encode(_mac(self._secrets[0], body) + body).decode()

    def verify(self, ticket: str) -> tuple[str, str]:
        """Return the tenant and the user of a ticket; 401 for an invalid one."""
        try:
            raw = urlsafe_b64decode(ticket.encode()) if len(ticket) <= _LONGEST_TICKET else b""
        except ValueError:
            raw = b""
        digest, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        if body and any(hmac.compare_digest(digest, _mac(each, body)) for each in self._secrets):
            until, tenant, user = json.loads(body)
            if until > self._clock():
                return tenant, user
        raise HTTPException(401, "The ticket is invalid or has expired; get a new one.")


def _mac(secret: bytes, body: bytes) -> bytes:
    return hmac.new(secret, b"solotable.replicache" + body, sha256).digest()


def ticket_of(request: Request) -> str | None:
    """Return the ticket of a request; None without one."""
    return request.query_params.get("ticket")
