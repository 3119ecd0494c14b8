"""Where a key lies: the short way for short texts leads to the same place as the long one."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._values import Item, canonical_number
from solotable.engines.sqlite.items.keys import (
    check_and_encode_key,
    check_key,
    decode_position,
    encode_index_key,
    encode_key,
)
from solotable.engines.sqlite.tables.catalog import Index, KeyAttribute, Schema, Table
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


NUMBERS = st.integers(-(10**37), 10**37).map(lambda number: {"N": canonical_number(f"{number}e-20")})
BINARIES = st.binary(min_size=1, max_size=9).map(lambda raw: {"B": b64encode(raw).decode()})
TEXT_VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9).map(
    lambda text: {"S": text}
)


@given(pk=TEXT_VALUES, sk=NUMBERS, of=TEXT_VALUES, at=BINARIES)
def test_key_bytes_say_which_item_they_belong_to(pk: Any, sk: Any, of: Any, at: Any) -> None:
    index = Index(
        id=1,
        name="by_of",
        is_global=True,
        schema=Schema(
            partition=(KeyAttribute("of", "S"), KeyAttribute("at", "B")), sort=(KeyAttribute("sk", "N"),)
        ),
        projection="ALL",
        projected=None,
        status="ACTIVE",
        position=(),
    )
    item = {"of": of, "at": at, "pk": pk, "sk": sk}
    own = encode_key(TABLES[2].schema, item)
    assert decode_position(TABLES[2], None, own) == {"pk": pk, "sk": sk}
    entry = encode_index_key(index, item, own)
    assert entry is not None
    position = decode_position(TABLES[2], index, entry)
    assert list(position.items()) == [("of", of), ("at", at), ("sk", sk), ("pk", pk)]
