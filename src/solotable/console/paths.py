"""URLs of the console: segments that carry any key, and the paths of pages. Reads no request."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, unquote, urlencode

from solotable._values import Item, canonical_number
from solotable.errors import DataError

#: Segments that a browser, or the console itself, would read in another way.
_SPECIAL = frozenset({"", ".", "..", "-"})
_JSON = ".json"


def encode_segment(text: str) -> str:
    """Return a text as one segment of a path; `decode_segment` returns the text.

    >>> encode_segment("ORDER#1/2"), encode_segment(".."), decode_segment(encode_segment("a.json"))
    ('ORDER%231%2F2', '~..~', 'a.json')
    """
    if text in _SPECIAL or text.startswith("~") or text.endswith(_JSON):
        text = f"~{text}~"
    return quote(text, safe="")


def decode_segment(segment: str) -> str:
    """Return the text of a segment, or raise DataError if it is not UTF-8."""
    try:
        text = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise DataError("The address is not UTF-8; copy it from a page of the console.") from None
    return text[1:-1] if text.startswith("~") and text.endswith("~") and len(text) > 1 else text


def encode_key(kind: str, value: str) -> str:
    """Return a key attribute's wire text as a segment; a binary key is written in the alphabet of URLs."""
    return encode_segment(value.replace("+", "-").replace("/", "_") if kind == "B" else value)


def decode_key(kind: str, text: str) -> dict[str, str]:
    """Return the attribute value of a key in a URL; raise SolotableError for a wrong one."""
    if kind == "N":
        return {kind: canonical_number(text)}
    if kind != "B":
        return {kind: text}
    plain = text.replace("-", "+").replace("_", "/")
    try:
        base64.b64decode(plain, validate=True)
    except ValueError:
        raise DataError(f"The key {text!r} is not base64, which a binary key is written in.") from None
    return {kind: plain}


def encode_start(key: Item) -> str:
    """Return a start key for the parameter `after`."""
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_start(text: str) -> Item:
    """Return the start key of the parameter `after`, or raise DataError."""
    try:
        padded = text + "=" * (-len(text) % 4)
        found = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (ValueError, UnicodeError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise DataError("after= is not a position of a page; open the first page again.")
    return found


def with_query(path: str, **parameters: Any) -> str:
    """Return a path with the parameters that have a value.

    >>> with_query("/t/Shop", tenant="acme", after=None, sequence=0)
    '/t/Shop?tenant=acme&sequence=0'
    """
    # Not `in`: 0 equals False.
    given = {
        name: str(value)
        for name, value in parameters.items()
        if value is not None and value is not False and value != ""
    }
    return f"{path}?{urlencode(given)}" if given else path
