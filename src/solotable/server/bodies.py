"""Bodies of requests and replies as they travel: gzip and deflate, and never more than is allowed.

A body is inflated only as far as the limit, so a small request cannot become a large one. One layer
is undone, and what follows the compressed data is refused.
"""

from __future__ import annotations

import zlib

from solotable.errors import ServiceError

_GZIP = 16 + zlib.MAX_WBITS
#: Compressing less saves nothing on the way and costs time.
_SMALLEST_COMPRESSED = 1024
_UNREADABLE = ServiceError("SerializationException", "")


class TooLarge(Exception):
    """The body, once inflated, is larger than a request may be."""


def inflate(body: bytes, encoding: str, largest: int) -> bytes:
    """Return the body without its Content-Encoding; raise TooLarge beyond the limit."""
    match encoding:
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _inflate(body, _GZIP, largest)
        case "deflate":
            # The RFC means zlib's format; much software sends the bare one.
            window = zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS
            return _inflate(body, window, largest)
        case _:
            raise ServiceError("SerializationException", "")


def _inflate(body: bytes, window: int, largest: int) -> bytes:
    stream = zlib.decompressobj(window)
    try:
        inflated = stream.decompress(body, largest + 1)
    except zlib.error:
        raise ServiceError("SerializationException", "") from None
    if len(inflated) > largest:
        raise TooLarge
    if not stream.eof or stream.unused_data:
        raise ServiceError("SerializationException", "")
    return inflated


def choose(accepted: str) -> str:
    """Return the encoding to send, by an Accept-Encoding header: gzip, deflate or none."""
    offers = {}
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        offers[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    for name in ("gzip", "deflate"):
        if offers.get(name, offers.get("*", False)):
            return name
    return ""


def deflate(body: bytes, encoding: str) -> tuple[bytes, str]:
    """Return the body in the encoding, and the encoding it has; a small body stays as it is."""
    if not encoding or len(body) < _SMALLEST_COMPRESSED:
        return body, ""
    window = _GZIP if encoding == "gzip" else zlib.MAX_WBITS
    stream = zlib.compressobj(1, zlib.DEFLATED, window)
    return stream.compress(body) + stream.flush(), encoding
