"""Indexes and attributes as they are kept, and the list of codes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

import solotable
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import Attr, Created, Json, Updated
from solotable._entities.declare.table import Index, Table
from solotable._entities.keys.key import Key
from solotable._entities.lint import CODES, Finding, lint
from solotable._entities.traits.soft_delete import SoftDelete

PAGE = Path(solotable.__file__).parents[2] / "docs" / "reference" / "lint.md"


def of(table: Table, *codes: str) -> list[Finding]:
    return [finding for finding in lint(table) if finding.code in codes]


def test_an_entity_without_the_timestamps_of_its_library_is_found() -> None:
    table = Table("Shop", adopt="toolbox")

    class Customer(Entity, table=table):
        key = Key("CUSTOMER#{name}", "PROFILE")
        name: str

    (finding,) = of(table, "ST403")
    assert finding.severity == "warning"
    assert "stored as _ct and" in finding.message
    assert "stored as _md" in finding.message

    class Stamped(Entity, table=table):
        key = Key("STAMPED#{name}", "PROFILE")
        name: str
        created: Annotated[datetime | None, Created()] = None
        modified: Annotated[datetime | None, Updated()] = None

    assert [each.entity for each in of(table, "ST403")] == ["Customer"]


def test_an_unused_index() -> None:
    table = Table("Shop", indexes=[Index("GSI1"), Index("GSI2")])

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        by_owner = Key("OWNER#{owner}", "ORDER#{order_id}", index="GSI2")
        order_id: str
        owner: str

    assert Order.plan().indexes
    (finding,) = of(table, "ST301")
    assert (finding.severity, finding.entity, finding.table) == ("warning", None, "Shop")
    assert "'GSI1'" in finding.message


def test_an_index_key_that_may_be_absent_altogether() -> None:
    table = Table("Shop", indexes=[Index("GSI1"), Index("GSI2")])

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        by_owner = Key("OWNER#{owner}", "{rank:03d}", index="GSI1")
        by_rank = Key("RANK#{rank:03d}", "ORDER#{order_id}", index="GSI2")
        order_id: str
        owner: str | None = None
        rank: int | None = None

    assert Order.plan().indexes
    (finding,) = of(table, "ST302")
    assert finding.severity == "note"
    assert finding.message.startswith("Order.by_owner is not in index 'GSI1'")


def test_reserved_words_on_the_wire() -> None:
    table = Table("Shop")

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        order_id: str
        name: str
        Status: str
        size: Annotated[int, Attr("how_large")]
        n: Annotated[int, Attr("count")]

    (finding,) = of(table, "ST401")
    assert finding.severity == "note"
    assert "Order stores name, Status, count, which" in finding.message
    assert finding.where is not None
    line = int(finding.where.rpartition(":")[2])
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[line - 1].startswith("    class Order(")
    assert Order.__module__ == __name__


def test_nested_values_in_a_flat_table() -> None:
    table = Table("Shop", flat=True)

    class Order(Entity, table=table, flat=False):
        key = Key("ORDER#{order_id}", "ORDER")
        order_id: str
        lines: list[str]
        kept: Annotated[list[str], Json()]

    assert Order.plan().attributes
    (finding,) = of(table, "ST402")
    assert (finding.severity, finding.entity) == ("warning", "Order")
    assert "in lines although table 'Shop' is flat" in finding.message


def test_nested_values_in_one_entity_of_many() -> None:
    table = Table("Shop")
    for name, kind in (("One", str), ("Two", str), ("Three", list[str])):
        body = {
            "key": Key(f"{name}#{{id}}", "X"),
            "__annotations__": {"id": str, "value": kind},
            "__module__": __name__,
        }
        assert of(table, "ST402") == []
        metaclass: Any = type(Entity)
        metaclass(name, (Entity,), body, table=table)
    (finding,) = of(table, "ST402")
    assert (finding.severity, finding.entity) == ("note", "Three")


def test_a_sound_table_has_no_findings() -> None:
    table = Table("Shop")

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        order_id: str

    assert list(table.plans) == [Order.__name__]
    assert lint(table) == []
    assert lint(Table("Empty")) == []


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^### (ST\d+): ", text, re.MULTILINE) == list(CODES)
    assert all(f"### {code}: {title}" in text for code, title in CODES.items())


@pytest.mark.parametrize(
    ("projection", "found"),
    [("ALL", 0), ("KEYS_ONLY", 0), (["size"], 1), (["size", "_deleted_at"], 0)],
    ids=str,
)
def test_an_index_without_the_time_of_a_soft_delete_is_noted(projection: Any, found: int) -> None:
    table = Table("Narrow", indexes=[Index("GSI1", projection=projection)])

    class Parcel(Entity, table=table):
        key = Key("PARCEL#{parcel_id}", "PARCEL")
        by_size = Key("SIZE#{size:03d}", "{parcel_id}", index="GSI1")
        deletion = SoftDelete(grace=timedelta(days=30))
        parcel_id: str
        size: int

    class Plain(Entity, table=table):
        key = Key("PLAIN#{name}", "PLAIN")
        by_name = Key("NAME#{name}", "NAME", index="GSI1")
        name: str

    assert Parcel.plan().name, Plain.plan().name
    findings = [each for each in lint(table) if each.code == "ST304"]
    assert [(each.severity, each.entity) for each in findings] == [("note", "Parcel")] * found
