"""Binary frames of compressed and encrypted values, and the codec of compressed fields.

A frame is a B value: three magic bytes, a format byte, and a payload. A value without the magic bytes is a
plain value, which was stored before the field was marked, or which compression would not make smaller.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import replace
from typing import Any, Final

from solotable._entities.codecs.containers import Codec, FieldSite
from solotable._entities.declare.field_storage import Compressed
from solotable._values import AttributeValue, levels, value_size
from solotable._values.canonical import TYPES
from solotable._values.limits import DEEPEST_VALUE
from solotable.errors import DataError, StoredDataError

_MAGIC: Final = b"\xd5ZS"
#: Formats of frames; stored items have them, so a number never changes its meaning.
RAW, ZLIB, CIPHER = 0, 1, 2
#: zlib adds 11 bytes and a frame 5, so a smaller value is not worth the attempt.
_SMALLEST: Final = 48
_TEXT, _BYTES, _JSON = b"S", b"B", b"J"


def pack(value: AttributeValue) -> bytes:
    """Return a DynamoDB value as bytes."""
    ((kind, content),) = value.items()
    if kind == "S":
        return _TEXT + str(content).encode()
    if kind == "B":
        return _BYTES + b64decode(content)
    return _JSON + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def unpack(data: bytes) -> AttributeValue:
    """Return the DynamoDB value of `pack`; raise ValueError for other bytes."""
    kind, content = data[:1], data[1:]
    if kind == _TEXT:
        return {"S": content.decode()}
    if kind == _BYTES:
        return {"B": b64encode(content).decode("ascii")}
    if kind == _JSON:
        found = json.loads(content)
        if not isinstance(found, dict) or len(found) != 1 or found.keys().isdisjoint(TYPES):
            raise ValueError("its content is not a DynamoDB value")
        return found
    raise ValueError(f"its content has the unknown type {kind!r}")


def frame(form: int, payload: bytes) -> AttributeValue:
    """Return a payload as a framed B value."""
    return {"B": b64encode(_MAGIC + bytes((form,)) + payload).decode("ascii")}


def unframe(value: AttributeValue) -> tuple[int, bytes] | None:
    """Return the format and the payload of a frame; None for a plain value."""
    content = value.get("B")
    if content is None:
        return None
    data = b64decode(content)
    return (data[3], data[4:]) if data.startswith(_MAGIC) and len(data) > len(_MAGIC) else None


def compressed_codec(site: FieldSite, codec: Codec, marker: Compressed) -> Codec:
    """Return the codec of a field that is stored compressed if that is smaller."""
    where, largest, level = site.where, marker.max_bytes, marker.level

    def encode(value: Any) -> AttributeValue | None:
        plain = codec.encode(value)
        if plain is None or (size := value_size(plain)) < _SMALLEST:
            return plain if plain is None or unframe(plain) is None else frame(RAW, pack(plain))
        if levels(plain) >= DEEPEST_VALUE:
            # As deep as the field may be without the marker, so that it can be removed again.
            raise DataError(
                f"{where} has lists and maps more than {DEEPEST_VALUE - 1} levels deep; flatten it."
            )
        packed = pack(plain)
        if len(packed) > largest:
            raise DataError(
                f"{where} has {len(packed):,} bytes before compression, but max_bytes is {largest:,}; "
                f"raise Compressed(max_bytes=...) or shorten the value."
            )
        found = frame(ZLIB, zlib.compress(packed, level))
        if value_size(found) < size:
            return found
        # A plain bytes value that looks like a frame must not be decoded as one.
        return plain if unframe(plain) is None else frame(RAW, packed)

    def decode(value: AttributeValue) -> Any:
        plain = expand(value, where, largest)
        if plain is value:
            return codec.decode(value)
        try:
            return codec.decode(plain)
        except (ArithmeticError, AttributeError, KeyError, TypeError) as error:
            # DynamoDB checks the values of an item, but not what a frame contains.
            raise StoredDataError(
                f"{where} cannot decode its stored compressed value: its content is not a DynamoDB value."
            ) from error

    return replace(codec, kind=None, encode=encode, decode=decode, scalar=None)


def expand(value: AttributeValue, where: str, largest: int) -> AttributeValue:
    """Return the plain value of a compressed one."""
    found = unframe(value)
    if found is None:
        return value
    form, payload = found
    try:
        if form == ZLIB:
            payload = _inflate(payload, largest)
        elif form != RAW:
            raise ValueError(f"it has the format {form}, which this release does not know")
        return unpack(payload)
    except (ValueError, RecursionError, zlib.error) as error:
        raise StoredDataError(f"{where} cannot decode its stored compressed value: {error}.") from error


def _inflate(data: bytes, largest: int) -> bytes:
    inflater = zlib.decompressobj()
    # Stop at the limit: a stored value of 400 KB can expand to 400 MB.
    found = inflater.decompress(data, largest + 1)
    if len(found) > largest:
        raise ValueError(f"it expands to more than max_bytes ({largest:,})")
    if not inflater.eof:
        raise ValueError("it is cut short")
    return found
