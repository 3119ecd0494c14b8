"""Code that mypy must accept with the plugin: inherited keys, and what the plugin cannot read."""

from __future__ import annotations

from collections.abc import Generator
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal, Self, TypeVar, assert_type

from pydantic import BaseModel, Field, computed_field

from solotable import (
    FROM_SCOPE,
    AsyncStore,
    Entity,
    EntityKey,
    Index,
    Key,
    Query,
    Store,
    Table,
    flow,
    pattern,
)

E = TypeVar("E", bound=Entity)

PREFIX: Final = "TENANT#{tenant_id}"
app = Table(
    "App",
    tenant="tenant_id",
    indexes=[Index("GSI1"), Index("GSI2", partition=("tenant_id", "state"), sort=("points:N", "task_id"))],
)

other = Table("Other", tenant="tenant_id")


def table_named(name: str) -> Table:
    return Table(name, tenant="org")


class Base(Entity):
    """An abstract base: its subclasses inherit the key and the fields."""

    key = Key(PREFIX, "TASK#{task_id}")
    tenant_id: str = FROM_SCOPE
    task_id: str


class Address(BaseModel):
    street: str
    city: str | None = None
    lines: list[str] = Field(default_factory=list)


class Task(Base, table=app):
    by_day = Key("TENANT#{tenant_id}#" + "DAY#{due:day}", "{due:s}#{task_id}", index="GSI1", shards=4)
    by_state = Key(("tenant_id", "state"), ("points", "task_id"), index="GSI2")
    due: datetime
    state: Literal["open", "done"] = "open"
    points: int = 0
    cost: Decimal | None = None
    tags: frozenset[str] = frozenset()
    notes: list[str] = Field(default_factory=list)
    address: Address | None = None
    extra: dict[str, int] = Field(default_factory=dict)

    @pattern
    @classmethod
    def of_state(cls, state: Literal["open", "done"]) -> Query[Self]:
        """The tasks of a state, by their points."""
        return cls.by_state.query(state=state)


class Plain(Entity, table=other):
    """Its tenant has no default, and a tenant's store supplies it all the same."""

    key = Key("TENANT#{tenant_id}", "PLAIN#{plain_id}")
    tenant_id: str
    plain_id: str


class Computed(Entity, table=other):
    """Its key cannot be read."""

    key = Key(*["TENANT#{tenant_id}", "COMPUTED#{computed_id}"])
    tenant_id: str = FROM_SCOPE
    computed_id: str


class Derived(Entity, table=other):
    """Its key has a computed field, which follows from another part."""

    key = Key("TENANT#{tenant_id}#{start}", "DERIVED#{name}")
    tenant_id: str = FROM_SCOPE
    name: str

    @computed_field  # type: ignore[prop-decorator]  # Pydantic documents this form
    @property
    def start(self) -> str:
        return self.name[:1]


class Elsewhere(Entity, table=table_named("Third")):
    """Its table cannot be read, so that the tenant is not known."""

    key = Key("ORG#{org}", "ELSEWHERE#{number:04d}")
    org: str
    number: int


class Heading(BaseModel):
    state: str


def by_key(db: Store, key: dict[str, Any], names: list[str]) -> None:
    assert_type(db.get(Task, task_id="t"), Task | None)
    db.get(Task, task_id="t", tenant_id="acme", consistent=True)
    db.get(Plain, plain_id="p")
    db.get(Computed, computed_id="c")
    db.get(Derived, name="zoe")
    db.get(Derived, name="zoe", start="z")
    db.page(Derived.key.query(start="z").since(name="zoe"))
    db.page(Derived.key.query(start=5))  # type: ignore[arg-type]  # the type of the property
    db.get(Elsewhere, number=5)
    db.get(Task, **key)
    db.get(Elsewhere, **key)
    db.get_many(Task, [{"task_id": "t"}, {"task_id": "u", "tenant_id": "acme"}])
    db.get_many(Task, [key])
    db.get_many(Task, [{"task_id": each} for each in names])
    assert_type(Task.key(task_id="t"), EntityKey[Task])
    db.collection(Plain, Computed, plain_id="p")


def generic(db: Store, kind: type[E], entity: E, task: type[Task], key: dict[str, Any]) -> E | None:
    db.get(kind, anything="x")
    db.get(task, task_id="t")
    db.update(entity, set={"anything": 1})
    db.delete(entity)
    return db.get(kind, **key)


def updates(db: Store, task: Task, changes: dict[str, Any], name: str) -> None:
    assert_type(db.update(task, set={"state": "done", "cost": None, "points": 3}), Task)
    db.update(Task, task_id="t", set=changes)
    db.update(Task, task_id="t", set={name: 1})
    db.update(Task, task_id="t", set={**changes, "points": 1})
    db.update(task, set={"address.city": "Porto", "address.lines[0]": "x", "extra.size": 3})
    db.update(task, set={"address": Address(street="x"), "tags": frozenset("a"), "notes": []})
    db.update(task, add={"points": 5, "cost": Decimal(1), "tags": {"a"}, "extra.size": 1})
    db.update(task, append={"notes": ["x"], "address.lines": ("y",)}, prepend={"notes": ["z"]})
    db.update(task, delete={"tags": ["a"]}, remove=["address", "extra.size"], set_if_missing={"points": 1})
    db.upsert(Task, task_id="t", set={"due": task.due}, add={"points": 1})
    db.modify(Task, lambda stored: stored, task_id="t", default=task)


def ranges(db: Store, day: date, moment: datetime) -> None:
    query = Task.by_day.query().since(due=moment).descending()
    assert_type(query, Query[Task])
    Task.by_day.query(due=day)
    Task.by_state.query(state="open").between(points=(1, 5))
    Task.by_state.query(state="open", points=1).where(lambda t: t.cost == 1).starts_with(task_id="x")
    Task.of_state("open").since(points=5)
    Task.of_state("open").select(Heading).since(points=5)
    db.page(Task.key.query().after(task_id="t"))


async def awaited(db: AsyncStore) -> None:
    assert_type(await db.get(Task, task_id="t"), Task | None)
    async with db.transaction() as tx:
        tx.check(Task, task_id="t", where=lambda t: t.points > 1)
        tx.update(Task, task_id="t", set={"points": 2})


def a_flow(scope: flow.Scope) -> Generator[Any, Any, Task]:
    task = yield from flow.require(scope, Task, task_id="t")
    yield from flow.delete(scope, task)
    return (yield from flow.update(scope, Task, task_id="t", set={"points": 2}))
