"""Frames between workers and the writer: what is sent arrives, in whatever pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from solotable.server.workers.frames import FrameReader, encode_reply, encode_request

requests = st.tuples(
    st.integers(0, 2**32 - 1), st.text(st.characters(max_codepoint=255), max_size=40), st.binary()
)
replies = st.tuples(st.integers(0, 2**32 - 1), st.integers(100, 599), st.lists(st.binary(), max_size=3))


@given(st.lists(requests, max_size=5), st.integers(1, 50))
def test_requests_arrive_in_any_pieces(sent: list[tuple[int, str, bytes]], size: int) -> None:
    data = b"".join(encode_request(*each) for each in sent)
    reader = FrameReader()
    received = [
        (number, content[:length].decode("latin-1"), content[length:])
        for begin in range(0, len(data), size)
        for number, length, content in reader.feed(data[begin : begin + size])
    ]
    assert received == sent


@given(st.lists(replies, max_size=5))
def test_replies_arrive(sent: list[tuple[int, int, list[bytes]]]) -> None:
    data = b"".join(encode_reply(*each) for each in sent)
    assert list(FrameReader().feed(data)) == [
        (number, status, b"".join(pieces)) for number, status, pieces in sent
    ]
