"""Settings of a server: address, access, limits, timeouts and the interval between TTL sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .request_log import RequestRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Address, access rules, limits and timeouts of a server."""

    host: str = "127.0.0.1"
    #: 0 picks a free port.
    port: int = 8000
    #: Access key ids and their secrets; None accepts requests with any signature or none.
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    #: Host names that a server without keys accepts besides loopback names and addresses; "*": all.
    allowed_hosts: tuple[str, ...] = ()
    #: The origin whose pages may call from a browser, or "*" for all; None allows no origin.
    cors_origin: str | None = None
    #: A request must be complete within this time of its first byte.
    request_seconds: float = 30.0
    #: The server closes a connection without requests after this time.
    idle_seconds: float = 120.0
    #: The limit on open connections; the system's limit on open files may lower it.
    connections: int = 4096
    #: The memory that the bodies of all requests may take together.
    body_budget_bytes: int = 256 * 1024 * 1024
    #: The interval between sweeps of expired items; 0 disables them.
    sweep_seconds: float = 60.0
    #: How long a shutdown waits for pending requests.
    grace_seconds: float = 10.0
    #: Called on the event loop with each answered request; None costs nothing.
    log: Callable[[RequestRecord], None] | None = None
