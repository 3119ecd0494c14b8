"""Markers state facts and reject bad ones; ULIDs ascend whatever the clock does."""

from __future__ import annotations

import copy
import pickle
import threading
from contextlib import nullcontext
from dataclasses import FrozenInstanceError
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from solotable._entities.declare.fields import FROM_SCOPE, Attr, Ulids, Version, is_from_scope, new_ulid
from solotable.errors import DeclarationError


def test_markers_are_values() -> None:
    assert Version() == Version()
    assert hash(Attr("n")) == hash(Attr("n"))
    assert Attr("n") != Attr("m")
    with pytest.raises(FrozenInstanceError):
        Attr("n").name = "m"  # type: ignore[misc]  # the claim itself


def test_attribute_names_have_1_to_65535_bytes() -> None:
    assert Attr("é" * 32767).name == "é" * 32767
    with pytest.raises(DeclarationError, match="65536 bytes"):
        Attr("é" * 32768)
    with pytest.raises(DeclarationError, match="is empty"):
        Attr("")


def test_from_scope_is_one_falsy_text_that_survives_copies() -> None:
    assert repr(FROM_SCOPE) == "FROM_SCOPE"
    assert isinstance(FROM_SCOPE, str)
    assert not FROM_SCOPE
    assert copy.deepcopy(FROM_SCOPE) is FROM_SCOPE
    assert copy.copy(FROM_SCOPE) is FROM_SCOPE
    assert pickle.loads(pickle.dumps(FROM_SCOPE)) is FROM_SCOPE  # noqa: S301 -- our own bytes


def test_from_scope_as_a_pydantic_default_differs_from_an_empty_string() -> None:
    class Note(BaseModel):
        tenant_id: str = FROM_SCOPE

    assert is_from_scope(Note().tenant_id)
    assert is_from_scope(Note().model_copy(deep=True).tenant_id)
    assert not is_from_scope(Note(tenant_id="").tenant_id)
    assert not is_from_scope(None)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_a_ulid_reads_back_as_its_128_bits(now_ms: int, entropy: bytes) -> None:
    text = new_ulid(now_ms, entropy)
    assert len(text) == 26
    number = 0
    for letter in text:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
    assert number == now_ms << 80 | int.from_bytes(entropy, "big")


@pytest.mark.parametrize(
    "now_ms, entropy", [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9)), (0, b"a" * 11)]
)
def test_a_ulid_outside_its_bits_is_refused(now_ms: int, entropy: bytes) -> None:
    with pytest.raises(ValueError, match="A ULID"):
        new_ulid(now_ms, entropy)


def test_ulids_ascend_within_a_millisecond_and_when_the_clock_is_set_back() -> None:
    times = iter([5.0, 5.0, 5.0, 4.0, 5.0, 6.0, 1.0])
    ulids = Ulids(lambda: next(times), bytes, nullcontext())
    made = [ulids() for _ in range(7)]
    assert all(left < right for left, right in pairwise(made))
    assert made[0] == new_ulid(5000, bytes(10))
    assert made[5] == new_ulid(6000, bytes(10))


def test_ulids_go_on_in_the_next_millisecond_when_the_random_bits_are_used_up() -> None:
    ulids = Ulids(lambda: 5.0, lambda count: b"\xff" * count, nullcontext())
    assert [ulids(), ulids()] == [new_ulid(5000, b"\xff" * 10), new_ulid(5001, b"\xff" * 10)]


def test_ulids_of_a_clock_outside_their_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="milliseconds"):
        Ulids(lambda: 1e12, bytes, nullcontext())()
    with pytest.raises(ValueError, match="milliseconds"):
        Ulids(lambda: -5.0, bytes, nullcontext())()


def test_threads_share_one_maker_without_doubles() -> None:
    ulids = Ulids(lambda: 5.0, bytes, threading.Lock())
    made: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        mine.extend(ulids() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({text for mine in made for text in mine}) == 8000
    assert all(mine == sorted(mine) for mine in made)
