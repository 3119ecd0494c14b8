"""AWS Signature Version 4 for DynamoDB's JSON requests: all of them are `POST /`, with a body in memory.

Pure: the clock is handed in, and nothing is read or sent. Other methods, paths, queries and services
are not signed here, so their canonical forms are not either.
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
    """Credentials as they are at one moment."""

    id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def is_sendable(self) -> bool:
        """Whether the key and its token can be put into headers."""
        parts = (self.id, self.secret, self.token or "-")
        return all(part.isascii() and part.isprintable() and part.strip() == part != "" for part in parts)


class Signer:
    """Signs the requests of one key to one host; safe for use by many threads."""

    def __init__(self, key: AccessKey, *, region: str, host: str) -> None:
        self.key = key
        self._region = region
        self._host = host
        self._signed = _PLAIN if key.token is None else _TEMPORARY
        self._token = "" if key.token is None else f"x-amz-security-token:{key.token}\n"
        # The last day's key; replaced as a whole, so that no lock is needed.
        self._daily: tuple[str, bytes] = ("", b"")

    def headers(self, target: str, body: bytes, now: float) -> str:
        """Return the header lines of a request, each with its line break; `now` is in Unix seconds."""
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        day = moment[:8]
        date, signing_key = self._daily
        if date != day:
            signing_key = self._signing_key(day)
            self._daily = (day, signing_key)
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
        made = b"AWS4" + self.key.secret.encode()
        for part in (day, self._region, _SERVICE, "aws4_request"):
            made = hmac.digest(made, part.encode(), "sha256")
        return made
