"""AWS Signature Version 4 for DynamoDB's requests, which are all `POST /` with a body in memory; pure.

It does not support other methods, paths, queries or services.
"""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

#: The SDKs sign requests to DynamoDB Streams for this service too.
_SERVICE: Final = "dynamodb"
_TYPE: Final = "application/x-amz-json-1.0"
_PLAIN: Final = "content-type;host;x-amz-date;x-amz-target"
_TEMPORARY: Final = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """An access key id, its secret, and an optional session token."""

    id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def is_sendable(self) -> bool:
        """Whether the key and its token are valid in headers."""
        parts = (self.id, self.secret, self.token or "-")
        return all(part.isascii() and part.isprintable() and part.strip() == part != "" for part in parts)


class Signer:
    """Signs requests with one key to one host; safe for use by many threads."""

    def __init__(self, key: AccessKey, *, region: str, host: str) -> None:
        self.key = key
        self._region = region
        self._host = host
        self._signed = _PLAIN if key.token is None else _TEMPORARY
        self._token = "" if key.token is None else f"x-amz-security-token:{key.token}\n"
        # The second, its text and the signing key of its day in one tuple, so that no lock is needed.
        self._latest: tuple[int, str, bytes] = (-1, "", b"")

    def headers(self, target: str, body: bytes, now: float) -> str:
        """Return the header lines of a signed request; `now` is in Unix seconds."""
        second, moment, signing_key = self._latest
        if second != int(now):
            before, moment = moment[:8], time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            if before != moment[:8]:
                signing_key = self._signing_key(moment[:8])
            self._latest = (int(now), moment, signing_key)
        day = moment[:8]
        canonical = (
            f"POST\n/\n\ncontent-type:{_TYPE}\nhost:{self._host}\nx-amz-date:{moment}\n{self._token}"
            f"x-amz-target:{target}\n\n{self._signed}\n{sha256(body).hexdigest()}"
        )
        scope = f"{day}/{self._region}/{_SERVICE}/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(signing_key, to_sign.encode(), "sha256").hex()
        token = "" if self.key.token is None else f"X-Amz-Security-Token: {self.key.token}\r\n"
        return (
            f"Host: {self._host}\r\nContent-Type: {_TYPE}\r\nX-Amz-Date: {moment}\r\n{token}"
            f"X-Amz-Target: {target}\r\nAuthorization: AWS4-HMAC-SHA256 Credential={self.key.id}/{scope}, "
            f"SignedHeaders={self._signed}, Signature={signature}\r\n"
        )

    def _signing_key(self, day: str) -> bytes:
        key = b"AWS4" + self.key.secret.encode()
        for part in (day, self._region, _SERVICE, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key
