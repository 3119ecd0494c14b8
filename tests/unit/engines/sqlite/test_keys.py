"""Where a key lies: the short way for short texts leads to the same place as the long one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._values import Item
from solotable.engines.sqlite.items.keys import check_and_encode_key, check_key, encode_key
from solotable.engines.sqlite.tables.catalog import KeyAttribute, Schema, Table
from solotable.errors import ServiceError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.integers(240, 3000).map(
    "é".__mul__
)
VALUES = TEXTS.map(lambda text: {"S": text}) | st.integers(-5, 5).map(lambda number: {"N": str(number)})
KEYS = st.dictionaries(st.sampled_from(["pk", "sk", "other"]), VALUES, max_size=3)


def table(*kinds: str) -> Table:
    parts = [KeyAttribute(name=name, kind=kind) for name, kind in zip(("pk", "sk"), kinds, strict=False)]
    schema = Schema(partition=tuple(parts[:1]), sort=tuple(parts[1:]))
    return Table(id=1, name="Things", generation=1, definition={}, schema=schema, indexes=())


TABLES = [table("S"), table("S", "S"), table("S", "N"), table("N", "S")]


def outcome(call: Any) -> bytes | str:
    try:
        found: bytes = call()
    except ServiceError as refused:
        return refused.message
    return found


def plainly(of: Table, key: Item) -> bytes:
    check_key(of, key)
    return encode_key(of.schema, key)


@pytest.mark.parametrize("of", TABLES, ids=lambda of: "".join(part.kind for part in of.schema.attributes))
@given(key=KEYS)
def test_a_key_lies_where_its_bytes_say(of: Table, key: Item) -> None:
    assert outcome(lambda: check_and_encode_key(of, key)) == outcome(lambda: plainly(of, key))


@pytest.mark.parametrize("text", ["a", "a\0", "\0b", "é", "x" * 257, "x" * 256])
def test_texts_of_every_kind_are_found(text: str) -> None:
    key = {"pk": {"S": text}, "sk": {"S": text}}
    assert check_and_encode_key(TABLES[1], key) == plainly(TABLES[1], key)
