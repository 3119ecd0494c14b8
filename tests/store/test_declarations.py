"""Declaration mistakes: each fails at class definition with one sentence that says what and what to do.

The sentence names the entity (or table, or index), the attribute, what was given, and the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, cast

import pytest
from pydantic import Field, NaiveDatetime

from solotable import (
    FROM_SCOPE,
    TTL,
    Attr,
    Created,
    Entity,
    Index,
    Key,
    Query,
    Table,
    Updated,
    Version,
    pattern,
)
from solotable.errors import DeclarationError


def _table(**settings: Any) -> Table:
    return Table("Things", indexes=[Index("GSI1"), Index("GSI2")], **settings)


def entity(
    fields: dict[str, Any],
    *,
    table: Table | None = None,
    values: dict[str, Any] | None = None,
    **settings: Any,
) -> Callable[[], Any]:
    """Return the definition of a class Thing with these annotations and values, not done yet."""

    def define() -> Any:
        body = {"__module__": __name__, "__annotations__": fields, **(values or {})}
        make: Any = type(Entity)
        return make("Thing", (Entity,), body, table=table or _table(), **settings)

    return define


def _two_with_one_tag() -> None:
    table = _table()

    class First(Entity, table=table, tag="same"):
        key = Key("A#{a}", "B#{b}")
        a: str
        b: str

    class Second(Entity, table=table, tag="same"):
        key = Key("C#{a}", "D#{b}")
        a: str
        b: str


KEY = Key("THING#{a}", "THING#{b}")
AB: dict[str, Any] = {"a": str, "b": str}
TENANT: dict[str, Any] = {"tenant_id": str, **AB}

#: By the mistake: how it is made, and what the sentence must name, in order.
MISTAKES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "no key": (entity(AB), ["Thing", "no key", "key = Key("]),
    "an index on the own key": (
        entity(AB, values={"key": Key("A#{a}", "B#{b}", index="GSI1")}),
        ["Thing.key", "index="],
    ),
    "a key without an index": (
        entity(AB, values={"key": KEY, "by_b": Key("B#{b}", "A#{a}")}),
        ["Thing.by_b", "needs index=", "key"],
    ),
    "an index that is not there": (
        entity(AB, values={"key": KEY, "by_b": Key("B#{b}", "A#{a}", index="GSI11")}),
        ["Thing.by_b", "'Things'", "'GSI11'", "did you mean 'GSI1'"],
    ),
    "two keys on one index": (
        entity(
            AB,
            values={
                "key": KEY,
                "x": Key("B#{b}", "A#{a}", index="GSI1"),
                "y": Key("A#{a}", "B#{b}", index="GSI1"),
            },
        ),
        ["Thing.y", "Thing.x", "'GSI1PK'", "another index"],
    ),
    "a field that is not there": (
        entity(AB, values={"key": Key("THING#{aa}", "THING#{b}")}),
        ["Thing.key", "aa", "a"],
    ),
    "a sort template too few": (
        entity(AB, values={"key": Key("THING#{a}")}),
        ["Thing.key", "sort", "'Things'"],
    ),
    "a sort template too many": (
        entity(AB, table=Table("Things", sort=None), values={"key": KEY}),
        ["Thing.key", "sort", "'Things'", "no sort key"],
    ),
    "a number without a width": (
        entity({"a": str, "b": int}, values={"key": KEY}),
        ["Thing.key", "b", ":0"],
    ),
    "a decimal without a width": (
        entity({"a": str, "b": Decimal}, values={"key": KEY}),
        ["Thing.key", "b", "f"],
    ),
    "a float in a key": (entity({"a": str, "b": float}, values={"key": KEY}), ["Thing.key", "b", "float"]),
    "a bool in a key": (entity({"a": str, "b": bool}, values={"key": KEY}), ["Thing.key", "b", "bool"]),
    "a list in a key": (entity({"a": str, "b": list[str]}, values={"key": KEY}), ["Thing.key", "b", "list"]),
    "a bad format": (
        entity({"a": str, "b": int}, values={"key": Key("THING#{a}", "THING#{b:6x}")}),
        ["Thing.key", "6x"],
    ),
    "a number's format on text": (
        entity(AB, values={"key": Key("THING#{a}", "THING#{b:06d}")}),
        ["Thing.key", "b", "06d"],
    ),
    "two fields without a delimiter": (
        entity(AB, values={"key": Key("THING#{a}{b}", "THING")}),
        ["Thing.key", "{a}{b}", "#"],
    ),
    "a reserved character": (
        entity(AB, values={"key": Key("THING $#{a}", "THING#{b}")}),
        ["Thing.key", "THING $#{a}"],
    ),
    "an unclosed brace": (
        entity(AB, values={"key": Key("THING#{a", "THING#{b}")}),
        ["Thing.key", "THING#{a"],
    ),
    "an empty slot": (entity(AB, values={"key": Key("THING#{}", "THING#{b}")}), ["Thing.key", "{}"]),
    "an optional part of the own key": (
        entity({"a": str, "b": str | None}, values={"key": KEY}),
        ["Thing.key", "'b'", "None"],
    ),
    "a field kept as a key attribute": (
        entity({**AB, "PK": str}, values={"key": KEY}),
        ["Thing", "'PK'", "Attr("],
    ),
    "a field kept as the tag": (
        entity({**AB, "c": Annotated[str, Attr("_type")]}, values={"key": KEY}),
        ["Thing.c", "'_type'", "Attr("],
    ),
    "a field kept as another entity's index key": (
        entity({**AB, "GSI2SK": str}, values={"key": KEY}),
        ["Thing.GSI2SK", "'GSI2SK'", "Attr("],
    ),
    "two fields under one name": (
        entity({**AB, "c": Annotated[str, Attr("b")]}, values={"key": KEY}),
        ["Thing", "'b'", "b, c"],
    ),
    "no tenant field": (
        entity(AB, table=_table(tenant="tenant_id"), values={"key": KEY}),
        ["Thing", "'tenant_id'", "FROM_SCOPE", "scope='global'"],
    ),
    "no tenant in the key": (
        entity(TENANT, table=_table(tenant="tenant_id"), values={"key": KEY, "tenant_id": FROM_SCOPE}),
        ["Thing.key", "{tenant_id}", "scope='global'"],
    ),
    "no tenant in an index key": (
        entity(
            TENANT,
            table=_table(tenant="tenant_id"),
            values={
                "key": Key("T#{tenant_id}", "A#{a}"),
                "by_b": Key("B#{b}", "T#{tenant_id}", index="GSI1"),
                "tenant_id": FROM_SCOPE,
            },
        ),
        ["Thing.by_b", "{tenant_id}", "scope='global'"],
    ),
    "a tenant of another type": (
        entity(
            {"tenant_id": int, **AB},
            table=_table(tenant="tenant_id"),
            values={"key": Key("T#{tenant_id:04d}", "A#{a}")},
        ),
        ["Thing.tenant_id", "str"],
    ),
    "a tenant with a default": (
        entity(
            TENANT,
            table=_table(tenant="tenant_id"),
            values={"key": Key("T#{tenant_id}", "A#{a}"), "tenant_id": "acme"},
        ),
        ["Thing.tenant_id", "FROM_SCOPE"],
    ),
    "two versions": (
        entity({**AB, "v": Annotated[int, Version()], "w": Annotated[int, Version()]}, values={"key": KEY}),
        ["Thing", "version", "v, w"],
    ),
    "a version of another type": (
        entity({**AB, "v": Annotated[str, Version()]}, values={"key": KEY}),
        ["Thing.v", "Version", "str", "int"],
    ),
    "an optional version": (
        entity({**AB, "v": Annotated[int | None, Version()]}, values={"key": KEY}),
        ["Thing.v", "Version", "int"],
    ),
    "a marker that is not called": (
        entity({**AB, "v": Annotated[int, Version]}, values={"key": KEY}),
        ["Thing.v", "Version", "Version("],
    ),
    "a lifetime that the table does not know": (
        entity({**AB, "until": Annotated[datetime, TTL()]}, values={"key": KEY}),
        ["Thing.until", "None", "ttl='until'"],
    ),
    "a lifetime of another type": (
        entity({**AB, "until": Annotated[str, TTL()]}, table=_table(ttl="until"), values={"key": KEY}),
        ["Thing.until", "TTL", "str", "datetime"],
    ),
    "two lifetimes": (
        entity(
            {**AB, "until": Annotated[datetime, TTL()], "till": Annotated[datetime, TTL()]},
            table=_table(ttl="until"),
            values={"key": KEY},
        ),
        ["Thing", "ttl", "until, till"],
    ),
    "a stamp of another type": (
        entity({**AB, "made": Annotated[str, Created()]}, values={"key": KEY}),
        ["Thing.made", "Created", "str", "datetime"],
    ),
    "two roles on one field": (
        entity({**AB, "made": Annotated[datetime, Created(), Updated()]}, values={"key": KEY}),
        ["Thing.made", "Created", "Updated"],
    ),
    "a naive datetime": (
        entity({**AB, "at": NaiveDatetime}, values={"key": KEY}),
        ["Thing.at", "naive", "time zone"],
    ),
    "a list in flat mode": (
        entity({**AB, "c": list[str]}, values={"key": KEY}, flat=True),
        ["Thing.c", "list", "flat", "Json()"],
    ),
    "a map in a flat table": (
        entity({**AB, "c": dict[str, int]}, table=_table(flat=True), values={"key": KEY}),
        ["Thing.c", "dict", "flat", "Json()"],
    ),
    "a set of lists": (
        entity({**AB, "c": set[tuple[int, int]]}, values={"key": KEY}),
        ["Thing.c", "set[tuple[int, int]]"],
    ),
    "a type without a stored form": (
        entity({**AB, "c": Callable[[], int]}, values={"key": KEY}),
        ["Thing.c", "no DynamoDB form"],
    ),
    "a native key of another name": (
        entity(AB, values={"key": Key(("a",), ("b",))}),
        ["Thing.key", "'a'", "'PK'", "Attr('PK')"],
    ),
    "a native key of another type": (
        entity({"PK": str, "SK": int}, values={"key": Key(("PK",), ("SK",))}),
        ["Thing.key", "'SK'", "N", "S", "SK:N"],
    ),
    "a native key with too many fields": (
        entity({"PK": str, "SK": str}, values={"key": Key(("PK", "SK"), ("SK",))}),
        ["Thing.key", "2 partition fields", "PK"],
    ),
    "a template for a number": (
        entity(AB, table=Table("Things", sort="n:N"), values={"key": KEY}),
        ["Thing.key", "n:N", "tuple"],
    ),
    "a template over a field that is the key": (
        entity({"PK": str, "b": str}, values={"key": Key("THING#{PK}", "B#{b}")}),
        ["Thing.key", "'PK'", "('PK',)", "Attr()"],
    ),
    "a local index with another partition": (
        entity(
            AB,
            table=Table("Things", indexes=[Index("L", local=True)]),
            values={"key": KEY, "by_b": Key("OTHER#{a}", "B#{b}", index="L")},
        ),
        ["Thing.by_b", "'OTHER#{a}'", "'L'", "'THING#{a}'"],
    ),
    "a local index without a sort key": (
        lambda: Table("Things", sort=None, indexes=[Index("L", local=True)]),
        ["'Things'", "'L'", "local"],
    ),
    "a local index with a partition": (
        lambda: Index("L", local=True, partition="x"),
        ["'L'", "local", "remove partition="],
    ),
    "an index with five parts": (lambda: Index("I", partition=tuple("abcde")), ["'I'", "at most 4"]),
    "an index of an unknown type": (lambda: Index("I", sort="n:X"), ["'I'", "'n:X'", "S, N or B"]),
    "an index with an odd projection": (
        lambda: Index("I", projection="SOME"),
        ["'I'", "ALL", "KEYS_ONLY"],
    ),
    "an index without a name": (lambda: Index(""), ["Index", "''"]),
    "a table without a name": (lambda: Table(""), ["Table", "''"]),
    "a table of a short name": (lambda: Table("T"), ["Table 'T'", "3 to 255 characters"]),
    "a table of a long name": (lambda: Table("T" * 256), ["Table 'TTT", "3 to 255 characters"]),
    "a table of an odd name": (lambda: Table("x y!"), ["Table 'x y!'", "a letter (a-z, A-Z), a digit"]),
    "a table whose tag is a key": (lambda: Table("Things", tag="PK"), ["'Things'", "PK"]),
    "an empty attribute name": (lambda: Attr(""), ["Attr('')", "is empty"]),
    "a pattern that is no class method": (
        lambda: pattern(lambda cls: cls),
        ["@pattern", "@classmethod"],
    ),
    "a tag that is taken": (_two_with_one_tag, ["Second", "'Things'", "'same'", "First", "tag="]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_sentence(mistake: str) -> None:
    define, words = MISTAKES[mistake]
    with pytest.raises(DeclarationError) as refused:
        define()
    text = str(refused.value)
    for word in words:
        assert word in text, f"{word!r} is missing from: {text}"
    assert "\n" not in text
    assert len(text) < 300


def test_a_class_without_a_table_is_abstract() -> None:
    class Base(Entity):
        key = Key("A#{a}", "B#{b}")
        a: str
        b: str

    with pytest.raises(
        DeclarationError, match=r"Base is not bound to a table; write class Base\(\.\.\., table="
    ):
        Base.plan()

    class Made(Base, table=_table()):
        c: int = 0

    assert Made.plan().primary.parts == ("a", "b")


def test_a_pattern_that_returns_no_query_is_named() -> None:
    class Thing(Entity, table=_table()):
        key = Key("A#{a}", "B#{b}")
        a: str
        b: str

        @pattern
        @classmethod
        def wrong(cls) -> Query[Any]:
            """Not a query."""
            return cast(Query[Any], 5)

    with pytest.raises(DeclarationError, match=r"Thing\.wrong returned 5"):
        Thing.wrong()


def test_json_and_sets_are_flat() -> None:
    from solotable import Json

    class Thing(Entity, table=_table(flat=True)):
        key = Key("A#{a}", "B#{b}")
        a: str
        b: str
        c: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
        d: set[int] = Field(default_factory=set)

    item = Thing.plan().encode({"a": "1", "b": "2", "c": {"x": [1]}, "d": {1}})
    assert (item["c"], item["d"]) == ({"S": '{"x":[1]}'}, {"NS": ["1"]})
