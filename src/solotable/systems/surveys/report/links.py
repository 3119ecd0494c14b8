"""Links to a report that work without a credential: signed, for one survey, and for some days only.

A link names its tenant, its survey and its end, signed with HMAC-SHA256. Nothing is stored, so one link
cannot be withdrawn: it ends with its time, with its survey, or with the secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MAX_DAYS = 30
_LEAST_SECRET_BYTES = 16
#: Keeps the signature of a link from being one of something else that has the same secret.
_PURPOSE = b"solotable-report-link-1:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLink:
    """What a link opens, and until when."""

    tenant: str
    survey_id: str
    expires: datetime


class ReportLinks:
    """Signs links with the first secret, and accepts those of every secret.

    Without secrets, links end with the process; several workers need the same ones.
    """

    def __init__(self, link_secrets: Sequence[bytes] = ()) -> None:
        if any(len(secret) < _LEAST_SECRET_BYTES for secret in link_secrets):
            raise ValueError(f"link_secrets: a secret has at least {_LEAST_SECRET_BYTES} bytes.")
        self._secrets = tuple(link_secrets) or (secrets.token_bytes(32),)

    def sign(self, tenant: str, survey_id: str, *, now: datetime, days: int = 7) -> tuple[str, datetime]:
        """Return the token of a new link, and when it ends."""
        if not 1 <= days <= MAX_DAYS:
            raise ValueError(f"days={days}; a link is for 1 to {MAX_DAYS} days.")
        expires = (now + timedelta(days=days)).replace(microsecond=0)
        payload = json.dumps([tenant, survey_id, int(expires.timestamp())]).encode()
        return f"{_encode(payload)}.{_encode(self._signature(self._secrets[0], payload))}", expires

    def read(self, token: str, *, now: datetime) -> ReportLink | None:
        """Return what a token opens; None if it was not signed here, or has ended."""
        payload, signature = map(_decode, token.partition(".")[::2])
        if not any(hmac.compare_digest(signature, self._signature(each, payload)) for each in self._secrets):
            return None
        tenant, survey_id, ends = json.loads(payload)
        expires = datetime.fromtimestamp(ends, UTC)
        return ReportLink(tenant=tenant, survey_id=survey_id, expires=expires) if now < expires else None

    def _signature(self, secret: bytes, payload: bytes) -> bytes:
        return hmac.new(secret, _PURPOSE + payload, hashlib.sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Return the bytes of a text; none for a text that is not base64, which no signature fits."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
