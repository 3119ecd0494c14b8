"""Histories and names as they are declared: what could lose a snapshot or a name is refused there."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from solotable import FROM_SCOPE, Entity, History, Index, Key, Names, Table, Version
from solotable._entities.keys.templates import Template
from solotable._entities.lint import lint
from solotable._entities.traits.history import may_overlap
from solotable.errors import DeclarationError


def declare(trait: Any, *, sort: Any = "C#{node_id}#LATEST", versioned: bool = True) -> type[Entity]:
    table = Table("Tab", tenant="tenant_id", indexes=[Index("GSI1")])
    if versioned:

        class Versioned(Entity, table=table):
            key = Key("T#{tenant_id}", sort)
            kept = trait
            tenant_id: str = FROM_SCOPE
            node_id: str
            number: int = 0
            origin: int | None = None
            version: Annotated[int, Version()] = 0

        return Versioned

    class Bare(Entity, table=table):
        key = Key("T#{tenant_id}", sort)
        kept = trait
        tenant_id: str = FROM_SCOPE
        node_id: str

    return Bare


@pytest.mark.parametrize(
    ("trait", "text"),
    [
        (History("C#{node_id}#v{version}"), "width|06d"),
        (
            History("C#{node_id}#v{version:+06d}"),
            r"needs a width, or v10 would sort before v9.*\{version:06d\}",
        ),
        (History("C#v{version:06d}"), r"has no \{node_id\} of the primary key"),
        (History("C#v{version:06d}#{node_id}"), "must end with the version"),
        (History("C#{node_id}#LATEST"), "must end with the version"),
        (
            History("C#{node_id}#{number:04d}#v{version:06d}"),
            r"\{number\} .* is not part of the primary key",
        ),
        (History("C#{nodeid}#v{version:06d}"), "did you mean node_id"),
        (History("C#{node_id}#v{version:06d}", keep=0), "keep=0 must be at least 1"),
        (History("C#{node_id}#v{version:06d}", on_delete="purge"), "needs keep= of at most 90"),
        (History("C#{node_id}#v{version:06d}", on_delete="purge", keep=91), "needs keep= of at most 90"),
        (History("C#{node_id}#v{version:06d}", on_delete="drop"), "'drop'"),  # type: ignore[arg-type]
        (History("C#{node_id}#v{version:06d}", restored_from="orign"), "did you mean"),
        (History("C#{node_id}#v{version:06d}", restored_from="number"), "int | None = None"),
        (History("C#{node_id}#v{version:06d}", restored_from="version"), "int | None = None"),
        (Names("nodeid"), "'nodeid' is not a field"),
        (Names("number"), "is not part of Versioned.key"),
        (Names("tenant_id"), "is not part of Versioned.key"),
        (Names("node_id", most=0), "most=0"),
        (Names("node_id", most=96), "which holds at most 95"),
    ],
)
def test_what_cannot_work_is_refused(trait: Any, text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        declare(trait)


def test_both_need_a_version() -> None:
    for trait in (History("C#{node_id}#v{version:06d}"), Names("node_id")):
        with pytest.raises(
            DeclarationError, match=r"add a field: version: Annotated\[int, Version\(\)\] = 0"
        ):
            declare(trait, versioned=False)


def test_one_text_is_not_several_names() -> None:
    with pytest.raises(DeclarationError, match=r"protected= is a tuple of names; write \('/',\)"):
        Names("path", protected="/")


def test_snapshots_need_a_sort_template() -> None:
    class_table = Table("Tab", sort="node_id")
    with pytest.raises(DeclarationError, match="needs a sort template"):

        class Native(Entity, table=class_table):
            key = Key("T#{kind}", ("node_id",))
            history = History("{node_id}#v{version:06d}")
            kind: str
            node_id: str
            version: Annotated[int, Version()] = 0


def test_a_snapshot_never_lies_on_the_entity_itself() -> None:
    trait = History("C#{node_id}#v{version:06d}")
    with pytest.raises(DeclarationError, match=r"can give the same key as .* of the entity itself"):
        declare(trait, sort="C#{node_id}#v000001")
    assert declare(trait, sort="C#{node_id}#v1").plan().traits


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("C#{a}#v{n:06d}", "C#{a}#LATEST", False),
        ("C#{a}#v{n:06d}", "C#{a}", False),
        ("C#{a}#v{n:06d}", "C#{a}#{b}", True),
        ("C#{a}#v{n:06d}", "C#{a}#v000001", True),
        ("C#{a}#v{n:06d}", "C#{a}#v1", False),
        ("C#{a}#v{n:06d}", "{b}#{a}#vest", False),
        ("C#{a}#v{n:06d}#S", "C#{a}#v{n:06d}", False),
        ("C#{a}#v{n:06d}", "D#{a}#v{n:06d}", False),
        ("v{n:06d}", "w{n:06d}", False),
        ("v{n:06d}", "{a}", True),
    ],
)
def test_which_templates_can_give_the_same_key(one: str, other: str, equal: bool) -> None:
    types = {"a": str, "b": str, "n": int}
    first, second = (Template.compile(text, types, where="x") for text in (one, other))
    assert may_overlap(first, second) is equal
    assert may_overlap(second, first) is equal


def test_the_linter_knows_the_keys_of_snapshots() -> None:
    (trait,) = declare(History("C#{node_id}#v{version:06d}")).plan().traits
    assert [template.text for template in trait.sort_templates] == ["C#{node_id}#v{version:06d}"]


def test_the_linter_finds_an_entity_that_can_lie_on_a_snapshot() -> None:
    table = Table("Tab")

    class Page(Entity, table=table):
        key = Key("PAGES", "PAGE#{page_id}#LATEST")
        history = History("PAGE#{page_id}#v{version:03d}")
        page_id: str
        version: Annotated[int, Version()] = 0

    assert [each for each in lint(table) if each.code == "ST101"] == []

    class Note(Entity, table=table):
        key = Key("PAGES", "PAGE#{page_id}#{slot}")
        page_id: str
        slot: str

    told = [each.message for each in lint(table) if each.code == "ST101"]
    assert any("Items of Page.history can have the same key as Note" in each for each in told)
