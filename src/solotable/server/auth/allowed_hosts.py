"""Check the Host header of requests to a server without access keys.

A web page can point its host name at this machine (DNS rebinding); the browser then lets it read and write
here. Its requests carry that name in the Host header. So the server accepts only names that a page cannot
own: loopback names, IP addresses, the name that the server listens on, and names that the operator allows.
Signed requests need no such list: a page cannot sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from solotable.errors import ServiceError

#: Allows every name.
ANY = "*"
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{0,5})?[ \t]*")
_MAX_BYTES = 255
_LOOPBACK = "localhost"
#: Clients use few names.
_MAX_ACCEPTED = 64


class AllowedHosts:
    """The host names that a server accepts; None accepts all."""

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else {name.lower().rstrip(".") for name in names}
        if self._names is not None and ANY in self._names:
            self._names = None
        #: Host headers that passed the check; None, as browsers always send one.
        self.accepted: set[bytes | None] = {None}

    def check(self, host: bytes | None) -> None:
        """Raise AccessDeniedException if the server does not accept the Host header."""
        if self._names is None or host in self.accepted:
            return
        name = parse_host(host or b"")
        if name is None:
            raise _access_denied("The Host header is not a host name.")
        if not (_is_address(name) or self._allows(name.lower().rstrip("."))):
            raise _access_denied(
                f"This server does not accept the host name {name!r}. Without access keys it accepts only "
                "localhost, IP addresses and allowed names, so that no web page can reach it through DNS "
                f"rebinding. Start it with --allowed-host {name}, or with access keys."
            )
        if len(self.accepted) < _MAX_ACCEPTED:
            self.accepted.add(host)

    def _allows(self, name: str) -> bool:
        assert self._names is not None
        return name == _LOOPBACK or name.endswith(f".{_LOOPBACK}") or name in self._names


def parse_host(host: bytes) -> str | None:
    """Return the name in a Host header without its port; None if the header is invalid."""
    found = _HOST.fullmatch(host) if len(host) <= _MAX_BYTES else None
    return None if found is None else found[1].decode("ascii")


def echo_host(host: bytes | None) -> str:
    """Return the Host header as text for a reply; "localhost" if it is invalid."""
    return host.decode("ascii").rstrip() if host and parse_host(host) is not None else _LOOPBACK


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _access_denied(message: str) -> ServiceError:
    return ServiceError("AccessDeniedException", message)
