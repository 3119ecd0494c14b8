"""What the server says to anything but a POST: its health, and what a browser may do."""

from __future__ import annotations

import json
from collections.abc import Mapping

from solotable import __version__

from .auth.allowed_hosts import echo
from .http.request_buffer import Incoming

#: Status, body, content type, further header lines.
Page = tuple[int, bytes, bytes, bytes]

# DynamoDB: GET / names the host that was asked, and ends with a space.
_HEALTHY = "healthy: {host} "
_UNKNOWN = b"<UnknownOperationException/>\n"
_HEALTH = json.dumps({"status": "ok", "version": __version__}).encode()


class Pages:
    """The answers, given which origin may call from a browser."""

    def __init__(self, origin: str | None) -> None:
        self._origin = None if origin is None else origin.encode("latin-1")
        #: Whether any origin may call from a browser.
        self.crosses_origins = origin is not None

    def get(self, incoming: Incoming) -> Page:
        """Return the answer to a request that is no POST."""
        method, headers = incoming.method, incoming.headers
        path = incoming.url.partition(b"?")[0]
        if method == b"OPTIONS" and self._origin is not None and b"origin" in headers:
            return (
                200,
                b"",
                b"text/plain",
                b"Access-Control-Allow-Headers: %b\r\nAccess-Control-Allow-Methods: POST, GET, OPTIONS\r\n"
                b"Access-Control-Max-Age: 172800\r\n" % headers.get(b"access-control-request-headers", b""),
            )
        if method in (b"GET", b"HEAD"):
            if path == b"/":
                healthy = _HEALTHY.format(host=echo(headers.get(b"host"))).encode()
                return 200, healthy, b"text/plain", b""
            if path == b"/health":
                return 200, _HEALTH, b"application/json", b""
        return 404, _UNKNOWN, b"text/plain", b""

    def cors(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return the header lines that let a browser's page read the reply; none unless asked for."""
        if self._origin is None:
            return b""
        # A cache must not hand the reply for one origin to another.
        varies = b"" if self._origin == b"*" else b"Vary: Origin\r\n"
        if b"origin" not in headers or self._origin not in (b"*", headers[b"origin"]):
            return varies
        return (
            b"%bAccess-Control-Allow-Origin: %b\r\n"
            b"Access-Control-Expose-Headers: x-amzn-RequestId, x-amz-crc32\r\n" % (varies, self._origin)
        )
