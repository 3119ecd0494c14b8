"""Host names: their one canonical form, and which tenant owns one, cached.

The `Host` header is what a client says, so it opens only what is public of a tenant.
`X-Forwarded-Host`, `-Proto` and `-For` are read only from the addresses that the app trusts.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable

from fastapi import HTTPException, Request
from starlette.types import Scope

from solotable._store import AsyncDatabase
from solotable.errors import DeclarationError

from .hostnames import canonical_host

#: From a canonical host name to its tenant, None when nobody owns it.
ResolveHost = Callable[[AsyncDatabase, str], Awaitable[str | None]]

#: Where the edge keeps the address that a request came from, in the state of its scope.
PEER = "peer"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORT = re.compile(r"[0-9]{1,5}")
#: An address of an X-Forwarded-For, some proxies append the port: `192.0.2.7:5000`, `[2001:db8::7]:5000`.
_WITH_PORT = re.compile(r"(?:\[(.+)\]|([0-9.]+))(?::[0-9]{1,5})?")


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


def _address(text: str) -> Address | None:
    with_port = _WITH_PORT.fullmatch(text)
    try:
        found = ipaddress.ip_address(text if with_port is None else with_port[1] or with_port[2])
    except ValueError:
        return None
    # A socket of both families sees IPv4 peers as ::ffff:192.0.2.7.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


class Proxies:
    """The addresses whose `X-Forwarded-Host`, `-Proto` and `-For` are believed; none by default."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        try:
            self._networks = [ipaddress.ip_network(each) for each in trusted]
        except ValueError as refused:
            raise DeclarationError(f"trusted_hosts are IP addresses or networks: {refused}.") from refused

    def host_of(self, request: Request) -> str | None:
        """Return the canonical host that a request is for, None when it names none or several."""
        given = self._given(request.scope)
        return None if given is None else canonical_host(given)

    def port_of(self, request: Request) -> int | None:
        """Return the port that the client asked, None when it named none."""
        port = (self._given(request.scope) or "").rpartition(":")[2]
        return int(port) if _PORT.fullmatch(port) else None

    def scheme_of(self, scope: Scope) -> str | None:
        """Return the scheme that a proxy says the client used, None when none that is trusted says so."""
        if not self._trusts(scope):
            return None
        said = _values(scope, b"x-forwarded-proto")
        return said[0].decode() if said in ([b"http"], [b"https"]) else None

    def client_of(self, scope: Scope) -> tuple[str, int] | None:
        """Return the client's address: the last in `X-Forwarded-For` that is not a trusted proxy's.

        Each proxy appends the address that it was asked from, so only entries that trusted proxies wrote
        count. Without a trusted proxy, or with an entry that is no address, it is the peer's own.
        """
        peer: tuple[str, int] | None = scope.get("client")
        if not self._trusts(scope):
            return peer
        entries = b",".join(_values(scope, b"x-forwarded-for")).decode("latin-1").split(",")
        found = peer
        for entry in reversed(entries):
            address = _address(entry.strip())
            if address is None:
                break
            found = (str(address), 0)
            if not self._contains(address):
                break
        return found

    def _given(self, scope: Scope) -> str | None:
        names = _values(scope, b"host")
        if self._trusts(scope):
            names = _values(scope, b"x-forwarded-host") or names
        try:
            # Names that are not ASCII are sent as UTF-8.
            return names[0].decode() if len(names) == 1 else None
        except UnicodeError:
            return None

    def _trusts(self, scope: Scope) -> bool:
        # The edge replaces the client by the one that a proxy names, and keeps the peer.
        peer = scope.get("state", {}).get(PEER, scope.get("client"))
        if not self._networks or peer is None:
            return False
        address = _address(peer[0])
        return address is not None and self._contains(address)

    def _contains(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


class HostTenants:
    """Which tenant owns a host name: asked of the app's resolver, and remembered.

    Owned and unowned names are kept apart, so that made-up names drive out no real one.
    """

    def __init__(
        self,
        resolve: ResolveHost,
        *,
        proxies: Proxies,
        ttl_seconds: float = 300.0,
        unknown_ttl_seconds: float = 30.0,
        most: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resolve = resolve
        self._proxies = proxies
        self._ttls = {True: ttl_seconds, False: unknown_ttl_seconds}
        self._most = most
        self._clock = clock
        self._kept: dict[bool, OrderedDict[str, tuple[float, str | None]]] = {
            True: OrderedDict(),
            False: OrderedDict(),
        }
        self._asking: dict[str, asyncio.Future[str | None]] = {}
        self._generation = 0

    async def tenant(self, request: Request, database: AsyncDatabase) -> str:
        """Return the tenant that a request's host belongs to, or refuse."""
        host = self._proxies.host_of(request)
        if host is None:
            raise HTTPException(400, "The Host header is no host name.")
        owner = await self.owner(database, host)
        if owner is None:
            raise HTTPException(404, "No site has this host name.")
        return owner

    def port_of(self, request: Request) -> int | None:
        """Return the port that a request's host was asked at, None for that of its scheme."""
        return self._proxies.port_of(request)

    async def owner(self, database: AsyncDatabase, host: str) -> str | None:
        """Return the owner of a canonical host name, from memory while it is fresh."""
        now = self._clock()
        for kept in self._kept.values():
            known = kept.get(host)
            if known is not None and now < known[0]:
                kept.move_to_end(host)
                return known[1]
        asking = self._asking.get(host)
        if asking is None or asking.get_loop() is not asyncio.get_running_loop():
            asking = asyncio.ensure_future(self._ask(database, host))
            self._asking[host] = asking
            asking.add_done_callback(lambda done: self._asked(host, done))
        # One caller that gives up must not take the answer from the others.
        return await asyncio.shield(asking)

    def forget(self, host: str | None = None) -> None:
        """Forget one host name, or all: after a domain has changed hands."""
        self._generation += 1
        for kept in self._kept.values():
            if host is None:
                kept.clear()
            else:
                kept.pop(host, None)

    async def _ask(self, database: AsyncDatabase, host: str) -> str | None:
        generation = self._generation
        owner = await self._resolve(database, host)
        if generation == self._generation:
            self._keep(host, owner)
        return owner

    def _asked(self, host: str, done: asyncio.Future[str | None]) -> None:
        if self._asking.get(host) is done:
            del self._asking[host]

    def _keep(self, host: str, owner: str | None) -> None:
        owned = owner is not None
        self._kept[not owned].pop(host, None)
        kept = self._kept[owned]
        kept[host] = (self._clock() + self._ttls[owned], owner)
        kept.move_to_end(host)
        while len(kept) > self._most:
            kept.popitem(last=False)
