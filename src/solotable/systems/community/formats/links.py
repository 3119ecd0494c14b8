"""Links that users enter: web addresses only."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: Browsers remove tabs and newlines before they read a scheme, so `java\nscript:` would be one.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\"'<>\\^`{|}]")
_HOST = re.compile(r"[^\s/?#@:\[\]]{1,253}|\[[0-9a-fA-F:.]{2,45}\]")


def check_link(link: str) -> str:
    """Return a link, or raise ValueError unless it is a web address.

    >>> check_link("https://example.org/a?b=c#d")
    'https://example.org/a?b=c#d'
    >>> check_link("javascript:alert(1)")
    Traceback (most recent call last):
    ValueError: must begin with https:// or http://
    """
    if _FORBIDDEN.search(link):
        raise ValueError("must not have spaces, quotes or control characters")
    try:
        parts = urlsplit(link)
        host, port = parts.netloc, parts.port
    except ValueError:
        raise ValueError("is not a web address") from None
    if parts.scheme not in ("http", "https") or not link.lower().startswith(f"{parts.scheme}://"):
        raise ValueError("must begin with https:// or http://")
    if "@" in host:
        raise ValueError("must not have a user name or a password")
    name = host if port is None else host.rpartition(":")[0]
    if not _HOST.fullmatch(name):
        raise ValueError("has no valid host")
    return link
