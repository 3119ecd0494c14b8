"""Replies as HTTP/1.1 bytes, with the headers that DynamoDB sends; pure."""

from __future__ import annotations

from http import HTTPStatus

from solotable.values.checksum import crc32

from . import bodies

JSON_TYPE = b"application/x-amz-json-1.0"
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
_HEAD = (
    b"HTTP/1.1 %d %b\r\nServer: solotable\r\n%bContent-Type: %b\r\nContent-Length: %d\r\n"
    b"x-amz-crc32: %d\r\n%b\r\n"
)


def reply(
    status: int,
    body: bytes,
    *,
    stamp: bytes = b"",
    encoding: str = "",
    content_type: bytes = JSON_TYPE,
    headers: bytes = b"",
    head_only: bool = False,
) -> bytes:
    """Return a whole reply.

    `encoding` is what the client takes, `stamp` and `headers` are further header lines, and `head_only`
    answers a HEAD: the head as it would be, and no body.
    """
    if encoding:
        body, encoding = bodies.deflate(body, encoding)
        if encoding:
            headers += b"Content-Encoding: %b\r\n" % encoding.encode()
    # DynamoDB: the checksum is over the bytes as they are sent.
    head = _HEAD % (
        status,
        _REASONS.get(status, b""),
        stamp,
        content_type,
        len(body),
        crc32(body),
        headers,
    )
    return head if head_only else head + body
