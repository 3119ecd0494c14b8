"""E-mail normalisation and hashing for keys, and masking for audit events."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata

from solotable.systems.errors import InvalidInput

_ADDRESS = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f.]+(\.[^@\s\x00-\x1f\x7f.]+)+")
_LONGEST = 254


def normalise_email(email: str) -> str:
    """Return the normal form of an address: `A@x.org` and `a@X.org ` are the same mailbox.

    >>> normalise_email(" Ann@Example.ORG ")
    'ann@example.org'
    """
    found = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", email).casefold()).strip()
    if len(found) > _LONGEST or not _ADDRESS.fullmatch(found):
        raise InvalidInput("This is not an e-mail address.")
    return found


def pseudonym(tenant: str, email: str, pepper: bytes = b"") -> str:
    """Return the digest of an address for keys; it differs for each tenant.

    Without a pepper, a reader of the table can test guessed addresses. With one, the pepper is needed too.
    """
    return digest(tenant, normalise_email(email), pepper)


def digest(tenant: str, text: str, pepper: bytes = b"") -> str:
    """Return the digest of a private text; it differs for each tenant."""
    return hmac.new(pepper, f"{tenant}\0{text}".encode(), hashlib.sha256).hexdigest()[:40]


def mask_email(email: str) -> str:
    """Return an address with its local part hidden, for audit events.

    >>> mask_email("ann@example.org")
    'a***@example.org'
    """
    name, _, host = normalise_email(email).partition("@")
    return f"{name[0]}***@{host}"
