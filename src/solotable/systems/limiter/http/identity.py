"""Entity names from requests. Two clients never get the same name, whatever they send.

A text that is a valid name, and does not look like a digest, is the name; any other is replaced by its
digest. The address is the one that the server gives: a client can write anything into `X-Forwarded-For`. Name
the trusted proxies: `install(trusted_hosts=...)`, or uvicorn's `--forwarded-allow-ips` without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from solotable.errors import DataError
from solotable.systems.limiter.admin.names import entity_name

AsgiScope = MutableMapping[str, Any]
#: From a request to a text that identifies its client; None is not limited.
Identify = Callable[[AsgiScope], str | Awaitable[str | None] | None]

_DIGEST = "sha256:"


def entity_of(text: str) -> str:
    """Return the entity name of a text.

    >>> entity_of("ann@example.org"), entity_of("Zoë")
    ('ann@example.org', 'sha256:c6a12698582fc1104ea24107a2d7268145ff06ef85970772')
    """
    if not text.startswith(_DIGEST):
        try:
            return entity_name(text)
        except DataError:
            pass
    return f"{_DIGEST}{_digest(text)}"


def by_address(scope: AsgiScope) -> str:
    """Identify a client by its address; clients of a socket without addresses are one.

    An IPv6 address counts as its network of 64 bits: a client with one address has all of these.

    >>> by_address({"client": ("192.0.2.7", 1)}), by_address({"client": ("2001:db8:0:1:aaaa::7", 1)})
    ('ip:192.0.2.7', 'ip:2001:db8:0:1::')
    """
    client = scope.get("client")
    return f"ip:{_network(client[0]) if client else 'none'}"


# Few clients send most requests.
@lru_cache(maxsize=4096)
def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address  # the server's own name for it, such as that of a test client
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if found.is_link_local or found.is_loopback:
        return address  # neighbours share these networks
    return str(IPv6Address(int(found) >> 64 << 64))


def by_header(name: str) -> Callable[[AsgiScope], str]:
    """Identify a client by the digest of a header, as an API key; without the header by its address.

    Nothing is verified: use it behind a layer that verifies keys, or clients make up new ones.
    """
    wanted = name.lower().encode("latin-1")

    def identify(scope: AsgiScope) -> str:
        given = [value for header, value in scope["headers"] if header == wanted]
        return header_entity(given[0]) if len(given) == 1 else by_address(scope)

    return identify


def header_entity(value: str | bytes) -> str:
    """Return the entity of a header's value, as `by_header` names it."""
    return f"key:{_digest(value)}"


def address_entity(address: str) -> str:
    """Return the entity of a client's address, as `by_address` names it."""
    return entity_of(by_address({"client": (address, 0)}))


def _digest(text: str | bytes) -> str:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:48]
