"""The order of DynamoDB's comparable types (S, N, B), for comparison and as bytes for an index.

Strings and binaries sort by their bytes, numbers by value. Other types have no order.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Any, Final

from .number import ordered_number, read_ordered_number

ORDERED: Final = frozenset({"S", "N", "B"})


def sort_key(kind: str, content: str) -> Any:
    """Return an object that Python compares as DynamoDB compares values of this type."""
    if kind == "N":
        return Decimal(content)
    if kind == "B":
        return b64decode(content)
    # Code points sort as their UTF-8 bytes do.
    return content


def ordered_bytes(kind: str, content: str) -> bytes:
    """Return bytes that sort as the value does; no other value's bytes start with them.

    The bytes of several values can be joined, and still sort value by value.
    """
    if kind == "S":
        raw = content.encode()
        return (raw.replace(b"\x00", b"\x00\xff") if b"\x00" in raw else raw) + b"\x00\x00"
    if kind == "N":
        return ordered_number(content)
    return ordered_prefix(kind, content) + b"\x00\x00"


def read_ordered(kind: str, raw: bytes, start: int) -> tuple[str, int]:
    """Return the value whose ordered bytes start at an offset, and the offset after them."""
    if kind == "N":
        return read_ordered_number(raw, start)
    end = raw.index(b"\x00\x00", start)
    content = raw[start:end]
    if b"\x00" in content:
        content = content.replace(b"\x00\xff", b"\x00")
    return (content.decode() if kind == "S" else b64encode(content).decode()), end + 2


def ordered_prefix(kind: str, content: str) -> bytes:
    """Return the bytes that start the ordered bytes of every string or binary with this prefix."""
    raw = b64decode(content) if kind == "B" else content.encode()
    return raw.replace(b"\x00", b"\x00\xff") if b"\x00" in raw else raw
