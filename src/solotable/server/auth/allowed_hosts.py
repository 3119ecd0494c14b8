"""Which Host headers a server without keys answers to.

A web page can point its host name at this machine (DNS rebinding) and then read and write here, as the
browser takes both for one site. Its requests carry that name as their Host. So only names that no page can
own are taken: loopback names, addresses, the name that the server listens on, and those that are allowed by
name. Signed requests need no such list: a page cannot sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from solotable.errors import ServiceError

#: Allows every name.
ANY = "*"
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::[0-9]{0,5})?[ \t]*")
_LONGEST = 255
_LOOPBACK = "localhost"
#: Clients use the same few names again and again.
_MOST_REMEMBERED = 64


class Hosts:
    """The names that a server answers to; None are all."""

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else {name.lower().rstrip(".") for name in names}
        if self._names is not None and ANY in self._names:
            self._names = None
        #: Host headers that were found to be allowed; browsers always send one.
        self.known: set[bytes | None] = {None}

    def check(self, host: bytes | None) -> None:
        """Return when the Host header is one that the server answers to; otherwise raise."""
        if self._names is None or host in self.known:
            return
        name = name_of(host or b"")
        if name is None:
            raise _denied("The Host header is not a host name.")
        if not (_is_address(name) or self._allows(name.lower().rstrip("."))):
            raise _denied(
                f"This server does not answer to the host name {name!r}. Without access keys it takes "
                "localhost, IP addresses and allowed names only, so that no web page reaches it through its "
                f"own host name. Start it with --allowed-host {name}, or with access keys."
            )
        if len(self.known) < _MOST_REMEMBERED:
            self.known.add(host)

    def _allows(self, name: str) -> bool:
        assert self._names is not None
        return name == _LOOPBACK or name.endswith(f".{_LOOPBACK}") or name in self._names


def name_of(host: bytes) -> str | None:
    """Return the name in a Host header without its port; None if it is not one."""
    found = _HOST.fullmatch(host) if len(host) <= _LONGEST else None
    return None if found is None else found[1].decode("ascii")


def echo(host: bytes | None) -> str:
    """Return a Host header for a reply: as it came, if it can be the name of a host."""
    return host.decode("ascii").rstrip() if host and name_of(host) is not None else _LOOPBACK


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _denied(message: str) -> ServiceError:
    return ServiceError("AccessDeniedException", message)
