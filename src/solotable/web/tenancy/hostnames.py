"""Canonical host names: lower case, ASCII by UTS 46, no port, no trailing dot."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

import idna

_CACHE_SIZE = 4096
_LONGEST_HOST = 253
#: Longer than the longest name with a port in any spelling.
_LONGEST_TEXT = 1100
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


def canonical_host(text: str) -> str | None:
    """Return the canonical form of a host name, None when the text does not hold one.

    >>> canonical_host("WWW.Example.ORG.:8080")
    'www.example.org'
    >>> canonical_host("münchen.example")
    'xn--mnchen-3ya.example'
    >>> canonical_host("[::1]:80")
    '[::1]'
    """
    # Long texts stay out of the cache.
    return None if len(text) > _LONGEST_TEXT else _canonical(text)


@lru_cache(_CACHE_SIZE)
def _canonical(text: str) -> str | None:
    name, colon, port = text.rpartition(":") if re.search(r":[0-9]*$", text) else (text, "", "")
    if colon and port and not 0 < int(port[:6]) < 65536:
        return None
    if name.startswith("["):
        return _address(name)
    name = name.lower().removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError:
            return None
    if len(name) > _LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return None
    return name


def _address(name: str) -> str | None:
    try:
        return f"[{ipaddress.IPv6Address(name.removeprefix('[').removesuffix(']')).compressed}]"
    except ValueError:
        return None
