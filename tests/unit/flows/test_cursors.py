"""Signed cursors at their limits: the longest key, and texts that cannot be cursors."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._flows.cursors import LONGEST_CURSOR, CursorSigner
from solotable._values import Item
from solotable.errors import CursorRejected, DataError, DeclarationError

SECRET = b"a secret of enough bytes"
#: Control characters are six bytes each in JSON.
LONGEST_KEY: Item = {
    **{f"{'p' * 254}{place}": {"S": "\x01" * 2_048} for place in range(5)},
    **{f"{'s' * 254}{place}": {"S": "\x01" * 1_024} for place in range(5)},
}


def cursor_signer(*secrets: bytes) -> CursorSigner:
    return CursorSigner(secrets=secrets, clock=lambda: 0.0)


def test_a_cursor_holds_the_longest_key_of_an_index_and_its_table() -> None:
    cursor = cursor_signer(SECRET).sign(LONGEST_KEY, b"query")
    assert cursor_signer(SECRET).verify(cursor, b"query") == LONGEST_KEY
    assert len(cursor) <= LONGEST_CURSOR


class Unread(str):
    """A text that fails the test when it is looked into."""

    __slots__ = ()

    def encode(self, *_arguments: Any, **_more: Any) -> bytes:
        raise AssertionError("The cursor was decoded.")


def test_a_longer_text_is_rejected_without_a_look_at_it() -> None:
    with pytest.raises(CursorRejected):
        cursor_signer(SECRET).verify(Unread("A" * (LONGEST_CURSOR + 1)), b"query")
    with pytest.raises(AssertionError, match="decoded"):
        cursor_signer(SECRET).verify(Unread("A" * LONGEST_CURSOR), b"query")


@pytest.mark.parametrize("secrets", [(), (b"",), (b"too short",), (SECRET, b"too short")])
def test_secrets_are_needed_and_have_a_least_length(secrets: tuple[bytes, ...]) -> None:
    with pytest.raises(DeclarationError, match="at least 16 bytes"):
        cursor_signer(*secrets)


@pytest.mark.parametrize("cursor", [b"AAAA", 7, {"PK": {"S": "a"}}])
def test_a_cursor_of_another_type_is_named(cursor: Any) -> None:
    with pytest.raises(
        DataError, match=r"^cursor= takes the text of a page's cursor, got (bytes|int|dict)\.$"
    ):
        cursor_signer(SECRET).verify(cursor, b"query")
