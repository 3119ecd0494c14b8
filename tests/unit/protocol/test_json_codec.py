"""orjson and the standard library read and write the same JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._protocol import json_codec

pytest.importorskip("orjson")

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
REALS = st.integers(-(10**6), 10**6).map(lambda halves: halves / 2)
JSON = st.recursive(
    LEAVES | REALS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def outcome(loads: Callable[[bytes], Any], raw: bytes) -> Any:
    try:
        return repr(loads(raw))
    except ValueError:
        return "refused"


@given(JSON)
def test_both_writers_give_the_same_bytes_and_both_readers_read_them(value: Any) -> None:
    raw = json_codec.dumps(value)
    assert json_codec.plain_dumps(value) == raw
    assert json_codec.loads(raw) == value
    assert json_codec.plain_loads(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1,]",
        b"01",
        b"1.",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b'"\\ud800"',
        b'"\\uDC00x"',
        b'{"\\ud800":1}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\x01"',
        b"\xef\xbb\xbf{}",
        b"{}x",
        b"\x00",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000,
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_both_readers_refuse_what_is_not_json(raw: bytes) -> None:
    assert outcome(json_codec.loads, raw) == outcome(json_codec.plain_loads, raw) == "refused"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'"\\ud83d\\ude00"',
        b"123456789012345678901234567890",
        b"-9223372036854775809",
        b"18446744073709551615",
        b"18446744073709551616",
        b"1" * 300,
        b"1e-999",
        b"-0",
        b"-0.0",
        b' {"a" : [ ] } ',
        b'"\\u0000\xe2\x80\xa8"',
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_both_readers_agree_on_odd_json(raw: bytes) -> None:
    assert outcome(json_codec.loads, raw) == outcome(json_codec.plain_loads, raw) != "refused"


@given(st.binary(max_size=12) | st.text('[]{}:,"\\ud8900.eE+-tfn ', max_size=12).map(str.encode))
def test_both_readers_agree_on_any_bytes(raw: bytes) -> None:
    assert outcome(json_codec.loads, raw) == outcome(json_codec.plain_loads, raw)
