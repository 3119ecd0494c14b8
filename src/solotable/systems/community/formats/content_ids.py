"""Content ids of records: CIDv1, codec `json`, SHA-256 of the canonical JSON of the value.

Repositories of AT Protocol use the codec `dag-cbor`. So this id identifies a value here, in exports and in
chains of versions, but it differs from the id that a repository gives the same value.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from solotable.systems.errors import InvalidInput

#: CID version 1, the multicodec `json` (0x0200) as a varint, the multihash `sha2-256` with 32 bytes.
_PREFIX = bytes((0x01, 0x80, 0x04, 0x12, 0x20))
#: JSON numbers beyond these differ between programs, and AT Protocol has no fractions.
_MAX_INTEGER = 2**53 - 1


def content_id(value: Any) -> str:
    """Return the id of a JSON value.

    >>> content_id({"b": 1, "a": "x"}) == content_id({"a": "x", "b": 1})
    True
    >>> content_id({})[:8]
    'bagaaier'
    """
    digest = hashlib.sha256(canonical_json(value)).digest()
    return "b" + base64.b32encode(_PREFIX + digest).decode().rstrip("=").lower()


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted names and no spaces; raise InvalidInput for fractions and large integers."""
    _check(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def _check(value: Any) -> None:
    match value:
        case dict():
            for each in value.values():
                _check(each)
        case list():
            for each in value:
                _check(each)
        case bool() | None | str():
            pass
        case int():
            if abs(value) > _MAX_INTEGER:
                raise InvalidInput("value: has an integer beyond 2^53, which JSON does not keep; use a text.")
        case _:
            raise InvalidInput("value: has a number with a fraction, which AT Protocol does not allow.")
