"""Tenants in flows: no verb on entities reads or writes another tenant's, whatever the scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solotable import FROM_SCOPE, Database, Entity, Index, Key, Table, flow
from solotable.errors import TenantViolation

table = Table("App", tenant="tenant_id", indexes=[Index("GSI1")])


class Post(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "POST#{id}")
    by_id = Key("T#{tenant_id}", "{id}", index="GSI1")

    tenant_id: str = FROM_SCOPE
    id: str
    likes: int = 0


class Setting(Entity, table=table, scope="global"):
    key = Key("SETTING#{name}", "SETTING")

    name: str


@pytest.fixture
def db() -> Database:
    """Return a store in which tenant b has a post."""
    opened = table.open("sqlite://")
    opened.tenant("b").put(Post(id="1"))
    opened.put(Setting(name="colour"))
    return opened


ITEM = {
    "_type": {"S": "Post"},
    "PK": {"S": "TENANT#b"},
    "SK": {"S": "POST#1"},
    "tenant_id": {"S": "b"},
    "id": {"S": "1"},
    "likes": {"N": "0"},
}
KEY: dict[str, Any] = {"tenant_id": "b", "id": "1"}


def _transaction(scope: flow.Scope, verb: str, *given: Any, **named: Any) -> flow.Flow[None]:
    tx = flow.Transaction(scope)
    getattr(tx, verb)(*given, **named)
    return tx.commit()


def _batch(scope: flow.Scope, verb: str, *given: Any, **named: Any) -> flow.Flow[int]:
    batch = flow.Batch(scope)
    getattr(batch, verb)(*given, **named)
    return batch.write()


def _theirs() -> Post:
    return Post(tenant_id="b", id="1", likes=1)


VERBS: dict[str, Callable[[flow.Scope], Any]] = {
    "get": lambda scope: flow.get(scope, Post, **KEY),
    "require": lambda scope: flow.require(scope, Post, **KEY),
    "get_many": lambda scope: flow.get_many(scope, Post, [KEY]),
    "put": lambda scope: flow.put(scope, _theirs()),
    "create": lambda scope: flow.create(scope, Post(tenant_id="b", id="2")),
    "update": lambda scope: flow.update(scope, Post, **KEY, add={"likes": 1}),
    "delete": lambda scope: flow.delete(scope, Post, **KEY),
    "modify": lambda scope: flow.modify(scope, Post, lambda post: post, **KEY),
    "page": lambda scope: flow.page(scope, Post.key.query(tenant_id="b")),
    "query": lambda scope: flow.query(scope, Post.by_id.query(tenant_id="b")),
    "count": lambda scope: flow.count(scope, Post.key.query(tenant_id="b")),
    "scan": lambda scope: flow.scan(scope, Post, budget=10),
    "transaction put": lambda scope: _transaction(scope, "put", _theirs()),
    "transaction create": lambda scope: _transaction(scope, "create", Post(tenant_id="b", id="3")),
    "transaction update": lambda scope: _transaction(scope, "update", Post, **KEY, set={"likes": 1}),
    "transaction delete": lambda scope: _transaction(scope, "delete", Post, **KEY),
    "transaction check": lambda scope: _transaction(scope, "check", Post, **KEY),
    "batch put": lambda scope: _batch(scope, "put", _theirs()),
    "batch delete": lambda scope: _batch(scope, "delete", Post, **KEY),
    "encode_entity": lambda scope: flow.encode_entity(scope, _theirs()),
    "decode_entity": lambda scope: flow.decode_entity(scope, Post, ITEM),
    "key_of": lambda scope: flow.key_of(scope, Post, **KEY),
}
every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)


def _run(verb: Callable[[flow.Scope], Any], scope: flow.Scope, db: Database) -> Any:
    found = verb(scope)
    return flow.run(found, db) if hasattr(found, "send") else found


@every_verb
@pytest.mark.parametrize("tenant", [None, "a"])
def test_verb_rejects_entities_of_another_tenant(
    db: Database, verb: Callable[[flow.Scope], Any], tenant: str | None
) -> None:
    store = db if tenant is None else db.tenant(tenant)
    before = list(db.admin().scan(Post, budget=10))
    with pytest.raises(TenantViolation):
        _run(verb, flow.scope_of(store), db)
    assert list(db.admin().scan(Post, budget=10)) == before


@every_verb
def test_verb_reaches_every_tenant_with_the_scope_of_an_admin_store(
    db: Database, verb: Callable[[flow.Scope], Any]
) -> None:
    _run(verb, flow.scope_of(db.admin()), db)


def test_scan_of_a_tenant_entity_needs_the_scope_of_an_admin_store(db: Database) -> None:
    for store in (db, db.tenant("a"), db.tenant("b")):
        with pytest.raises(TenantViolation, match=r"scan of Post reads every tenant.*db\.admin\(\)"):
            flow.run(flow.scan(flow.scope_of(store), Post, budget=10), db)
    found = flow.run(flow.scan(flow.scope_of(db.admin()), Post, budget=10), db)
    assert [post.tenant_id for post in found] == ["b"]


def test_scan_of_a_global_entity_needs_no_admin_store_but_rejects_a_tenant(db: Database) -> None:
    for store in (db, db.admin()):
        assert flow.run(flow.scan(flow.scope_of(store), Setting, budget=10), db) == [Setting(name="colour")]
    with pytest.raises(TenantViolation):
        flow.run(flow.scan(flow.scope_of(db.tenant("a")), Setting, budget=10), db)
