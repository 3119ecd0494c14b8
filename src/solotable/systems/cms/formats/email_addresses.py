"""People as the table knows them: one spelling of an address, a digest for keys, a label for records."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata

from solotable.systems.cms.errors import Refused

_ADDRESS = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f.]+(\.[^@\s\x00-\x1f\x7f.]+)+")
_LONGEST = 254


def normalised(email: str) -> str:
    """Return the one spelling of an address: `A@x.org` and `a@X.org ` are the same mailbox.

    >>> normalised(" Ann@Example.ORG ")
    'ann@example.org'
    """
    found = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", email).casefold()).strip()
    if len(found) > _LONGEST or not _ADDRESS.fullmatch(found):
        raise Refused("This is no e-mail address.")
    return found


def pseudonym(tenant: str, email: str, pepper: bytes = b"") -> str:
    """Return what stands for an address in keys: the same for the same one, and different for each tenant.

    Without a pepper whoever has the table can try addresses; with one, only who has that, too.
    """
    return digest(tenant, normalised(email), pepper)


def digest(tenant: str, text: str, pepper: bytes = b"") -> str:
    """Return what stands for a text that is nobody's to read, different for each tenant."""
    return hmac.new(pepper, f"{tenant}\0{text}".encode(), hashlib.sha256).hexdigest()[:40]


def label(email: str) -> str:
    """Return an address that a person recognises and nobody can write to.

    >>> label("ann@example.org")
    'a***@example.org'
    """
    name, _, host = normalised(email).partition("@")
    return f"{name[0]}***@{host}"
