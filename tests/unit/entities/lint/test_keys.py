"""Keys of two entities, over their templates: the same key, and partitions across tenants."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import create_model

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import FROM_SCOPE
from solotable._entities.declare.table import Index, Table
from solotable._entities.keys.key import Key
from solotable._entities.lint import Finding, lint
from solotable._entities.patterns.pattern import pattern


def of(table: Table, *codes: str) -> list[Finding]:
    return [finding for finding in lint(table) if finding.code in codes]


def entity(table: Table, name: str, keys: dict[str, Any], scope: str = "tenant", **fields: Any) -> None:
    """Declare an entity, its fields `str` unless given."""
    wanted = {
        each
        for key in keys.values()
        if isinstance(key, Key)
        for side in (key.partition, key.sort or "")
        for each in (side if isinstance(side, tuple) else _fields(side))
    }
    types: dict[str, Any] = {each: (fields.get(each, str), ...) for each in wanted}
    if table.tenant is not None and scope == "tenant":
        types[table.tenant] = (str, FROM_SCOPE)
    base = type(f"{name}Keys", (Entity,), dict(keys))
    create_model(name, __base__=base, __cls_kwargs__={"table": table, "tag": name, "scope": scope}, **types)


def _fields(text: str) -> list[str]:
    return [piece.partition("}")[0].partition(":")[0] for piece in text.split("{")[1:]]


def two(one: tuple[str, str], other: tuple[str, str], **fields: Any) -> list[Finding]:
    table = Table("Shop")
    entity(table, "One", {"key": Key(*one)}, **fields)
    entity(table, "Other", {"key": Key(*other)}, **fields)
    return of(table, "ST101")


@pytest.mark.parametrize(
    ("one", "other", "example"),
    [
        (("ORG#{a}", "USER#{b}"), ("ORG#{a}", "{b}#{c}"), "PK=ORG#x, SK=USER#x"),
        (("{a}", "{b}"), ("P", "Q"), "PK=P, SK=Q"),
        (("A#{a}", "v{n:06d}"), ("A#{a}", "{b}"), "PK=A#x, SK=v000000"),
        (("A#{kind}", "X"), ("A#{word}", "{b}"), "PK=A#up, SK=X"),
    ],
)
def test_two_entities_that_can_have_one_key(
    one: tuple[str, str], other: tuple[str, str], example: str
) -> None:
    (finding,) = two(one, other, n=int, kind=Literal["down", "up"], word=Literal["up", "left"])
    assert (finding.severity, finding.entity) == ("error", "Other")
    assert example in finding.message
    assert "One and Other" in finding.message


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ORG#{a}", "USER#{b}"), ("ORG#{a}", "ORDER#{b}")),
        (("ORG#{a}", "USER#{b}"), ("ORG#{a}", "USER#{b}#POST#{c}")),
        (("ORG#{a}", "{b}"), ("TEAM#{a}", "{b}")),
        (("A#{kind}", "X"), ("A#{word}", "X")),
    ],
)
def test_two_entities_that_never_have_one_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert two(one, other, kind=Literal["down"], word=Literal["up", "left"]) == []


def test_a_field_that_stands_twice_is_one_value() -> None:
    # One's sides are always alike, and Other's literals are not.
    assert two(("{a}", "{a}"), ("P", "Q")) == []
    (finding,) = two(("{a}", "{a}"), ("P", "P"))
    assert "PK=P, SK=P" in finding.message
    (finding,) = two(("{a}", "v{a}"), ("{b}", "{c}"))
    assert "PK=x, SK=vx" in finding.message
    assert two(("{n:02d}", "{n:03d}"), ("{a}", "900"), n=int) == []


def test_a_meeting_that_is_not_disproved_is_reported_without_an_example() -> None:
    # No text is P and then itself, but that takes more than one segment at a time to see.
    (finding,) = two(("{a}", "{a}"), ("{b}", "P{b}"))
    assert "can have the same key, so" in finding.message


def test_one_key_twice_in_an_index_is_allowed() -> None:
    table = Table("Shop", indexes=[Index("GSI1")])
    for name in ("One", "Other"):
        keys = {"key": Key(f"{name}#{{a}}", "X"), "by_b": Key("B#{b}", "{a}", index="GSI1")}
        entity(table, name, keys)
    assert of(table, "ST101") == []


def test_native_keys_are_compared_by_their_choices() -> None:
    for words, meets in ((Literal["b"], False), (Literal["a", "b"], True), (str, True)):
        table = Table("Shop", partition="owner", sort="kind")
        entity(table, "One", {"key": Key(("owner",), ("kind",))}, kind=Literal["a"])
        entity(table, "Other", {"key": Key(("owner",), ("kind",))}, kind=words)
        assert bool(of(table, "ST101")) == meets


def test_a_native_key_can_be_any_text_of_a_template() -> None:
    for words, meets in ((Literal["A#1"], True), (Literal["A1"], False), (str, True)):
        table = Table("Shop", sort="kind")
        entity(table, "One", {"key": Key("P#{a}", "A#{b}")})
        entity(table, "Other", {"key": Key("P#{a}", ("kind",))}, kind=words)
        assert bool(of(table, "ST101")) == meets


TENANTS = [
    ("T#{tenant_id}", "T#{tenant_id}", False),
    ("T#{tenant_id}#{a}", "T#{a}#{tenant_id}", True),
    ("{tenant_id}#{a}", "{a}#{tenant_id}", True),
    ("A#{tenant_id}#{a}", "B#{a}#{tenant_id}", False),
    ("T#{tenant_id}", "T#x{tenant_id}", True),
]


@pytest.mark.parametrize(("one", "other", "share"), TENANTS)
def test_tenants_never_share_a_partition(one: str, other: str, share: bool) -> None:
    table = Table("Shop", tenant="tenant_id")
    entity(table, "One", {"key": Key(one, "ONE#{s}")})
    entity(table, "Other", {"key": Key(other, "OTHER#{s}")})
    found = of(table, "ST103")
    assert bool(found) == share
    assert all(each.severity == "error" and "two tenants can share" in each.message for each in found)


def test_tenants_never_share_a_partition_of_an_index() -> None:
    table = Table("Shop", tenant="tenant_id", indexes=[Index("GSI1")])
    primary = Key("T#{tenant_id}", "ONE#{s}")
    entity(table, "One", {"key": primary, "by": Key("{tenant_id}#{a}", "{s}", index="GSI1")})
    other = Key("T#{tenant_id}", "OTHER#{s}")
    entity(table, "Other", {"key": other, "by": Key("{a}#{tenant_id}", "{s}", index="GSI1")})
    assert len(of(table, "ST103")) == 1


@pytest.mark.parametrize(("partition", "reported"), [("T#{a}", True), ("GLOBAL", False), ("{a}#{b}", True)])
def test_a_global_entity_stays_out_of_tenants_partitions(partition: str, reported: bool) -> None:
    table = Table("Shop", tenant="tenant_id")
    entity(table, "Own", {"key": Key("T#{tenant_id}", "OWN#{s}")})
    entity(table, "Shared", {"key": Key(partition, "SHARED#{s}")}, scope="global")
    found = of(table, "ST104")
    assert bool(found) == reported
    for each in found:
        assert (each.severity, each.entity) == ("error", "Shared")
        assert "'T#x'" in each.message


def inverted(*, with_pattern: bool) -> Table:
    """Two entities with native keys, and an index over the same attributes the other way round."""
    table = Table(
        "Shop", partition="owner", sort="thing", indexes=[Index("Inverse", partition="thing", sort="owner")]
    )
    keys = {"key": Key(("owner",), ("thing",))}
    entity(table, "One", keys, owner=Literal["one"])
    if with_pattern:
        other = keys | {"by_thing": Key(("thing",), ("owner",), index="Inverse")}

        def of_thing(cls: Any, thing: str) -> Any:
            """The owners of a thing."""
            return cls.by_thing.query(thing=thing)

        declare: Any = pattern
        entity(table, "Other", {**other, "of_thing": declare(classmethod(of_thing))}, owner=Literal["two"])
    return table


def test_items_that_are_in_an_index_without_a_key_on_it_are_reached() -> None:
    table = inverted(with_pattern=True)
    (finding,) = of(table, "ST102")
    assert "Other.of_thing reads its range, which reaches One.key on Inverse" in finding.message
    assert of(table, "ST301", "ST101") == []


def test_an_index_without_a_declared_key_is_unused_though_items_are_in_it() -> None:
    assert len(of(inverted(with_pattern=False), "ST301")) == 1


@pytest.mark.parametrize(
    ("partition", "told"),
    [("LEASE#{name}", True), ("UNIQUE", True), ("LEASES#{name}", False), ("A#LEASE#{name}", False)],
)
def test_an_entity_among_the_stores_own_items(partition: str, told: bool) -> None:
    table = Table("Houses")
    entity(table, "Tenancy", {"key": Key(partition, "LEASE")})
    found = of(table, "ST105")
    assert [each.severity for each in found] == ["warning"] * told
    if told:
        assert f"begin {partition!r} with another literal" in found[0].message
