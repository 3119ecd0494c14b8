"""Passwords: scrypt hashes in one text, checked in constant time.

A hash holds its parameters, so that later versions can raise them and still check earlier hashes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from solotable.systems.errors import InvalidInput

SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 200
#: OWASP's smallest parameters for scrypt: 16 MB, and a fifth of a second of CPU.
_N, _R, _P = 2**14, 8, 5
_MAX_MEMORY = 64 * 1024 * 1024


def check_strength(password: str) -> None:
    """Raise InvalidInput for a password that is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidInput(f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")


def hash_password(password: str, *, n: int = _N) -> str:
    """Return the hash of a password; it takes a fifth of a second, so call it in a thread."""
    salt = secrets.token_bytes(16)
    digest = _scrypt(password, salt, n, _R, _P)
    return f"scrypt${n}${_R}${_P}${_text(salt)}${_text(digest)}"


def verify_password(password: str, stored: str | None) -> bool:
    """Return whether a password has this hash; without a hash it takes as long and returns False."""
    kind, n, r, p, salt, digest = (stored or _ABSENT).split("$")
    if kind != "scrypt" or len(password) > LONGEST_PASSWORD:
        return False
    found = _scrypt(password, base64.b64decode(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(digest)) and stored is not None


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MAX_MEMORY, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


_ABSENT = f"scrypt${_N}${_R}${_P}${_text(bytes(16))}${_text(bytes(32))}"
