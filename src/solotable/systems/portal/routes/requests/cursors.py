"""Sealed cursors: a client cannot read them, and they work for one user and one list only (C3.1).

The store signs its cursors and binds them to a query. They show keys to their holder, and two users of one
list could exchange them. So a cursor leaves the app encrypted, with the user and the list as associated data.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from solotable import CursorRejected

_NONCE_BYTES = 12


class CursorSeal:
    """Seals with the first secret, opens with all of them, so that secrets can be rotated."""

    def __init__(self, secrets: Sequence[bytes] = ()) -> None:
        given = list(secrets) or [os.urandom(32)]
        self._ciphers = [AESGCM(hashlib.sha256(b"portal cursor" + each).digest()) for each in given]

    def seal(self, cursor: str | None, *, user_id: str, list_name: str) -> str | None:
        """Return the text for the client; None without a next page."""
        if cursor is None:
            return None
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, cursor.encode(), _bound(user_id, list_name))
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, sealed: str | None, *, user_id: str, list_name: str) -> str | None:
        """Return the cursor of the store, or raise CursorRejected."""
        if sealed is None:
            return None
        try:
            data = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        except ValueError:
            data = b""
        for cipher in self._ciphers if len(data) > _NONCE_BYTES else ():
            try:
                opened = cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _bound(user_id, list_name))
            except InvalidTag:
                continue
            return opened.decode()
        raise CursorRejected("The cursor does not belong to this user and this list.")


def _bound(user_id: str, list_name: str) -> bytes:
    return f"{user_id}\x00{list_name}".encode()
