"""Texts that a client holds and cannot read or change: AES-GCM, bound to what they are for."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class Seal:
    """Seals with the first secret, opens with all of them, so that secrets can be rotated."""

    def __init__(self, secrets: Sequence[bytes] = (), *, purpose: bytes) -> None:
        given = list(secrets) or [os.urandom(32)]
        self._ciphers = [AESGCM(hashlib.sha256(purpose + each).digest()) for each in given]

    def seal(self, text: str, *bound_to: str) -> str:
        """Return a text that only `open` with the same strings reads."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[0].encrypt(nonce, text.encode(), _associated(bound_to))
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, sealed: str, *bound_to: str) -> str | None:
        """Return the text; None if it was changed, or sealed for something else."""
        try:
            data = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        for cipher in self._ciphers if len(data) > _NONCE_BYTES else ():
            try:
                opened = cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _associated(bound_to))
            except InvalidTag:
                continue
            return opened.decode()
        return None


def _associated(parts: tuple[str, ...]) -> bytes:
    return "\x00".join(parts).encode()
