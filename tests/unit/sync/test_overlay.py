"""The overlay answers like the engine below would after the same writes, and writes nothing to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import Database, Entity, Index, Key, Store, Table
from solotable._entities.declare.table import Table as DeclaredTable
from solotable.errors import ConditionFailed, DataError, SolotableError, TransactionFailed
from solotable.sync.push.overlay import Overlay

table = Table("Things", indexes=[Index("GSI1")])


class Thing(Entity, table=table):
    key = Key("GROUP#{group}", "THING#{name}")
    by_size = Key("SIZE#{size}", "{name}", index="GSI1")

    group: str
    name: str
    size: str = "s"
    count: int = 0


def over(db: Any) -> tuple[Overlay, Store]:
    tables: dict[str, DeclaredTable] = {"Things": table}
    overlay = Overlay(db.engine, tables, lambda _table, _item: False)
    return overlay, Store(overlay, db.scope)


@pytest.fixture(scope="module")
def databases() -> Iterator[tuple[Database, Database]]:
    with table.open("sqlite://") as one, table.open("sqlite://") as other:
        yield one, other


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "create", "update", "upsert", "delete", "page", "index", "get", "transact"]),
        st.sampled_from("abcdef"),
        st.sampled_from("sml"),
    ),
    max_size=12,
)


def act(store: Store, group: str, step: tuple[str, str, str]) -> Any:
    verb, name, size = step[0], step[1], step[2] + group
    try:
        match verb:
            case "put":
                return store.put(Thing(group=group, name=name, size=size))
            case "create":
                return store.create(Thing(group=group, name=name, size=size))
            case "update":
                return store.update(Thing, group=group, name=name, set={"size": size}, add={"count": 1})
            case "upsert":
                return store.upsert(Thing, group=group, name=name, set={"size": size})
            case "delete":
                return store.delete(Thing, group=group, name=name)
            case "page":
                page = store.page(Thing.key.query(group=group).descending(), limit=2)
                more = store.page(Thing.key.query(group=group).descending(), limit=3, cursor=page.cursor)
                return page.items, more.items if page.cursor else []
            case "index":
                return list(store.all(Thing.by_size.query(size=size))), store.count(
                    Thing.by_size.query(size=size)
                )
            case "transact":
                with store.transaction() as tx:
                    tx.put(Thing(group=group, name=name, size=size))
                    tx.create(Thing(group=f"other {group}", name=name))
                return None
            case _:
                return store.get(Thing, group=group, name=name), store.get_many(
                    Thing, [{"group": group, "name": name}]
                )
    except SolotableError as error:
        return type(error)


_GROUPS = itertools.count()


@settings(max_examples=25, deadline=None)
@given(before=STEPS, after=STEPS)
def test_an_overlay_answers_as_the_table_would(databases: Any, before: Any, after: Any) -> None:
    one, other = databases
    group = f"g{next(_GROUPS)}"
    for step in before:
        act(one, group, step)
        act(other, group, step)
    _, store = over(one)
    stored = list(one.all(Thing.key.query(group=group)))
    for step in after:
        assert act(store, group, step) == act(other, group, step), step
    assert list(store.all(Thing.key.query(group=group))) == list(other.all(Thing.key.query(group=group)))
    assert list(one.all(Thing.key.query(group=group))) == stored


def test_a_rollback_undoes_the_writes_since_a_mark() -> None:
    with table.open("sqlite://") as db:
        overlay, store = over(db)
        store.put(Thing(group="g", name="kept"))
        mark = overlay.mark()
        store.update(Thing, group="g", name="kept", add={"count": 1})
        store.put(Thing(group="g", name="undone"))
        assert overlay.weight(mark)[0] == 2
        overlay.roll_back(mark)
        (change,) = overlay.changes()
        assert (change.before, change.after and change.after["count"]) == (None, {"N": "0"})


def test_errors_of_conditions_are_those_of_an_engine() -> None:
    with table.open("sqlite://") as db:
        overlay, store = over(db)
        store.put(Thing(group="g", name="a"))
        with pytest.raises(ConditionFailed):
            store.create(Thing(group="g", name="a"))
        tx = store.transaction()
        tx.create(Thing(group="g", name="a"))
        tx.put(Thing(group="g", name="b"))
        with pytest.raises(TransactionFailed, match="#1 "), tx:
            pass
        assert store.get(Thing, group="g", name="b") is None
        with pytest.raises(DataError, match="A mutator cannot use Scan"):
            list(db.admin().__class__(overlay, db.admin().scope).scan(Thing, budget=10))
        assert overlay.failure is None
