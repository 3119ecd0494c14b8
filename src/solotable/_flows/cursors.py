"""Signed cursors: the end of a page, bound to its query, tenant, table and direction.

A client can read a cursor, which holds the key of the last row. The signature prevents a client from
changing it, from using it for another query or tenant, and from using it after it has expired.
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
from solotable.errors import CursorRejected, DataError, DeclarationError

_VERSION = 1
_DIGEST_BYTES = 32
_SHORTEST_SECRET = 16
#: Large enough for the longest index key: ten attributes of 15 KB in total, six times as long when escaped.
LONGEST_CURSOR = 131_072
_REJECTED = (
    "Invalid cursor: it was changed, has expired, or belongs to another query or tenant; "
    "start again without a cursor."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorSigner:
    """Signs with the first secret and verifies with all, so that secrets can be rotated."""

    secrets: Sequence[bytes]
    clock: Callable[[], float]
    lifetime_seconds: float = 7 * 24 * 3600

    def __post_init__(self) -> None:
        if not self.secrets or any(len(secret) < _SHORTEST_SECRET for secret in self.secrets):
            shortest = min(map(len, self.secrets), default=None)
            found = "got none" if shortest is None else f"got one of {shortest} bytes"
            raise DeclarationError(
                f"cursor_secrets takes secrets of at least {_SHORTEST_SECRET} bytes, {found}; "
                f"make one with secrets.token_bytes(32)."
            )

    def sign(self, key: Item | None, bound_to: bytes) -> str:
        """Return the cursor of a key; `verify` accepts it only with the same `bound_to`.

        The cursor of None is the start of the range.
        """
        body = dumps([_VERSION, int(self.clock() + self.lifetime_seconds), key])
        return urlsafe_b64encode(self._mac(self.secrets[0], body, bound_to) + body).rstrip(b"=").decode()

    def verify(self, cursor: str, bound_to: bytes) -> Item:
        """Return the key of a cursor; raise CursorRejected, with one text for every cause."""
        key, _ = self.verify_any(cursor, (bound_to,))
        if key is None:
            raise CursorRejected(_REJECTED)
        return key

    def verify_any(self, cursor: str, bound_to: Sequence[bytes]) -> tuple[Item | None, int]:
        """Return the key of a cursor, and the position of what it is bound to; raise CursorRejected."""
        raw = _decode(cursor)
        mac, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
        # Try every secret, so that the duration does not show which one matches.
        matches = [
            at
            for at, bound in enumerate(bound_to)
            for secret in self.secrets
            if hmac.compare_digest(mac, self._mac(secret, body, bound))
        ]
        if not matches:
            raise CursorRejected(_REJECTED)
        content: list[Any] = loads(body)
        version, expires_at, key = content
        if version != _VERSION or self.clock() > expires_at:
            raise CursorRejected(_REJECTED)
        last_key: Item | None = key
        return last_key, matches[0]

    @staticmethod
    def _mac(secret: bytes, body: bytes, bound_to: bytes) -> bytes:
        return hmac.digest(secret, sha256(bound_to).digest() + body, "sha256")


def _decode(cursor: str) -> bytes:
    given: object = cursor
    if not isinstance(given, str):
        raise DataError(f"cursor= takes the text of a page's cursor, got {type(given).__name__}.")
    if len(cursor) > LONGEST_CURSOR:
        raise CursorRejected(_REJECTED)
    try:
        text = cursor.encode("ascii")
        raw = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except ValueError:
        raise CursorRejected(_REJECTED) from None
    # Base64 has several spellings of the same bytes; accept only the one that `sign` writes.
    if urlsafe_b64encode(raw).rstrip(b"=") != text:
        raise CursorRejected(_REJECTED)
    return raw
