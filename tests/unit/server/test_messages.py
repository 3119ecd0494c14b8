"""Replies are exactly these bytes."""

from __future__ import annotations

import gzip
from zlib import crc32

from solotable.server.messages import reply

PAGE = b'{"TableNames":[]}'


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
    head, _, body = reply(200, PAGE * 1000, encoding="gzip").partition(b"\r\n\r\n")
    assert gzip.decompress(body) == PAGE * 1000
    assert b"\r\nContent-Encoding: gzip" in head
    assert b"\r\nx-amz-crc32: %d\r\n" % crc32(body) in head
    assert b"\r\nContent-Length: %d\r\n" % len(body) in head


def test_small_bodies_are_sent_as_they_are() -> None:
    head, _, body = reply(200, PAGE, encoding="gzip").partition(b"\r\n\r\n")
    assert body == PAGE
    assert b"Content-Encoding" not in head


def test_a_head_is_that_of_the_whole_reply() -> None:
    whole = reply(404, PAGE, content_type=b"text/plain", headers=b"Vary: Origin\r\n")
    head = reply(404, PAGE, content_type=b"text/plain", headers=b"Vary: Origin\r\n", head_only=True)
    assert head + PAGE == whole
    assert b"404 Not Found" in head
    assert b"\r\nVary: Origin\r\n\r\n" in head


def test_a_status_without_a_name_is_sent() -> None:
    assert reply(299, b"").startswith(b"HTTP/1.1 299 \r\n")
