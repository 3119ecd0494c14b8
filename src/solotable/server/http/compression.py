"""Content-Encoding of request and reply bodies: gzip and deflate, within a size limit.

`inflate` stops at the limit, so a small body cannot expand without bound. It undoes one layer of encoding
and rejects bytes after the compressed data.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

from solotable.errors import ServiceError

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_START = b"\x1f\x8b"
#: Each member costs a copy of those after it.
_MAX_MEMBERS = 64
# DynamoDB: shorter replies are sent as they are.
_SMALLEST_COMPRESSED = 4096
_WEIGHT = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")


class TooLarge(Exception):
    """The inflated body exceeds the limit of a request."""


def inflate(body: bytes, encoding: str, largest: int) -> bytes:
    """Return the body without its Content-Encoding; raise TooLarge beyond the limit."""
    match encoding:
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, largest)
        case "deflate":
            # The RFC means zlib's format; some software sends the bare one.
            window = zlib.MAX_WBITS if _is_zlib(body) else -zlib.MAX_WBITS
            inflated, rest = _inflate(body, window, largest)
            if rest:
                raise _unreadable()
            return inflated
        case _:
            raise _unreadable()


def _gunzip(body: bytes, largest: int) -> bytes:
    # DynamoDB: several members, one after the other, are one body.
    whole, rest = _inflate(body, _GZIP, largest)
    if not rest:
        return whole
    members = [whole]
    left = largest - len(whole)
    while rest:
        # DynamoDB ignores junk after the last member; this server rejects it.
        if not rest.startswith(_GZIP_START) or len(members) == _MAX_MEMBERS:
            raise _unreadable()
        member, rest = _inflate(rest, _GZIP, left)
        left -= len(member)
        members.append(member)
    return b"".join(members)


def _inflate(body: bytes, window: int, largest: int) -> tuple[bytes, bytes]:
    stream = zlib.decompressobj(window)
    try:
        inflated = stream.decompress(body, largest + 1)
    except zlib.error:
        raise _unreadable() from None
    if len(inflated) > largest:
        raise TooLarge
    if not stream.eof:
        raise _unreadable()
    return inflated, stream.unused_data


def _is_zlib(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0


def _unreadable() -> ServiceError:
    # DynamoDB answers 500 to a body that it cannot inflate, which SDKs retry for no gain.
    return ServiceError("SerializationException", "")


@lru_cache(maxsize=64)
def choose(accepted: str) -> str:
    """Return the encoding of the reply for an Accept-Encoding header: gzip, deflate or "".

    >>> choose("deflate;q=0.5, gzip;q=0.2"), choose("*"), choose("br")
    ('deflate', 'gzip', '')
    """
    offers: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, _, parameters = part.partition(";")
        name = name.strip()
        offers[name] = max(offers.get(name, 0.0), _weight(parameters))
    other = offers.get("*", 0.0)
    best, most = "", 0.0
    # DynamoDB: the highest weight wins, then the first name, then gzip; `identity` is ignored.
    for name in [*offers, "gzip", "deflate"]:
        weight = offers.get(name, other)
        if name in ("gzip", "deflate") and weight > most:
            best, most = name, weight
    return best


def _weight(parameters: str) -> float:
    """Return the weight of an offer; 1 if it has none that DynamoDB can parse."""
    _, found, text = parameters.partition("q=")
    text = text.partition(";")[0].strip()
    if found and text.startswith("-"):
        return 0.0
    return min(float(text), 1.0) if found and _WEIGHT.fullmatch(text) else 1.0


def deflate(pieces: list[bytes], encoding: str) -> tuple[list[bytes], str]:
    """Return the encoded body and its encoding; a small body stays unencoded."""
    if sum(map(len, pieces)) < _SMALLEST_COMPRESSED:
        return pieces, ""
    window = _GZIP if encoding == "gzip" else zlib.MAX_WBITS
    stream = zlib.compressobj(1, zlib.DEFLATED, window)
    return [*map(stream.compress, pieces), stream.flush()], encoding
