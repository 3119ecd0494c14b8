"""The policies of the guide allow exactly what stores send, and keep a tenant in its partitions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Self

import pytest

from solotable import (
    FROM_SCOPE,
    TTL,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    Names,
    Outbox,
    Query,
    Retention,
    SoftDelete,
    Synced,
    Table,
    Unique,
    Version,
    pattern,
)
from solotable._protocol import requests
from solotable._protocol.requests import BatchPut, ConditionCheck, Request
from solotable.testing.engines.journal import Journal

from .checkout import ROOT

GUIDE = (ROOT / "docs" / "guide" / "permissions.md").read_text("utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial" / "6-aws.md").read_text("utf-8")
ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/"
#: What IAM sees of a request: the action, the resource and the partition keys.
Access = tuple[str, str, tuple[str, ...]]
shop = Table("Shop", tenant="tenant_id", ttl="expires", stream=True, indexes=[Index("GSI1")])


class Order(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "ORDER#{order_id}")
    tenant_id: str = FROM_SCOPE
    order_id: str
    lines: Annotated[int, Counter()] = 0


class Line(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "LINE#{order_id}#{line_id}")
    by_state = Key("TENANT#{tenant_id}#STATE#{state}", "{order_id}#{line_id}", index="GSI1", shards=2)
    lines = Counted(Order, "lines")
    deletion = SoftDelete(grace=timedelta(days=1))
    tenant_id: str = FROM_SCOPE
    order_id: str
    line_id: str
    state: str = "open"

    @pattern
    @classmethod
    def in_state(cls, state: str) -> Query[Self]:
        return cls.by_state.query(state=state)


class User(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "USER#{user_id}")
    events = Outbox()
    tenant_id: str = FROM_SCOPE
    user_id: str
    email: Annotated[str, Unique()]
    version: Annotated[int, Version()] = 0


class Page(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "PAGE#{path}")
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Text(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "TEXT#{text_id}")
    history = History("TEXT#{text_id}#v{version:06d}", keep=2)
    tenant_id: str = FROM_SCOPE
    text_id: str
    body: str = ""
    version: Annotated[int, Version()] = 0


class Visit(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "VISIT#{visit_id}")
    retention = Retention(timedelta(days=1), since="at")
    tenant_id: str = FROM_SCOPE
    visit_id: str
    at: datetime | None = None
    expires: Annotated[datetime | None, TTL()] = None


class Todo(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "TODO#{todo_id}")
    sync = Synced()
    tenant_id: str = FROM_SCOPE
    todo_id: str
    text: str = ""


def use_everything(database: Database) -> None:
    """Call each verb, and write an entity with each trait, in the store of one tenant."""
    db = database.tenant("acme")
    db.create(Order(order_id="o1"))
    db.create(Line(order_id="o1", line_id="a"))
    db.update(Line, order_id="o1", line_id="a", set={"state": "sent"})
    assert db.count(Line.in_state("sent")) == 1
    db.delete(Line, order_id="o1", line_id="a")
    db.undelete(Line, order_id="o1", line_id="a")
    db.hold(Line, order_id="o1", line_id="a", reason="case 7")
    user = db.create(User(user_id="u1", email="a@example.org"))
    db.delete(db.update(user, set={"email": "b@example.org"}))
    list(db.audit(limit=5))
    page = db.create(Page(path="/a"))
    db.names(Page).rename(page, to="/b")
    text = db.create(Text(text_id="t1"))
    for body in "xyz":
        text = db.update(text, set={"body": body})
    history = db.history(Text, text_id="t1")
    history.restore(3)
    history.purge(keep=1)
    with db.batch() as batch:
        batch.put(Visit(visit_id="v1"))
        batch.delete(Visit, visit_id="v2")
    db.upsert(Visit, visit_id="v3", set={"at": datetime.now(UTC)})
    db.modify(Visit, lambda visit: visit, visit_id="v1")
    db.get_many(Visit, [{"visit_id": "v1"}])
    db.transact_get(Visit.key(visit_id="v1"), Order.key(order_id="o1"))
    with db.transaction(token="t1") as tx:
        tx.check(Order, order_id="o1")
        tx.put(Visit(visit_id="v4"))
    with db.lease("nightly") as lease:
        lease.renew()
    counter = db.counter(shop, "views", shards=2)
    counter.add()
    counter.value()
    db.create(Todo(todo_id="d1"))
    db.update(Todo, todo_id="d1", set={"text": "x"})
    db.delete(Todo, todo_id="d1")
    db.collection(Order, Line, order_id="o1", root=False)
    db.delete_partition(Visit.key.query(), budget=100)


def accesses(request: Request[Any]) -> Iterator[Access]:
    """Yield what IAM checks for a request."""
    if isinstance(request, requests.TransactWriteItems):
        for action in request.actions:
            yield from _access(action)
    elif isinstance(request, requests.TransactGetItems):
        for get in request.gets:
            yield from _access(get)
    elif isinstance(request, requests.BatchGetItem):
        for each in request.tables:
            yield "BatchGetItem", each.table, tuple(map(partition, each.keys))
    elif isinstance(request, requests.BatchWriteItem):
        for table, writes in request.tables:
            keys = (write.item if isinstance(write, BatchPut) else write.key for write in writes)
            yield "BatchWriteItem", table, tuple(map(partition, keys))
    elif isinstance(request, requests.Query):
        resource = request.table if request.index is None else f"{request.table}/index/{request.index}"
        (key,) = (term.values[0]["S"] for term in request.key if term.name.endswith("PK"))
        yield "Query", resource, (key,)
    else:
        yield from _access(request)


def _access(action: Any) -> Iterator[Access]:
    name = {"ConditionCheck": "ConditionCheckItem", "PreparedUpdateItem": "UpdateItem"}
    item = action.item if isinstance(action, requests.PutItem) else action.key
    kind = "ConditionCheck" if isinstance(action, ConditionCheck) else type(action).__name__
    yield name.get(kind, kind), action.table, (partition(item),)


def partition(item: Any) -> str:
    key: str = item["PK"]["S"]
    return key


def policy(page: str, title: str) -> list[dict[str, Any]]:
    found = re.search(rf'^```json title="{re.escape(title)}"\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    assert found is not None
    statements: list[dict[str, Any]] = json.loads(found[1])["Statement"]
    return statements


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def key_patterns(statement: dict[str, Any]) -> list[str]:
    condition = statement.get("Condition")
    if condition is None:
        return ["*"]
    assert condition["Null"] == {"dynamodb:LeadingKeys": "false"}
    patterns: list[str] = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    return patterns


def allowing(statements: list[dict[str, Any]], access: Access) -> set[tuple[int, str]]:
    """Return the action and the patterns that allow an access, with their statement; nothing if denied."""
    action, resource, keys = access
    for number, statement in enumerate(statements):
        if f"dynamodb:{action}" not in statement["Action"]:
            continue
        if not any(fnmatchcase(ARN + resource, each) for each in listed(statement["Resource"])):
            continue
        matches = [
            next((each for each in key_patterns(statement) if fnmatchcase(key, each)), None) for key in keys
        ]
        if None not in matches:
            return {(number, str(each)) for each in (f"dynamodb:{action}", *matches)}
    return set()


@pytest.fixture
def used(solotable_db: Any, solotable_journal: Journal) -> list[Access]:
    use_everything(solotable_db(shop))
    return [access for request in solotable_journal.requests() for access in accesses(request)]


@pytest.mark.parametrize("title", ["app", "tenant"])
def test_a_policy_allows_what_a_store_sends_and_nothing_more(used: list[Access], title: str) -> None:
    statements = policy(GUIDE, title)
    assert [access for access in used if not allowing(statements, access)] == []
    needed = set().union(*(allowing(statements, access) for access in used))
    given = {
        (number, each)
        for number, statement in enumerate(statements)
        for each in (*statement["Action"], *key_patterns(statement))
    }
    assert given == needed


def test_the_policy_of_a_tenant_denies_other_tenants(used: list[Access]) -> None:
    statements = policy(GUIDE, "tenant")
    for action, resource, keys in used:
        others = tuple(key.replace("acme", "acme2") for key in keys)
        if others != keys:
            assert not allowing(statements, (action, resource, others))
            assert not allowing(statements, (action, resource, (*keys, *others)))
    assert not allowing(statements, ("Query", "Shop", ("PURGE#0",)))


def test_the_tutorial_has_the_policy_of_the_app() -> None:
    (mine,), (tutorial,) = policy(GUIDE, "app"), policy(TUTORIAL, "policy.json")
    assert tutorial["Action"] == mine["Action"]


def test_the_table_of_keys_has_the_patterns_of_the_policy() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| (?:your|reading|entities|\[)", GUIDE, re.MULTILINE)
    in_table = {each for row in rows for each in re.findall(r"`([^`]+)`", row)}
    assert in_table == {each for statement in policy(GUIDE, "tenant") for each in key_patterns(statement)}
