"""Sealed cursors: the end of a page, bound to its query, tenant, table and direction.

A client can read a cursor (it is the key of the last row). It cannot change it, use it for another query
or tenant, or use it after it has expired.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from solotable._protocol.json_codec import dumps, loads
from solotable._values import Item
from solotable.errors import CursorRejected, DeclarationError

_VERSION = 1
_DIGEST_BYTES = 32
_SHORTEST_SECRET = 16
#: The longest key of an index and its table fits: ten attributes, 15 KB, six times that in escaped JSON.
LONGEST_CURSOR = 131_072
_REJECTED = (
    "This cursor is not one of this query's: it was changed, has expired, or belongs elsewhere; "
    "start again without it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealer:
    """Seals with the first secret and opens with any, so that secrets can be rotated."""

    secrets: Sequence[bytes]
    clock: Callable[[], float]
    lifetime_seconds: float = 7 * 24 * 3600

    def __post_init__(self) -> None:
        if not self.secrets or any(len(secret) < _SHORTEST_SECRET for secret in self.secrets):
            raise DeclarationError(f"A cursor secret has at least {_SHORTEST_SECRET} bytes.")

    def seal(self, key: Item, bound_to: bytes) -> str:
        """Return the cursor of a key, good for what it is bound to."""
        body = dumps([_VERSION, int(self.clock() + self.lifetime_seconds), key])
        return urlsafe_b64encode(self._mac(self.secrets[0], body, bound_to) + body).rstrip(b"=").decode()

    def open(self, cursor: str, bound_to: bytes) -> Item:
        """Return the key of a cursor, or reject it without saying why."""
        raw = _decoded(cursor)
        mac, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        # Every secret is tried, so that the time does not show which one fits.
        fits = [hmac.compare_digest(mac, self._mac(secret, body, bound_to)) for secret in self.secrets]
        if not any(fits):
            raise CursorRejected(_REJECTED)
        content: list[Any] = loads(body)
        version, until, key = content
        if version != _VERSION or self.clock() > until:
            raise CursorRejected(_REJECTED)
        found: Item = key
        return found

    @staticmethod
    def _mac(secret: bytes, body: bytes, bound_to: bytes) -> bytes:
        return hmac.digest(secret, sha256(bound_to).digest() + body, "sha256")


def _decoded(cursor: str) -> bytes:
    if len(cursor) > LONGEST_CURSOR:
        raise CursorRejected(_REJECTED)
    try:
        text = cursor.encode("ascii")
        raw = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except ValueError:
        raise CursorRejected(_REJECTED) from None
    # Base64 has several spellings of the same bytes; only the one that `seal` writes is accepted.
    if urlsafe_b64encode(raw).rstrip(b"=") != text:
        raise CursorRejected(_REJECTED)
    return raw
