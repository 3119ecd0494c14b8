"""Forwarded headers: the host, scheme and address of a client behind trusted proxies.

`X-Forwarded-Host`, `-Proto` and `-For` count only when the peer's address is in the trusted networks.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from fastapi import Request
from starlette.types import Scope

from solotable.errors import DeclarationError

from .hostnames import canonical_host

#: The name of the peer's address in the state of a scope; the middleware writes it.
PEER = "peer"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORT = re.compile(r"[0-9]{1,5}")
#: Some proxies append the port in X-Forwarded-For: `192.0.2.7:5000`, `[2001:db8::7]:5000`.
_WITH_PORT = re.compile(r"(?:\[(.+)\]|([0-9.]+))(?::[0-9]{1,5})?")


def _values(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name == wanted]


def _address(text: str) -> Address | None:
    with_port = _WITH_PORT.fullmatch(text)
    try:
        found = ipaddress.ip_address(text if with_port is None else with_port[1] or with_port[2])
    except ValueError:
        return None
    # A dual-stack socket reports IPv4 peers as ::ffff:192.0.2.7.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found if mapped is None else mapped


class TrustedProxies:
    """The networks of proxies that the app trusts; none by default."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        try:
            self._networks = [ipaddress.ip_network(each) for each in trusted]
        except ValueError as error:
            raise DeclarationError(f"trusted_hosts takes IP addresses or networks: {error}.") from error

    def host_of(self, request: Request) -> str | None:
        """Return the canonical host name of a request, None without exactly one Host header."""
        given = self._given(request.scope)
        return None if given is None else canonical_host(given)

    def port_of(self, request: Request) -> int | None:
        """Return the port in the Host header, None when it has none."""
        port = (self._given(request.scope) or "").rpartition(":")[2]
        return int(port) if _PORT.fullmatch(port) else None

    def scheme_of(self, scope: Scope) -> str | None:
        """Return the client's scheme from a trusted proxy, None without one."""
        if not self._trusts(scope):
            return None
        given = _values(scope, b"x-forwarded-proto")
        return given[0].decode() if given in ([b"http"], [b"https"]) else None

    def client_of(self, scope: Scope) -> tuple[str, int] | None:
        """Return the client's address: the last in `X-Forwarded-For` that is not a trusted proxy's.

        Each proxy appends the address of its peer, so entries count only as far as trusted proxies
        wrote them. The search ends at an entry that is not an address. Without a trusted proxy the peer is
        the client.
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
            # Clients send names outside ASCII as UTF-8.
            return names[0].decode() if len(names) == 1 else None
        except UnicodeError:
            return None

    def _trusts(self, scope: Scope) -> bool:
        # The middleware replaces `client` by the forwarded address, and saves the peer in the state.
        peer = scope.get("state", {}).get(PEER, scope.get("client"))
        if not self._networks or peer is None:
            return False
        address = _address(peer[0])
        return address is not None and self._contains(address)

    def _contains(self, address: Address) -> bool:
        return any(address in network for network in self._networks)
