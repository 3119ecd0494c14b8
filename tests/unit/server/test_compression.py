"""What is compressed, what is inflated, and where that ends."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.errors import ServiceError
from solotable.server.http.compression import TooLarge, choose, deflate, inflate

from .running import gzipped

LARGEST = 100_000


def bare(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(data) + stream.flush()


@given(st.binary(max_size=10_000))
def test_every_encoding_is_undone(data: bytes) -> None:
    assert inflate(data, "", LARGEST) == data
    assert inflate(data, "identity", LARGEST) == data
    assert inflate(gzipped(data), "gzip", LARGEST) == data
    assert inflate(zlib.compress(data), "deflate", LARGEST) == data
    assert inflate(zlib.compress(data, wbits=10), "deflate", LARGEST) == data


def test_deflate_without_a_header_is_undone() -> None:
    assert inflate(bare(b'{"TableName":"Things"}'), "deflate", LARGEST) == b'{"TableName":"Things"}'


def test_several_gzip_members_are_one_body() -> None:
    assert inflate(gzipped(b"one ") + gzipped(b"two"), "gzip", LARGEST) == b"one two"


@pytest.mark.parametrize("size", [LARGEST - 1, LARGEST])
@pytest.mark.parametrize(
    ("compress", "encoding"), [(gzipped, "gzip"), (zlib.compress, "deflate")], ids=["gzip", "deflate"]
)
def test_up_to_the_limit_is_inflated(compress: Callable[[bytes], bytes], encoding: str, size: int) -> None:
    assert len(inflate(compress(b"x" * size), encoding, LARGEST)) == size


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzipped(b"x" * (LARGEST + 1)), "gzip"),
        (zlib.compress(b"x" * (LARGEST + 1)), "deflate"),
        (bare(b"x" * (LARGEST + 1)), "deflate"),
        (gzipped(b"x" * LARGEST) + gzipped(b"x"), "gzip"),
    ],
)
def test_beyond_the_limit_nothing_is_inflated(body: bytes, encoding: str) -> None:
    with pytest.raises(TooLarge):
        inflate(body, encoding, LARGEST)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"", "gzip"),
        (b"", "deflate"),
        (b"{}", "gzip"),
        (b"{}", "deflate"),
        (gzipped(b"{}")[:-1], "gzip"),
        (zlib.compress(b"{}")[:-1], "deflate"),
        (gzipped(b"{}") + b"junk", "gzip"),
        (zlib.compress(b"{}") + b"junk", "deflate"),
        (zlib.compress(b"{}") * 2, "deflate"),
        (gzipped(b"{}") + gzipped(b"{}")[:-1], "gzip"),
        (gzipped(b"x" * 100)[:12] + b"\0" * 20, "gzip"),
        (b"{}", "br"),
        (b"{}", "zstd"),
        (gzipped(gzipped(b"{}")), "gzip, gzip"),
        (b"{}", "garbage"),
    ],
)
def test_what_cannot_be_inflated_is_refused(body: bytes, encoding: str) -> None:
    with pytest.raises(ServiceError) as refused:
        inflate(body, encoding, LARGEST)
    assert refused.value.code == "SerializationException"


@pytest.mark.parametrize("member", [gzipped(b""), gzipped(b" ")])
def test_millions_of_gzip_members_are_refused_at_once(member: bytes) -> None:
    body = member * (16_000_000 // len(member))
    begun = thread_time()
    with pytest.raises(ServiceError):
        inflate(body, "gzip", 16_777_216)
    assert thread_time() - begun < 2


# What AWS chose for these headers, by ScyllaDB's tests that run against it.
@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("", ""),
        ("identity", ""),
        ("br", ""),
        ("zstd", ""),
        ("compress", ""),
        ("x-gzip", ""),
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip, deflate", "gzip"),
        ("br, identity, deflate, gzip", "deflate"),
        ("GZIP, identity", "gzip"),
        ("dog, gzip ,, cat", "gzip"),
        ("gzip;q=0.8, deflate;q=0.5", "gzip"),
        ("br, gzip;q=0, deflate; q = 0.5 , identity;q=0", "deflate"),
        ("*", "gzip"),
        ("*, deflate;q=0.5", "gzip"),
        ("*, deflate", "deflate"),
        ("*, identity", "gzip"),
        ("*, gzip;q=0.5", "deflate"),
        ("gzip ;q=0", ""),
        ("identity;q=0", ""),
        ("*;q=0", ""),
        ("*;q=0.5,identity", "gzip"),
        ("gzip;q=0.5,identity;q=0.8", "gzip"),
        ("br;q=0.8,identity;q=0.5,*;q=0", ""),
        ('"gzip"', ""),
        ("gzip br", ""),
        ("gzip:q=1", ""),
        ("deflate;q=0.5, gzip;q=31", "gzip"),
        ("gzip;q=31,deflate;q=51", "gzip"),
        ("deflate;q=0.5, gzip;q=0.2", "deflate"),
        ("deflate;q=0.5, gzip;q=1;q=0.2", "gzip"),
        ("deflate;q=0.5,gzip;q=0.", "deflate"),
        ("deflate;q=0.5,gzip;q=0.x", "gzip"),
        ("deflate;q=0.5,gzip;q=0. x", "gzip"),
        ("deflate;q=-0.5,gzip;q=0.2", "gzip"),
        ("gzip;q= 0;q=1", ""),
        ("gzip;q =0;q=1", "gzip"),
        ("gzip; q=0;q=1", ""),
        ("gzip;nq=0;q=1", ""),
        ("gzip;q=0, gzip;q=1, gzip;q=0", "gzip"),
        ("br,identity;q=0.5,gzip;q=0.0001", "gzip"),
    ],
)
def test_the_encoding_is_chosen_as_dynamodb_does(accepted: str, chosen: str) -> None:
    assert choose(accepted) == chosen


@given(st.text(max_size=60))
def test_any_accept_encoding_gives_one_that_we_have(accepted: str) -> None:
    assert choose(accepted) in ("", "gzip", "deflate")


def test_replies_from_4096_bytes_on_are_compressed() -> None:
    assert deflate([b"x" * 4095], "gzip") == ([b"x" * 4095], "")
    pieces, encoding = deflate([b"x" * 4000, b"x" * 96], "gzip")
    assert (gzip.decompress(b"".join(pieces)), encoding) == (b"x" * 4096, "gzip")
    pieces, encoding = deflate([b"x" * 4096], "deflate")
    assert (zlib.decompress(b"".join(pieces)), encoding) == (b"x" * 4096, "deflate")
