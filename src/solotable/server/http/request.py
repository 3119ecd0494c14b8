"""One HTTP request while it arrives and after; pure. The connection enforces the limits."""

from __future__ import annotations

from solotable.server.auth.sigv4 import SignedRequest

#: Header names that SDKs send: a lookup is faster than lower().
LOWER = {
    spelling: name.lower()
    for name in (
        b"Accept-Encoding",
        b"Authorization",
        b"Content-Length",
        b"Content-Type",
        b"Host",
        b"User-Agent",
        b"X-Amz-Date",
        b"X-Amz-Target",
    )
    for spelling in (name, name.lower())
}


class HttpRequest:
    """The method, target, headers and body of one request."""

    __slots__ = (
        "_body",
        "headers",
        "keep_alive",
        "method",
        "minor",
        "rejection_status",
        "size",
        "started_at",
        "table",
        "url",
    )

    def __init__(self) -> None:
        self.method = b""
        self.url = b""
        #: HTTP/1.minor
        self.minor = 1
        #: Lower-case names; values of a repeated name are joined with commas (RFC 9110).
        self.headers: dict[bytes, bytes] = {}
        self._body: bytes | bytearray = b""
        self.size = 0
        self.keep_alive = True
        #: The error status of a request that the server did not read to its end; 0 otherwise.
        self.rejection_status = 0
        #: For the request log: when the server began to answer, and the table that the request names.
        self.started_at = 0.0
        self.table: str | None = None

    def add_body(self, chunk: bytes) -> None:
        """Append a piece of the body; most bodies have one."""
        if not self._body:
            self._body = chunk
        elif isinstance(self._body, bytearray):
            self._body += chunk
        else:
            # A list of millions of one-byte chunks would take thirty times the body's memory.
            self._body = bytearray(self._body) + chunk

    def header(self, name: bytes) -> str:
        """Return a header as text; empty if it is missing."""
        value = self.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    def body(self) -> bytes:
        """Return the body as it was sent."""
        return bytes(self._body)

    def signed(self, body: bytes) -> SignedRequest:
        """Return the parts that a signature covers."""
        return SignedRequest(
            method=self.method.decode("latin-1"),
            target=self.url.decode("latin-1"),
            headers=tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers.items()
            ),
            body=body,
        )
