"""Replies as HTTP/1.1 bytes, with the headers that DynamoDB sends; pure."""

from __future__ import annotations

from http import HTTPStatus

from solotable._values.checksum import crc32

from . import compression

#: A body up to this size is sent in one piece. More would have the event loop copy it for milliseconds.
LARGE = 256 * 1024
JSON_TYPE = b"application/x-amz-json-1.0"
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_HEAD = (
    b"HTTP/1.1 %d %b\r\nServer: solotable\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n"
    b"x-amz-crc32: %d\r\n%b\r\n"
)


class Body:
    """The body of a reply as it is sent, in pieces; making one may take long, for a long reply."""

    __slots__ = ("checksum", "encoding", "pieces", "size")

    def __init__(self, pieces: list[bytes], encoding: str = "") -> None:
        """Take a body as JSON and the encoding that its client takes, if any."""
        if encoding:
            pieces, encoding = compression.deflate(pieces, encoding)
        self.encoding = encoding
        if len(pieces) > 1 and sum(map(len, pieces)) <= LARGE:
            pieces = [b"".join(pieces)]
        self.pieces = pieces
        # DynamoDB: the checksum is over the bytes as they are sent.
        size = checksum = 0
        for piece in pieces:
            size += len(piece)
            checksum = crc32(piece, checksum)
        self.size = size
        self.checksum = checksum


def head(
    status: int, body: Body, *, stamp: bytes = b"", content_type: bytes = JSON_TYPE, headers: bytes = b""
) -> bytes:
    """Return the head of a reply; `stamp` and `headers` are further header lines."""
    if body.encoding:
        headers += b"Content-Encoding: %b\r\n" % body.encoding.encode()
    return _HEAD % (
        status,
        _REASONS.get(status, b""),
        stamp,
        content_type,
        body.size,
        body.checksum,
        headers,
    )
