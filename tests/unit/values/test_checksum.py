"""Whichever library counts them, the sums are zlib's: a file may be read where the other one is."""

from __future__ import annotations

from zlib import crc32 as plain_crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._values.checksum import crc32


@given(st.binary(max_size=3000), st.binary(max_size=50))
def test_sums_are_those_of_zlib(data: bytes, before: bytes) -> None:
    assert crc32(data, crc32(before)) == plain_crc32(before + data)


def test_what_is_not_bytes_has_no_sum() -> None:
    with pytest.raises(TypeError):
        crc32("text")
    with pytest.raises(TypeError):
        crc32(None)
