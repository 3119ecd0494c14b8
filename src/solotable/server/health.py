"""Replies to requests other than POST: health checks and CORS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from solotable import __version__

from .auth.allowed_hosts import echo_host
from .http.request import HttpRequest

#: Status, body, content type, further header lines.
PageReply = tuple[int, bytes, bytes, bytes]

# DynamoDB: GET / names the requested host, and ends with a space.
_GREETING = "healthy: {host} "
_UNKNOWN = b"<UnknownOperationException/>\n"


def _status_page(code: int, status: str) -> PageReply:
    return code, json.dumps({"status": status, "version": __version__}).encode(), b"application/json", b""


#: The replies to GET /health. The second one is a worker's.
HEALTHY: Final = _status_page(200, "ok")
WITHOUT_WRITER: Final = _status_page(503, "the process that writes does not answer")


class HealthPages:
    """Health pages and CORS headers for one allowed origin."""

    def __init__(self, origin: str | None) -> None:
        self._origin = None if origin is None else origin.encode("latin-1")
        #: Whether browsers may call from another origin.
        self.allows_cors = origin is not None

    def get(self, request: HttpRequest) -> PageReply:
        """Return the reply to a request other than POST."""
        method, headers = request.method, request.headers
        path = request.url.partition(b"?")[0]
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
                greeting = _GREETING.format(host=echo_host(headers.get(b"host"))).encode()
                return 200, greeting, b"text/plain", b""
            if path == b"/health":
                return HEALTHY
        return 404, _UNKNOWN, b"text/plain", b""

    def cors_headers(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return the header lines that let a page of the allowed origin read the reply."""
        if self._origin is None:
            return b""
        # A cache must not reuse the reply for another origin.
        varies = b"" if self._origin == b"*" else b"Vary: Origin\r\n"
        if b"origin" not in headers or self._origin not in (b"*", headers[b"origin"]):
            return varies
        return (
            b"%bAccess-Control-Allow-Origin: %b\r\n"
            b"Access-Control-Expose-Headers: x-amzn-RequestId, x-amz-crc32\r\n" % (varies, self._origin)
        )
