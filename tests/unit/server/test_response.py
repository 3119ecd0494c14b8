"""Replies are exactly these bytes."""

from __future__ import annotations

import gzip
import zlib
from zlib import crc32

from solotable.server.http.response import Body, head

PAGE = b'{"TableNames":[]}'


def reply(status: int, page: bytes, *, encoding: str = "", **more: bytes) -> bytes:
    """A whole reply."""
    body = Body([page], encoding)
    return b"".join([*head(status, body, **more), *body.pieces])


def test_a_reply_is_head_and_body() -> None:
    assert reply(200, PAGE, stamp=b"x-amzn-RequestId: 1\r\n") == (
        b"HTTP/1.1 200 OK\r\n"
        b"Server: solotable\r\n"
        b"x-amzn-RequestId: 1\r\n"
        b"Content-Type: application/x-amz-json-1.0\r\n"
        b"Content-Length: 17\r\n"
        b"x-amz-crc32: 1315925753\r\n"
        b"\r\n" + PAGE
    )


def test_the_checksum_is_over_the_bytes_that_are_sent() -> None:
    lines, _, body = reply(200, PAGE * 1000, encoding="gzip").partition(b"\r\n\r\n")
    assert gzip.decompress(body) == PAGE * 1000
    assert b"\r\nContent-Encoding: gzip" in lines
    assert b"\r\nx-amz-crc32: %d\r\n" % crc32(body) in lines
    assert b"\r\nContent-Length: %d\r\n" % len(body) in lines


def test_a_body_in_pieces_is_sent_as_one() -> None:
    whole, pieces = Body([PAGE * 1000]), Body([PAGE] * 1000)
    assert head(200, whole) == head(200, pieces)
    packed = Body([PAGE] * 1000, "deflate")
    assert zlib.decompress(b"".join(packed.pieces)) == PAGE * 1000
    assert packed.size == sum(map(len, packed.pieces))
    assert packed.checksum == crc32(b"".join(packed.pieces))


def test_small_bodies_are_sent_as_they_are() -> None:
    lines, _, body = reply(200, PAGE, encoding="gzip").partition(b"\r\n\r\n")
    assert body == PAGE
    assert b"Content-Encoding" not in lines


def test_a_reply_has_the_status_and_headers_it_is_given() -> None:
    lines = b"".join(head(404, Body([PAGE]), content_type=b"text/plain", headers=b"Vary: Origin\r\n"))
    assert b"404 Not Found" in lines
    assert b"\r\nVary: Origin\r\n\r\n" in lines


def test_a_status_without_a_name_is_sent() -> None:
    assert reply(299, b"").startswith(b"HTTP/1.1 299 \r\n")
