"""Slugs: the normal form of page paths and product names, and the paths reserved for the API."""

from __future__ import annotations

import re
import unicodedata

from solotable.systems.errors import InvalidInput

MAX_LENGTH = 300
#: DynamoDB: a sort key has at most 1024 bytes, and the prefix of the key needs some.
MAX_BYTES = 900
#: No longer text can become a path, and normalising takes quadratic time for runs of combining marks.
_MAX_TEXT = 4 * MAX_LENGTH
_TOO_LONG = f"A path has at most {MAX_LENGTH} characters and {MAX_BYTES} bytes."
#: First segments of paths of the API, and of shops.
RESERVED = frozenset(
    {
        "account",
        "admin",
        "api",
        "assets",
        "audit",
        "cart",
        "category",
        "checkout",
        "comments",
        "consent",
        "consents",
        "content",
        "context",
        "docs",
        "erasures",
        "health",
        "leads",
        "messages",
        "openapi-json",
        "orders",
        "product",
        "products",
        "public",
        "redirects",
        "redoc",
        "resolve",
        "resources",
        "robots-txt",
        "routes",
        "settings",
        "shop",
        "signals",
        "sitemap-xml",
        "tenants",
        "users",
    }
)
#: Paths that are normal already: nearly all requests.
_NORMAL = re.compile(r"/(?:[a-z0-9]+(?:[-/][a-z0-9]+)*)?")
_SEPARATORS = re.compile(r"(?:[^\w/]|_)+")
_SLASHES = re.compile(r"/+")
_EDGES = re.compile(r"-*/-*")


def normalise_slug(text: str) -> str:
    """Return the normal form of a path: lower case, hyphens, a leading slash and no trailing one.

    >>> normalise_slug("About Us!"), normalise_slug("//Blog//Ünser 1. Post/"), normalise_slug("/")
    ('/about-us', '/blog/ünser-1-post', '/')
    """
    if len(text) > _MAX_TEXT:
        raise InvalidInput(_TOO_LONG)
    if len(text) <= MAX_LENGTH and _NORMAL.fullmatch(text):
        return text
    # Compatibility forms first, or a full-width slash would become a slash afterwards.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    hyphened = _SEPARATORS.sub("-", folded)
    joined = _SLASHES.sub("/", _EDGES.sub("/", f"/{hyphened}"))
    slug = "/" + joined.strip("/-")
    if len(slug) > MAX_LENGTH or len(slug.encode()) > MAX_BYTES:
        raise InvalidInput(_TOO_LONG)
    if slug == "/" and text.strip(" /"):
        raise InvalidInput("A path needs at least one letter or digit.")
    return slug


def page_slug(text: str) -> str:
    """Return the normal form of a page's path, or raise InvalidInput for a reserved one."""
    slug = normalise_slug(text)
    first = slug[1:].partition("/")[0]
    if first in RESERVED:
        raise InvalidInput(f"Paths that begin with /{first} are reserved; choose another one.")
    return slug


def product_slug(text: str) -> str:
    """Return the slug of a product: one segment in the normal form of a path.

    >>> product_slug("Blue Mug / 0.3 l")
    'blue-mug-0-3-l'
    """
    return "-".join(part for part in normalise_slug(text).split("/") if part)
