"""Every write of a synced entity is logged in its own transaction (S4.17, C4.6, C4.7)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Annotated, Any

import pytest

from solotable import ANY, FROM_SCOPE, TTL, Counter, Database, Entity, Key, Store, Synced, Table
from solotable._flows.sync.log import read_heads, read_records
from solotable._flows.sync.spaces import Space
from solotable._protocol.requests import TransactWriteItems
from solotable._store.runner import run
from solotable.errors import DataError, DeclarationError, VersionConflict
from solotable.jobs.purge import purge

from .opening import Opening, Spy
from .syncing import Note, Project, Replica, Setting, Tag, Todo, sync_of, synced


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(synced)


@pytest.fixture
def acme(db: Database) -> Store:
    return db.tenant("acme")


@pytest.fixture
def beside(opening: Opening, db: Database) -> Database:
    return opening.beside(synced)


def log(beside: Database, space: str = "") -> list[dict[str, str | None]]:
    """Return the keys and values of each version."""
    own = Space(synced, "acme", space)
    scope = beside.tenant("acme")._scope
    (head,) = run(read_heads(scope, [own]), beside.engine)
    records = run(read_records(scope, own, 0), beside.engine)
    assert [record.version for record in records] == list(range(1, head.version + 1))
    return [{each.key: each.value for each in record.operations} for record in records]


def test_every_verb_makes_one_version(acme: Store, beside: Database) -> None:
    """C4.6: an update is as visible to clients as a put."""
    acme.put(Todo(todo_id="a"))
    acme.create(Todo(todo_id="b"))
    acme.update(Todo, todo_id="a", set={"text": "A"})
    acme.upsert(Todo, todo_id="c", set={"text": "C"})
    acme.upsert(Todo, todo_id="c", set={"text": "CC"})
    acme.modify(Todo, lambda todo: todo.model_copy(update={"count": 2}), todo_id="a")
    acme.delete(Todo, todo_id="b")
    acme.delete(Todo, todo_id="never")
    changes = log(beside)
    assert [list(each) for each in changes] == [
        ["todo/a"], ["todo/b"], ["todo/a"], ["todo/c"], ["todo/c"], ["todo/a"], ["todo/b"],
    ]  # fmt: skip
    assert changes[5] == {"todo/a": '{"todo_id":"a","text":"A","state":"open","count":2}'}
    assert changes[6] == {"todo/b": None}


def test_a_transaction_is_one_version_of_each_space(acme: Store, beside: Database) -> None:
    with acme.transaction() as tx:
        tx.put(Todo(todo_id="a"))
        tx.put(Todo(todo_id="b"))
        tx.create(Project(project_id="p"))
        tx.create(Note(project_id="p", note_id="n"))
        tx.put(Setting(name="s"))
    assert [set(each) for each in log(beside)] == [{"todo/a", "todo/b"}]
    assert [set(each) for each in log(beside, "project/p")] == [{"project/p", "note/p/n"}]
    assert acme.require(Project, project_id="p").notes == 1


def test_an_entity_that_is_not_synced_writes_no_log(acme: Store, beside: Database) -> None:
    acme.put(Setting(name="s"))
    assert log(beside) == []


def test_traits_write_their_items_beside_the_log(acme: Store, beside: Database) -> None:
    tag = acme.create(Tag(tag_id="t", name="one", secret="x"))
    tag = acme.put(tag.model_copy(update={"name": "two"}))
    acme.history(Tag, tag_id="t").restore(1)
    with pytest.raises(VersionConflict):
        acme.put(tag)
    acme.delete(Tag, tag_id="t", version=ANY)
    values = [each["tag/t"] for each in log(beside)]
    assert [None if value is None else value.split('"name":')[1][:5] for value in values] == [
        '"one"', '"two"', '"one"', None,
    ]  # fmt: skip
    assert "secret" not in str(values)


def test_a_soft_delete_and_an_undelete_are_a_delete_and_a_put(acme: Store, beside: Database) -> None:
    acme.create(Project(project_id="p", title="P"))
    acme.delete(Project, project_id="p")
    acme.undelete(Project, project_id="p")
    values = [each["project/p"] for each in log(beside, "project/p")]
    assert [value is None for value in values] == [False, True, False]
    # A counter changes without a write of its entity, so clients do not see it.
    assert "notes" not in str(values)


def test_a_purge_logs_the_children_that_clients_still_see(
    opening: Opening, acme: Store, beside: Database
) -> None:
    acme.create(Project(project_id="p"))
    for number in range(3):
        acme.create(Note(project_id="p", note_id=str(number)))
    acme.delete(Project, project_id="p")
    opening.clock.seconds += timedelta(days=2).total_seconds()
    purge(beside.admin())
    *_, last = log(beside, "project/p")
    assert last == {f"note/p/{number}": None for number in range(3)}
    assert acme.page(Note.key.query(project_id="p")).items == []


def test_a_deleted_partition_is_logged_item_by_item(acme: Store, beside: Database) -> None:
    for number in range(3):
        acme.put(Todo(todo_id=str(number)))
    acme.delete_partition(Todo.listed())
    assert [list(each.values()) for each in log(beside)[3:]] == [[None]] * 3


def test_writes_that_would_bypass_the_log_are_rejected(db: Database, acme: Store) -> None:
    with (
        pytest.raises(DataError, match="Todo has sync, which a batch cannot write; use a transaction"),
        acme.batch() as batch,
    ):
        batch.put(Todo(todo_id="a"))
    with pytest.raises(DataError, match="logs no changes"):
        db.admin().delete_partition(Todo.key.query(tenant_id="acme"), raw=True)


def test_a_conflict_on_the_head_is_repeated_and_is_not_the_callers(
    opening: Opening, acme: Store, beside: Database
) -> None:
    other = beside.tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: other.put(Todo(todo_id="other")))
    tag = acme.create(Tag(tag_id="t", name="one"))
    opening.spy.once(TransactWriteItems, lambda: other.put(Todo(todo_id="more")))
    acme.put(tag)
    assert [list(each) for each in log(beside)] == [["todo/other"], ["tag/t"], ["todo/more"], ["tag/t"]]


def test_an_update_based_on_an_old_item_is_planned_again(
    opening: Opening, acme: Store, beside: Database
) -> None:
    """C4.7: the log never has a value that the table does not have."""
    other = beside.tenant("acme")
    acme.put(Todo(todo_id="a"))
    opening.spy.once(TransactWriteItems, lambda: other.update(Todo, todo_id="a", set={"text": "theirs"}))
    acme.update(Todo, todo_id="a", add={"count": 1})
    assert log(beside)[-1] == {"todo/a": '{"todo_id":"a","text":"theirs","state":"open","count":1}'}


@pytest.mark.in_process
def test_concurrent_writers_leave_no_gap(opening: Opening, db: Database, beside: Database) -> None:
    """C4.7: versions follow each other, in the order of their commits."""
    store = beside.tenant("acme")

    def write(number: int) -> None:
        for _ in range(3):
            store.upsert(Todo, todo_id=str(number % 2), add={"count": 1})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(log(beside)) == 12
    replica = Replica(sync_of(beside))
    replica.pull()
    assert [replica.data[f"todo/{number}"]["count"] for number in range(2)] == [6, 6]


def test_writers_of_one_process_wait_for_each_other_instead_of_conflicting(
    beside: Database,
) -> None:
    """S4.32: writers of different items in one space do not conflict on its head."""
    spy = Spy(beside.engine)
    db = Database(spy, beside.scope)

    def write(number: int) -> None:
        store = db.tenant("acme")
        for _ in range(5):
            store.put(Todo(todo_id=str(number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    sent = [each for each in spy.sent if isinstance(each, TransactWriteItems)]
    assert len(sent) == 8 * 5
    assert len(log(beside)) == 8 * 5


def test_an_erased_tenant_leaves_no_log(db: Database, acme: Store, beside: Database) -> None:
    acme.put(Todo(todo_id="a"))
    acme.create(Project(project_id="p"))
    admin: Any = db.admin()
    while not admin.erase_tenant("acme").done:
        pass
    assert log(beside) == []
    assert log(beside, "project/p") == []


def declare(**members: Any) -> type[Entity]:
    table = Table("Wrong", tenant="tenant_id", ttl="expires_at")
    fields = {"tenant_id": str, "id": str, "name": str}
    own = {
        "__module__": __name__,
        "key": Key("TENANT#{tenant_id}", "X#{id}"),
        "tenant_id": FROM_SCOPE,
        "name": "",
        **members,
    }
    own["__annotations__"] = {**fields, **own.get("__annotations__", {})}
    return type("Wrong", (Entity,), own, table=table)


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({"sync": Synced(space="x/{name}")}, "names 'name', which is not a part of the primary key"),
        ({"sync": Synced(key="x/{nothing}")}, "names 'nothing'"),
        ({"sync": Synced(key="control/x")}, "begins with 'control/'"),
        ({"sync": Synced(fields=["nothing"])}, "names 'nothing', which is not a field"),
        ({"sync": Synced(log_days=0)}, "log_days=0"),
        ({"key": Key("X#{tenant_id}#{id}", "X"), "sync": Synced()}, "the partition key of Wrong has id"),
        (
            {
                "__annotations__": {"count": Annotated[int, Counter()]},
                "count": 0,
                "sync": Synced(fields=["count"]),
            },
            "the counter 'count'",
        ),
        (
            {
                "__annotations__": {"expires_at": Annotated[int | None, TTL()]},
                "expires_at": None,
                "sync": Synced(),
            },
            "disappear without a write",
        ),
    ],
)
def test_a_declaration_that_clients_could_not_follow_is_rejected(members: dict[str, Any], match: str) -> None:
    with pytest.raises(DeclarationError, match=match):
        declare(**members)


def test_a_list_of_fields_is_not_a_string() -> None:
    with pytest.raises(DeclarationError, match="fields is a list of fields"):
        Synced(fields="name")
