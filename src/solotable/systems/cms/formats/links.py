"""The links in free JSON: values of names such as `href`, `ctaLink` or `buttonUrl`.

Only links within the site count: a path, or a URL with the site's host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from solotable.errors import DataError
from solotable.web import canonical_host

from .slugs import normalise_slug

_NAMES = re.compile(r"(?:href|link|url|to)$", re.IGNORECASE)
#: The depth of stored trees.
_MAX_DEPTH = 64
_LONGEST = 2000


def links_in(tree: Any, domain: str | None = None) -> set[str]:
    """Return the paths of the site that a JSON tree links to, normalised.

    >>> sorted(links_in([{"marks": [{"href": "/About Us?x#y"}]}, {"ctaLink": "https://a.org/b"}], "a.org"))
    ['/about-us', '/b']
    """
    found = (path_of(text, domain) for text in _texts(tree, 0))
    return {path for path in found if path is not None}


def _texts(tree: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(tree, dict):
        for name, value in tree.items():
            if isinstance(value, str):
                if _NAMES.search(name):
                    yield value
            else:
                yield from _texts(value, depth + 1)
    elif isinstance(tree, list):
        for each in tree:
            yield from _texts(each, depth + 1)


def path_of(link: str, domain: str | None) -> str | None:
    """Return the normalised path of a link within the site; None for any other link."""
    try:
        parts = urlsplit(link.strip()) if len(link) <= _LONGEST else None
        if parts is None or parts.scheme not in ("", "http", "https"):
            return None
        if parts.netloc and (domain is None or canonical_host(parts.netloc.rpartition("@")[2]) != domain):
            return None
        if not parts.path.startswith("/"):
            # Relative links have no base here; a bare host is the home page.
            return "/" if parts.netloc and not parts.path else None
        return normalise_slug(unquote(parts.path))
    except (ValueError, DataError):
        return None
