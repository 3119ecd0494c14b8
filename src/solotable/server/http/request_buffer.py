"""A request as it comes in, piece by piece; pure. It keeps what it is given: limits are others' work."""

from __future__ import annotations

from solotable.server.auth.sigv4 import SignedRequest

#: The names that SDKs send, as they spell them: a look-up is quicker than a copy.
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


class Incoming:
    """One request, from its first byte to its last."""

    __slots__ = ("_body", "head_size", "headers", "keep_alive", "method", "minor", "refusal", "size", "url")

    def __init__(self) -> None:
        self.method = b""
        self.url = b""
        #: HTTP/1.minor
        self.minor = 1
        #: Names in lower case; what a name came with more than once is joined, as HTTP means it.
        self.headers: dict[bytes, bytes] = {}
        self.head_size = 0
        self._body: bytes | bytearray = b""
        self.size = 0
        self.keep_alive = True
        #: The status it is refused with when it cannot be read to its end; 0 otherwise.
        self.refusal = 0

    @classmethod
    def whole(cls, headers: dict[bytes, bytes], body: bytes) -> Incoming:
        """Return a POST to / that came in one piece; its headers' names are in lower case."""
        incoming = cls()
        incoming.method = b"POST"
        incoming.url = b"/"
        incoming.headers = headers
        incoming._body = body
        incoming.size = len(body)
        return incoming

    def add_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        name = LOWER.get(name) or name.lower()
        headers = self.headers
        headers[name] = value if name not in headers else headers[name] + b"," + value

    def add_body(self, chunk: bytes) -> None:
        """Keep a piece of the body; most have one."""
        if not self._body:
            self._body = chunk
        elif isinstance(self._body, bytearray):
            self._body += chunk
        else:
            # A list of pieces would let millions of one-byte chunks weigh thirty times the body.
            self._body = bytearray(self._body) + chunk

    def header(self, name: bytes) -> str:
        """Return a header as text, empty when it is not there."""
        value = self.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    def body(self) -> bytes:
        """Return the body as it was sent."""
        return bytes(self._body)

    def signed(self, body: bytes) -> SignedRequest:
        """Return what a signature is verified on."""
        return SignedRequest(
            method=self.method.decode("latin-1"),
            target=self.url.decode("latin-1"),
            headers=tuple(
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers.items()
            ),
            body=body,
        )
