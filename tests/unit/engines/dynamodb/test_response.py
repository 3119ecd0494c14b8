"""Bytes to one answer, however they are cut, and nothing larger than DynamoDB can send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.engines.dynamodb.http.response import MAX_BYTES, HttpResponse, InvalidResponse

from .evil import chunked, reply

BODY = b'{"Item":{"pk":{"S":"a"}}}'
WHOLE = [reply(BODY), chunked(BODY[:3], BODY[3:]), b"HTTP/1.1 100 Continue\r\n\r\n" + reply(BODY)]


@given(whole=st.sampled_from(WHOLE), cuts=st.lists(st.integers(min_value=0, max_value=300), max_size=20))
def test_pieces_make_the_same_answer(whole: bytes, cuts: list[int]) -> None:
    answer = HttpResponse()
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {len(whole)} - {0})
    start = 0
    for end in ends:
        assert not answer.complete
        if end > start:
            answer.feed(whole[start:end])
        start = end
    answer.finish()
    assert (answer.complete, answer.reusable, answer.status, answer.body) == (True, True, 200, BODY)


@given(noise=st.binary(max_size=200))
def test_noise_is_refused_or_waited_for(noise: bytes) -> None:
    with pytest.raises(InvalidResponse):
        fed(noise)


def fed(data: bytes) -> HttpResponse:
    """The answer of a connection that ends."""
    answer = HttpResponse()
    answer.feed(data)
    answer.feed_eof()
    answer.finish()
    return answer


@given(at=st.integers(min_value=0, max_value=len(WHOLE[0]) - 1), byte=st.integers(min_value=0, max_value=255))
def test_no_body_comes_out_but_the_one_that_was_sent(at: int, byte: int) -> None:
    spoilt = bytearray(WHOLE[0])
    spoilt[at] = byte
    try:
        answer = fed(bytes(spoilt))
    except InvalidResponse:
        return
    # Spoilt elsewhere: in the status, a name, or where the checksum was.
    assert answer.body == BODY or b"x-amz-crc32" not in answer.headers


def test_what_is_too_large_is_refused_before_it_is_kept() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
    HttpResponse().feed(head % MAX_BYTES)
    with pytest.raises(InvalidResponse, match="larger"):
        HttpResponse().feed(head % (MAX_BYTES + 1))
    small = HttpResponse(max_bytes=100)
    small.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n" + b"x" * 50 + b"\r\n")
    with pytest.raises(InvalidResponse, match="larger"):
        small.feed(b"33\r\n" + b"x" * 51 + b"\r\n")
    with pytest.raises(InvalidResponse, match="larger"):
        HttpResponse().feed(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000)
