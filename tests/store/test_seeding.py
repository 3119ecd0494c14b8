"""Seeding a store: what is stored, with parents and traits, and that nothing is replaced."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from solotable import FROM_SCOPE, Counted, Counter, Database, Entity, Key, Store, Table, Unique, Version
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import SolotableError, TenantViolation
from solotable.testing import seed, seed_async

from .awaited import Awaited
from .opening import Opening

farm = Table("Farm", tenant="tenant_id")


class Field(Entity, table=farm):
    key = Key("TENANT#{tenant_id}", "FIELD#{field_id}")
    tenant_id: str = FROM_SCOPE
    field_id: str
    name: str
    trees: Annotated[int, Counter()] = 0
    version: Annotated[int, Version()] = 0


class Tree(Entity, table=farm):
    key = Key("TENANT#{tenant_id}", "FIELD#{field_id}#TREE#{tree_id}")
    counted = Counted(Field, "trees")
    tenant_id: str = FROM_SCOPE
    field_id: str
    tree_id: str
    label: Annotated[str, Unique()]


class Leaf(Entity, table=farm):
    key = Key("TENANT#{tenant_id}", "LEAF#{leaf_id}")
    tenant_id: str
    leaf_id: str
    note: str = ""


class Season(Entity, table=farm, scope="global"):
    key = Key("SEASON", "SEASON#{name}")
    name: str


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(farm)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def fill(db: Store, entity: type[Any], /, **options: Any) -> list[Any]:
    # The awaited store is behind the blocking one's face.
    if isinstance(db, Awaited):
        found: list[Any] = db._runner.run(seed_async(db._inner, entity, **options))
        return found
    return seed(db, entity, **options)


def test_entities_with_parents_and_traits_are_stored(db: Store) -> None:
    fields = fill(db, Field, count=3)
    trees = fill(db, Tree, count=7, parents=fields)
    assert all(each.version == 1 and each.tenant_id == "acme" for each in fields)
    assert [db.require(Field, field_id=each.field_id).trees for each in fields] == [3, 2, 2]
    assert {db.require(Tree, field_id=t.field_id, tree_id=t.tree_id).label for t in trees} == {
        t.label for t in trees
    }


def test_plain_entities_are_stored_in_transactions(db: Store, opening: Opening) -> None:
    seen: list[tuple[int, int]] = []
    fill(db, Leaf, count=120, note="green", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(50, 120), (100, 120), (120, 120)]
    assert len(opening.spy.of(TransactWriteItems)) == 3
    assert opening.spy.of(PutItem) == []
    assert len([each for each in opening.raw(farm) if each["note"] == {"S": "green"}]) == 120


def test_nothing_is_replaced(db: Store) -> None:
    first = fill(db, Leaf, count=2)
    db.put(first[0].model_copy(update={"note": "mine"}))
    with pytest.raises(SolotableError, match="exists"):
        fill(db, Leaf, count=2)
    assert db.require(Leaf, leaf_id=first[0].leaf_id).note == "mine"
    assert len(fill(db, Leaf, count=2, seed=1)) == 2


def test_each_tenant_has_its_own_and_global_entities_have_none(base: Database, db: Store) -> None:
    assert fill(db, Leaf, count=2)[0].leaf_id == fill(base.tenant("zeta"), Leaf, count=2)[0].leaf_id
    assert len(fill(base, Season, count=3)) == 3
    with pytest.raises(TenantViolation):
        fill(db, Season, count=1)
