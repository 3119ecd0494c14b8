"""What is read at a glance is what the parser would have read; anything else is left to the parser."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.server.http.plain import read_plain
from solotable.server.http.request import HttpRequest

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.ListTables\r\n"
PLAIN = HEAD + b"Content-Length: 2\r\n\r\n{}"


class Parsed:
    """One request, as httptools reads it."""

    def __init__(self, data: bytes) -> None:
        self.request = HttpRequest()
        self.complete = 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self.request.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.request.add_header(name, value)

    def on_body(self, body: bytes) -> None:
        self.request.size += len(body)
        self.request.add_body(body)

    def on_message_complete(self) -> None:
        self.complete += 1


def test_a_plain_request_is_read() -> None:
    request = read_plain(PLAIN)
    assert request is not None
    assert request.method == b"POST"
    assert request.header(b"x-amz-target") == "DynamoDB_20120810.ListTables"
    assert request.body() == b"{}"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN[:-1],
        PLAIN + b"P",
        PLAIN.replace(b"POST", b"GET"),
        PLAIN.replace(b"/ H", b"/x H"),
        PLAIN.replace(b"1.1", b"1.0"),
        PLAIN.replace(b"Length: 2", b"Length: +2"),
        PLAIN.replace(b"Length: 2", b"Length: 02"),
        PLAIN.replace(b"Length: 2", b"Length: 2 "),
        PLAIN.replace(b"Length: 2", b"Length:  2"),
        PLAIN.replace(b"Length: 2", b"Length: 2\r\nContent-Length: 2"),
        PLAIN.replace(b"Host: localhost", b"Transfer-Encoding: chunked"),
        PLAIN.replace(b"Host: localhost", b"Connection: close"),
        PLAIN.replace(b"Host: localhost", b"Expect: 100-continue"),
        PLAIN.replace(b"Host: localhost", b"Upgrade: h2c"),
        PLAIN.replace(b"Host: localhost", b"Host : localhost"),
        PLAIN.replace(b"Host: localhost", b"Host: local\nhost"),
        PLAIN.replace(b"Host: localhost", b"Host: local\rhost"),
        PLAIN.replace(b"Host: localhost", b"Host: local\0host"),
        PLAIN.replace(b"Host: localhost", b"Host: l\xf6cal"),
        PLAIN.replace(b"Host: localhost", b"Host: a\r\n b"),
        PLAIN.replace(b"Host: localhost", b"\r\nHost: a"),
        PLAIN.replace(b"Host: localhost", b"Host"),
        PLAIN.replace(b"Host: localhost", b": x"),
        PLAIN.replace(b"Host: localhost", b"X: " + b"x" * 9000),
        PLAIN.replace(b"Host: localhost", b"\r\n".join(b"X%d: x" % n for n in range(70))),
        HEAD + b"\r\n",
        b"",
    ],
)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert read_plain(data) is None


NAMES = st.sampled_from([b"Host", b"X-Amz-Target", b"content-type", b"X_y", b"A b", b"Connection", b"Z-1"])
VALUES = st.text(alphabet="ab:;, \t\r\n/é=1", max_size=12).map(lambda text: text.encode("latin-1"))


@given(
    st.lists(st.tuples(NAMES, st.sampled_from([b": ", b":", b" : ", b":  "]), VALUES), max_size=5),
    st.binary(max_size=20),
    st.sampled_from([0, 0, 0, 1, -1]),
)
def test_what_is_read_is_what_the_parser_reads(
    headers: list[tuple[bytes, bytes, bytes]], body: bytes, off: int
) -> None:
    lines = b"".join(name + colon + value + b"\r\n" for name, colon, value in headers)
    data = b"POST / HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (lines, len(body) + off, body)
    request = read_plain(data)
    if request is None:
        return
    parsed = Parsed(data)
    assert parsed.complete == 1
    assert parsed.parser.should_keep_alive()
    assert parsed.parser.get_method() == request.method
    assert parsed.request.url == request.url
    assert parsed.request.headers == request.headers
    assert parsed.request.body() == request.body()
    assert parsed.request.size == request.size
