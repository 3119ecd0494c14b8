"""Replies as HTTP/1.1 bytes, with the headers that DynamoDB sends; pure."""

from __future__ import annotations

from http import HTTPStatus

from solotable._values.checksum import crc32

from . import compression

#: A larger body is sent in pieces: copying it at once blocks the event loop for milliseconds.
LARGE = 256 * 1024
JSON_TYPE = b"application/x-amz-json-1.0"
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_STATUS = b"HTTP/1.1 %d %b\r\nServer: solotable\r\n"
_START_OK = _STATUS % (200, b"OK")
_SIZES = b"\r\nContent-Length: %d\r\nx-amz-crc32: %d\r\n"


class Body:
    """The encoded body of a reply, in pieces, with its size and checksum."""

    __slots__ = ("checksum", "encoding", "pieces", "size")

    def __init__(self, pieces: list[bytes], encoding: str = "") -> None:
        """Encode a body of JSON pieces with a content coding, if one is given."""
        if encoding:
            pieces, encoding = compression.deflate(pieces, encoding)
        self.encoding = encoding
        self.pieces = pieces
        # DynamoDB: the checksum covers the bytes as sent, after compression.
        size = checksum = 0
        for piece in pieces:
            size += len(piece)
            checksum = crc32(piece, checksum)
        self.size = size
        self.checksum = checksum


def head(
    status: int, body: Body, stamp: bytes = b"", content_type: bytes = JSON_TYPE, headers: bytes = b""
) -> tuple[bytes, ...]:
    """Return the head of a reply in pieces; `stamp` (date and request id) and `headers` are header lines."""
    if body.encoding:
        headers += b"Content-Encoding: %b\r\n" % body.encoding.encode()
    # Joining pieces takes half the time of formatting them all.
    start = _START_OK if status == 200 else _STATUS % (status, _REASONS.get(status, b""))
    sizes = _SIZES % (body.size, body.checksum)
    return start, stamp, b"Content-Type: ", content_type, sizes, headers, b"\r\n"
