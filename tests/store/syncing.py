"""Synced entities for the suite, and a replica that applies answers as strictly as a real client."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel

from solotable import (
    FROM_SCOPE,
    AsyncStore,
    Counted,
    Counter,
    Database,
    Entity,
    History,
    Index,
    Key,
    Query,
    SoftDelete,
    Store,
    Synced,
    Table,
    Unique,
    Version,
    flow,
    pattern,
)
from solotable.flow.requests import PutItem
from solotable.sync import MutationContext, Mutators, Rejected, Sync
from tests.waiting import HANG_SECONDS

synced = Table(
    "Synced",
    tenant="tenant_id",
    ttl="expires_at",
    stream=True,
    indexes=[Index("GSI1")],
    schema_version="_shape",
)


class Todo(Entity, table=synced):
    key = Key("TENANT#{tenant_id}", "TODO#{todo_id}")
    by_state = Key("TENANT#{tenant_id}#STATE#{state}", "TODO#{todo_id}", index="GSI1")
    sync = Synced()

    tenant_id: str = FROM_SCOPE
    todo_id: str
    text: str = ""
    state: str = "open"
    count: int = 0

    @pattern
    @classmethod
    def in_state(cls, state: str) -> Query[Todo]:
        return cls.by_state.query(state=state)

    @pattern
    @classmethod
    def listed(cls) -> Query[Todo]:
        return cls.key.query()


class Tag(Entity, table=synced):
    """An entity with a version, a history and a unique name, in the same space."""

    key = Key("TENANT#{tenant_id}", "TAG#{tag_id}")
    history = History("TAG#{tag_id}#V#{version:06d}")
    sync = Synced(key="tag/{tag_id}", exclude=["secret"])

    tenant_id: str = FROM_SCOPE
    tag_id: str
    name: Annotated[str, Unique()]
    secret: str = ""
    version: Annotated[int, Version()] = 0


class Project(Entity, table=synced):
    """A parent that is kept after its deletion, with a counter of its notes."""

    key = Key("TENANT#{tenant_id}", "PROJECT#{project_id}")
    sync = Synced(space="project/{project_id}")
    deletion = SoftDelete(grace=timedelta(days=1), cascade=("Note",))

    tenant_id: str = FROM_SCOPE
    project_id: str
    title: str = ""
    notes: Annotated[int, Counter()] = 0


class Note(Entity, table=synced):
    key = Key("TENANT#{tenant_id}", "PROJECT#{project_id}#NOTE#{note_id}")
    sync = Synced(space="project/{project_id}")
    counted = Counted(Project, "notes")

    tenant_id: str = FROM_SCOPE
    project_id: str
    note_id: str
    text: str = ""


class Setting(Entity, table=synced):
    """An entity that stays on the server."""

    key = Key("TENANT#{tenant_id}", "SETTING#{name}")

    tenant_id: str = FROM_SCOPE
    name: str
    value: int = 0


class TodoArgs(BaseModel):
    id: str
    text: str = ""


class NoteArgs(BaseModel):
    project: str
    id: str
    text: str = ""


mutators = Mutators(rejections=(ZeroDivisionError,))


@mutators.register("put")
def put_todo(db: Store, args: TodoArgs) -> None:
    db.put(Todo(todo_id=args.id, text=args.text))


@mutators.register("create")
def create_todo(db: Store, args: TodoArgs) -> None:
    db.create(Todo(todo_id=args.id, text=args.text))


@mutators.register("increment")
def increment(db: Store, args: TodoArgs) -> None:
    """Add one, by a read and a write."""
    todo = db.get(Todo, todo_id=args.id) or Todo(todo_id=args.id)
    db.put(todo.model_copy(update={"count": todo.count + 1}))


@mutators.register("asyncPut")
async def async_put(db: AsyncStore, args: TodoArgs) -> None:
    await db.put(Todo(todo_id=args.id, text=args.text))


@mutators.register("delete")
def delete_todo(db: Store, args: TodoArgs) -> None:
    db.delete(Todo, todo_id=args.id)


@mutators.register("finish")
def finish(db: Store, args: TodoArgs) -> None:
    db.update(Todo, todo_id=args.id, set={"state": "done"})


@mutators.register("finishAll")
def finish_all(db: Store, args: dict[str, Any]) -> None:
    for todo in db.all(Todo.listed()):
        db.update(todo, set={"state": "done"})


@mutators.register("tag")
def tag(db: Store, args: TodoArgs) -> None:
    with db.transaction() as tx:
        tx.create(Tag(tag_id=args.id, name=args.text))
        tx.put(Todo(todo_id=args.id, text=args.text))


@mutators.register("note")
def put_note(db: Store, args: NoteArgs) -> None:
    db.put(Note(project_id=args.project, note_id=args.id, text=args.text))


@mutators.register("setting")
def change_setting(db: Store, args: TodoArgs) -> None:
    setting = db.get(Setting, name=args.id) or Setting(name=args.id)
    db.put(setting.model_copy(update={"value": setting.value + 1}))


@mutators.register("reject")
def reject(db: Store, args: TodoArgs) -> None:
    db.put(Todo(todo_id=args.id, text="never seen"))
    raise Rejected("You may not do this.", code="forbidden")


@mutators.register("divide")
def divide(db: Store, args: TodoArgs) -> None:
    db.put(Todo(todo_id=args.id, text=str(1 / 0)))


@mutators.register("bug")
def bug(db: Store, args: TodoArgs) -> None:
    raise KeyError(args.id)


@mutators.register("raw")
def raw(db: Store, args: TodoArgs) -> None:
    """Write an item that a store would not: the database rejects the key of its index."""
    key = {"PK": {"S": "TENANT#acme"}, "SK": {"S": f"RAW#{args.id}"}, "GSI1PK": {"N": "1"}}
    request = PutItem(table=flow.scope_of(db).table(synced), item=key)
    flow.run(flow.send(flow.scope_of(db), request), db)


@mutators.register("huge")
def huge(db: Store, args: TodoArgs) -> None:
    for number in range(8):
        db.put(Todo(todo_id=f"{args.id}{number}", text="x" * 300_000))


@mutators.register("many")
def many(db: Store, args: TodoArgs) -> None:
    for number in range(int(args.text)):
        db.put(Todo(todo_id=f"{args.id}{number}"))


@mutators.register("mine")
def mine(db: Store, args: TodoArgs, context: MutationContext) -> None:
    db.put(Todo(todo_id=args.id, text=f"{context.user} {context.client} {context.mutation_id}"))


class Replica:
    """A client with a queue and a view; it rejects answers that a real client would not survive."""

    def __init__(
        self, sync: Sync, *, group: str = "g1", client: str = "c1", user: str = "ann", tenant: str = "acme"
    ) -> None:
        self.sync = sync
        self.group, self.client, self.user, self.tenant = group, client, user, tenant
        self.cookie: Any = None
        self.data: dict[str, Any] = {}
        self.confirmed: dict[str, int] = {}
        self.queue: list[dict[str, Any]] = []
        self.made = 0
        self.pulled: dict[str, Any] = {}

    def mutate(self, name: str, /, **args: Any) -> None:
        """Queue a mutation."""
        self.made += 1
        made = {"id": self.made, "clientID": self.client, "name": name, "args": args, "timestamp": 943.844}
        self.queue.append(made)

    def push(self, *mutations: dict[str, Any], **more: Any) -> Any:
        """Send every mutation that is not confirmed."""
        body = {
            "pushVersion": 1,
            "clientGroupID": self.group,
            "profileID": "p1",
            "schemaVersion": "1",
            "mutations": list(mutations or self.queue),
            **more,
        }
        return self.sync.push(self.tenant, self.user, body)

    def pull(self, **more: Any) -> dict[str, Any]:
        """Pull and apply the answer."""
        body = {
            "pullVersion": 1,
            "clientGroupID": self.group,
            "profileID": "p1",
            "schemaVersion": "1",
            "cookie": self.cookie,
            **more,
        }
        answer = dict(self.sync.pull(self.tenant, self.user, body))
        self.pulled = answer
        if "error" not in answer:
            self._apply(answer)
        return answer

    def _apply(self, answer: dict[str, Any]) -> None:
        before, after = _order(self.cookie), _order(answer["cookie"])
        changes = answer["lastMutationIDChanges"]
        if self.cookie is not None:
            assert not _is_less(after, before), ("the cookie went back", self.cookie, answer["cookie"])
        if self.cookie is not None and after == before:
            assert not answer["patch"], "a client drops the patch of an equal cookie"
            assert not changes, "a client drops the ids of an equal cookie"
        for client, last in changes.items():
            assert last >= self.confirmed.get(client, 0), "a last mutation id went down"
            self.confirmed[client] = last
        for op in answer["patch"]:
            match op["op"]:
                case "clear":
                    self.data.clear()
                case "put":
                    self.data[op["key"]] = op["value"]
                case "del":
                    self.data.pop(op["key"], None)
                case other:
                    raise AssertionError(other)
        self.cookie = answer["cookie"]
        self.queue = [each for each in self.queue if each["id"] > self.confirmed.get(self.client, 0)]

    def sync_all(self) -> None:
        """Push and pull."""
        assert self.push() == {}
        self.pull()
        assert self.queue == []

    @property
    def rejected(self) -> dict[int, str]:
        """The codes of rejected mutations by id."""
        start = f"control/rejected/{self.client}/"
        return {value["id"]: value["code"] for key, value in self.data.items() if key.startswith(start)}

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the todos by id."""
        return {
            value["todo_id"]: value["text"] for key, value in self.data.items() if key.startswith("todo/")
        }


def _order(cookie: Any) -> Any:
    return cookie["order"] if isinstance(cookie, dict) else cookie


def _is_less(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return str(one).encode() < str(other).encode()
    return bool(one < other)


def sync_of(db: Database, **options: Any) -> Sync:
    """Return the service of a database, without its thread."""
    return Sync(db, **{"mutators": mutators, "poll_seconds": 0, "budget_seconds": HANG_SECONDS, **options})
