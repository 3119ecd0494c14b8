"""Paths of pages: one spelling of each, and none that belongs to the application itself."""

from __future__ import annotations

import re
import unicodedata

from solotable.systems.cms.errors import Refused

LONGEST = 300
#: DynamoDB: a sort key has up to 1024 bytes.
MOST_BYTES = 900
#: What is longer is no path however it is folded, and folding takes the square of a run of marks.
_LONGEST_TEXT = 4 * LONGEST
_TOO_LONG = f"A path has at most {LONGEST} characters and {MOST_BYTES} bytes."
#: Paths that shops and the application itself answer; a page there would be in the shadow, or cast one.
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
#: What cleaning leaves as it is; nearly all that is asked for.
_CLEAN = re.compile(r"/(?:[a-z0-9]+(?:[-/][a-z0-9]+)*)?")
_BETWEEN = re.compile(r"(?:[^\w/]|_)+")
_SLASHES = re.compile(r"/+")
_EDGES = re.compile(r"-*/-*")


def clean_slug(text: str) -> str:
    """Return a path as pages are kept under it: lower case, hyphens, a slash in front and none behind.

    >>> clean_slug("About Us!"), clean_slug("//Blog//Ünser 1. Post/"), clean_slug("/")
    ('/about-us', '/blog/ünser-1-post', '/')
    """
    if len(text) > _LONGEST_TEXT:
        raise Refused(_TOO_LONG)
    if len(text) <= LONGEST and _CLEAN.fullmatch(text):
        return text
    # Compatibility forms first, or a full-width slash would become one after the cleaning.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    hyphened = _BETWEEN.sub("-", folded)
    joined = _SLASHES.sub("/", _EDGES.sub("/", f"/{hyphened}"))
    slug = "/" + joined.strip("/-")
    if len(slug) > LONGEST or len(slug.encode()) > MOST_BYTES:
        raise Refused(_TOO_LONG)
    if slug == "/" and text.strip(" /"):
        raise Refused("There is no letter or digit that a path could be made of.")
    return slug


def free_slug(text: str) -> str:
    """Return the clean path of a page, or refuse one that is the application's own."""
    slug = clean_slug(text)
    first = slug[1:].partition("/")[0]
    if first in RESERVED:
        raise Refused(f"What begins with /{first} is not a page's; choose another path.")
    return slug


def product_slug(text: str) -> str:
    """Return the name of a product in a URL: one segment, cleaned as a path is.

    >>> product_slug("Blue Mug / 0.3 l")
    'blue-mug-0-3-l'
    """
    return "-".join(part for part in clean_slug(text).split("/") if part)
