"""Replies as HTTP/1.1 bytes, with the headers that DynamoDB sends; pure."""

from __future__ import annotations

from http import HTTPStatus
from zlib import crc32

from . import bodies

JSON_TYPE = b"application/x-amz-json-1.0"
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_HEAD = (
    b"HTTP/1.1 %d %b\r\nServer: solotable\r\nContent-Type: %b\r\nContent-Length: %d\r\n"
    b"x-amzn-RequestId: %b\r\nx-amz-crc32: %d\r\n%b%b\r\n"
)


def reply(
    status: int,
    body: bytes,
    *,
    request_id: bytes,
    encoding: str = "",
    content_type: bytes = JSON_TYPE,
    headers: bytes = b"",
    keep_alive: bool = True,
) -> bytes:
    """Return a whole reply; `encoding` is what the client takes, `headers` are further header lines."""
    if encoding:
        body, encoding = bodies.deflate(body, encoding)
        if encoding:
            headers += b"Content-Encoding: %b\r\n" % encoding.encode()
    # DynamoDB: the checksum is over the bytes as they are sent.
    return (
        _HEAD
        % (
            status,
            _REASONS.get(status, b""),
            content_type,
            len(body),
            request_id,
            crc32(body),
            headers,
            b"" if keep_alive else b"Connection: close\r\n",
        )
        + body
    )
