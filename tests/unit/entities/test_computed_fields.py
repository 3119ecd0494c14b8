"""Computed fields in keys: which fields they read, and the declarations that are rejected."""

# mypy: disable-error-code="prop-decorator"
# Pydantic documents `@computed_field` over `@property`, which mypy does not support.

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import computed_field

from solotable import Entity, History, Index, Key, Query, Table, Unique, Version, pattern
from solotable._entities.codecs.computed_fields import computed_fields
from solotable._entities.lint import lint
from solotable._entities.patterns.access_patterns import access_patterns
from solotable.errors import DataError, DeclarationError
from solotable.seeding import Factory

shop = Table("ComputedShop", indexes=[Index("GSI1")])


def _first(entity: Any) -> str:
    return str(entity.name)


class _Words(Entity):
    """Properties that read fields in several ways."""

    limit_of_all: ClassVar[int] = 3
    name: str = ""
    tags: tuple[str, ...] = ()
    price: int = 0

    @computed_field
    @property
    def plain(self) -> str:
        return self.name.lower()

    @computed_field
    @property
    def nested(self) -> str:
        return f"{self.plain}-{self._price()}-{self.limit_of_all}-{self._constant()}"

    @computed_field
    @property
    def closure(self) -> bool:
        return any(each == self.name for each in self.tags)

    @computed_field
    @property
    def passed(self) -> str:
        return _first(self)

    @computed_field
    @property
    def by_name(self) -> str:
        return str(getattr(self, "price"))  # noqa: B009 - what the test is about

    @computed_field
    @property
    def recursive(self) -> str:
        return self.recursive if self.price else self.name

    def _price(self) -> int:
        return self.price

    @staticmethod
    def _constant() -> int:
        return 1


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("plain", {"name"}),
        ("nested", {"name", "price"}),
        ("recursive", {"name", "price"}),
        ("passed", None),
        ("by_name", None),
    ],
)
def test_the_sources_are_the_fields_that_the_code_reads(name: str, sources: set[str] | None) -> None:
    found = computed_fields(_Words, frozenset({name}))[name]
    assert found.is_exact is (sources is not None)
    assert found.sources == (sources or {"name", "tags", "price"})


def test_a_closure_reads_its_fields_or_all() -> None:
    # From Python 3.13 on, the bytecode does not tell a closure from another use.
    assert computed_fields(_Words, frozenset({"closure"}))["closure"].sources >= {"name", "tags"}


def test_a_primary_key_needs_parts_that_cannot_change() -> None:
    with pytest.raises(DeclarationError, match="computed from mail, which an update can change"):

        class Changing(Entity, table=shop):
            key = Key("C#{domain}", "{number}")
            number: str
            mail: str

            @computed_field
            @property
            def domain(self) -> str:
                return self.mail.partition("@")[2]

    with pytest.raises(DeclarationError, match="its code does not show from which fields"):

        class Hidden(Entity, table=shop):
            key = Key("H#{start}", "{name}")
            name: str

            @computed_field
            @property
            def start(self) -> str:
                return _first(self)


def test_a_cached_property_is_rejected() -> None:
    with pytest.raises(DeclarationError, match="cached_property"):

        class Cached(Entity, table=shop):
            key = Key("CACHED", "{name}")
            by_start = Key("CACHED", "{start}", index="GSI1")
            name: str

            @computed_field
            @cached_property
            def start(self) -> str:
                return self.name[:1]


def test_a_marker_on_a_computed_field_is_rejected() -> None:
    with pytest.raises(DeclarationError, match=r"Marked.handle is a computed field .* Unique\(\)"):

        class Marked(Entity, table=shop):
            key = Key("MARKED", "{name}")
            name: str

            @computed_field
            @property
            def handle(self) -> Annotated[str, Unique()]:
                return self.name


def test_a_key_of_attributes_cannot_have_a_computed_field() -> None:
    native = Table("ComputedNative", indexes=[Index("GSI1", partition="kind", sort=None)])
    with pytest.raises(DeclarationError, match="'kind' is a computed field and is not stored"):

        class Native(Entity, table=native):
            key = Key("N", "{name}")
            by_kind = Key(("kind",), index="GSI1")
            name: str

            @computed_field
            @property
            def kind(self) -> str:
                return self.name


def test_an_int_needs_a_width_and_a_primary_key_no_none() -> None:
    with pytest.raises(DeclarationError, match="fixed width"):

        class Wide(Entity, table=shop):
            key = Key("WIDE", "{name}")
            by_size = Key("WIDE", "{size}", index="GSI1")
            name: str

            @computed_field
            @property
            def size(self) -> int:
                return len(self.name)

    with pytest.raises(DeclarationError, match="may be None"):

        class Absent(Entity, table=shop):
            key = Key("A#{start}", "{name}")
            name: str

            @computed_field
            @property
            def start(self) -> str | None:
                return self.name or None


def test_a_value_of_another_type_is_rejected() -> None:
    class Wrong(Entity, table=shop):
        key = Key("WRONG", "{name}")
        by_start = Key("WRONG", "{start}", index="GSI1")
        name: str

        @computed_field
        @property
        def start(self) -> str:
            return 5  # type: ignore[return-value]  # what the test is about

    with pytest.raises(DataError, match="start"):
        Wrong(name="x").to_item()


def test_reports_the_linter_samples_and_the_history_accept_them() -> None:
    table = Table("ComputedReports", indexes=[Index("GSI1")])

    class Member(Entity, table=table):
        key = Key("TEAM#{team}", "{start}#{name}")
        by_start = Key("STARTS", "{start}#{name}", index="GSI1")
        history = History("HISTORY#{name}#v{version:06d}")
        team: str
        name: str
        version: Annotated[int, Version()] = 0

        @computed_field
        @property
        def start(self) -> str:
            return self.name[:1]

        @pattern
        @classmethod
        def starting(cls, start: str) -> Query[Member]:
            """The members whose names start with a letter."""
            return cls.by_start.query(start=start)

        @pattern
        @classmethod
        def named(cls, team: str, name: str) -> Query[Member]:
            """The member of a name."""
            return cls.key.query(team=team, name=name)

    assert {each.code for each in lint(table)} == {"ST201", "ST401"}
    conditions = {each.name: each.key_condition for each in access_patterns([table])}
    assert conditions["Member.starting"] == 'GSI1PK = STARTS AND begins_with(GSI1SK, "{start}#")'
    member = Factory(Member).build()
    assert member.to_item()["SK"]["S"].startswith(member.start)
    with table.open("sqlite://") as db:
        stored = db.put(Member(team="a", name="zoe"))
        assert db.require(Member, team="a", name="zoe") == stored
        assert list(db.page(Member.starting("z"))) == [stored]
        assert list(db.page(Member.named("a", "zoe"))) == [stored]
        db.put(stored)
        assert [each.version for each in db.history(Member, team="a", name="zoe").list()] == [1]
