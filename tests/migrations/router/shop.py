"""A shop with two old tables, its one new table, the mapping between them, and adapters of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

from solotable import Database, Entity, Key, Query, Table, Version, flow
from solotable._store.page import Page
from solotable._values import Item, dump_item, load_item
from solotable.errors import AlreadyExists, ConditionFailed, NotFound
from solotable.flow import Flow, Scope
from solotable.flow.conditions import equals, key_equals, missing
from solotable.flow.requests import Control, DeleteItem, GetItem, PutItem, TransactWriteItems
from solotable.flow.requests import Query as RawQuery
from solotable.migrations.mapping import Mapping, Source
from solotable.migrations.migration import Migration
from solotable.migrations.router import SideName
from solotable.migrations.workflow.control import ControlRecord, create_record, encode_record
from solotable.migrations.workflow.fences import set_fences
from solotable.migrations.workflow.sides import ensure_control_table

shop = Table("Shop")


class User(Entity, table=shop):
    key = Key("USER#{user_id}", "USER")

    user_id: str
    name: str = ""
    visits: int = 0
    version: Annotated[int, Version()] = 0


class Order(Entity, table=shop):
    key = Key("USER#{user_id}", "ORDER#{number}")

    user_id: str
    number: str
    total: int = 0


mapping = Mapping(shop, Source("Users", key="id"), Source("Orders", key=("user", "no")))


@mapping.rule("Users")
def new_user(item: dict[str, Any]) -> Iterator[Entity]:
    yield User(user_id=item["id"], name=item["name"], visits=item.get("visits", 0), version=item["version"])


@mapping.rule("Orders")
def new_order(item: dict[str, Any]) -> Iterator[Entity]:
    yield Order(user_id=item["user"], number=item["no"], total=item["total"])


@mapping.inverse("Users", User)
def old_user(user: User) -> dict[str, Any]:
    return {"id": user.user_id, "name": user.name, "visits": user.visits, "version": user.version}


@mapping.inverse("Orders", Order)
def old_order(order: Order) -> dict[str, Any]:
    return {"user": order.user_id, "no": order.number, "total": order.total}


class OldShop:
    """The shop over the raw items of its two old tables."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def get(self, entity: type[Any], /, *, consistent: bool = False, **key: Any) -> Flow[Any]:
        table, wire = _old_key(entity, key)
        reply = yield from flow.send(self._scope, GetItem(table=table, key=wire, consistent=consistent))
        return None if reply.item is None else _decoded(entity, flow.decode_item(reply.item))

    def page(self, query: Query[Any], *, limit: int = 50, cursor: str | None = None) -> Flow[Page[Any]]:
        user = query.arguments["user_id"]
        start = None if cursor is None else dump_item({"user": user, "no": cursor})
        request = RawQuery(
            table="Orders",
            key=(key_equals("user", user),),
            limit=limit,
            start=start,
            consistent=query.consistently,
        )
        reply = yield from flow.send(self._scope, request)
        rows = [_decoded(Order, each) for each in flow.decode_items(reply.items or ())]
        more = None if reply.last_key is None else str(load_item(reply.last_key)["no"])
        return Page(rows, more, len(rows))

    def put(self, entity: Any) -> Flow[Any]:
        stored, action = _put(entity)
        try:
            yield from flow.send(self._scope, action)
        except ConditionFailed as failed:
            raise ConditionFailed(f"{entity!r} changed") from failed
        return stored

    def create(self, entity: Any) -> Flow[Any]:
        table, item, stored = _encoded(entity)
        condition = missing(next(iter(_old_key(type(entity), entity.__dict__)[1])))
        try:
            yield from flow.send(self._scope, PutItem(table=table, item=item, condition=condition))
        except ConditionFailed as failed:
            raise AlreadyExists(f"{entity!r} exists") from failed
        return stored

    def delete(self, entity: type[Any], /, **key: Any) -> Flow[Any]:
        table, wire = _old_key(entity, key)
        reply = yield from flow.send(self._scope, DeleteItem(table=table, key=wire, returns="ALL_OLD"))
        return None if reply.attributes is None else _decoded(entity, flow.decode_item(reply.attributes))

    def update(self, entity: type[Any], /, *, add: dict[str, int], **key: Any) -> Flow[Any]:
        def change(found: Any) -> Any:
            values = {name: getattr(found, name) + more for name, more in add.items()}
            return found.model_copy(update=values)

        return self.modify(entity, change, **key)

    def modify(
        self, entity: type[Any], change: Callable[[Any], Any], /, *, default: Any = None, **key: Any
    ) -> Flow[Any]:
        def attempt() -> Flow[Any]:
            found = yield from self.get(entity, consistent=True, **key)
            if found is None and default is None:
                raise NotFound(f"No {entity.__name__} with {key}.")
            return (yield from self.put(change(default if found is None else found)))

        return flow.retry_conflicts(self._scope, attempt)

    def transact(self, calls: Any, token: str | None = None) -> Flow[None]:
        actions = tuple(_put(arguments[0])[1] for _, arguments, _ in calls)
        yield from flow.send(self._scope, TransactWriteItems(actions=actions, token=self._scope.token(None)))


def _old_key(entity: type[Any], key: Any) -> tuple[str, Item]:
    if entity is User:
        return "Users", dump_item({"id": key["user_id"]})
    return "Orders", dump_item({"user": key["user_id"], "no": key["number"]})


def _encoded(entity: Any) -> tuple[str, Item, Any]:
    if isinstance(entity, User):
        stored = entity.model_copy(update={"version": entity.version + 1})
        return "Users", dump_item(old_user(stored)), stored
    return "Orders", dump_item(old_order(entity)), entity


def _put(entity: Any) -> tuple[Any, PutItem]:
    table, item, stored = _encoded(entity)
    condition = None
    if isinstance(entity, User):
        condition = equals("version", entity.version) if entity.version else missing("id")
    return stored, PutItem(table=table, item=item, condition=condition)


def _decoded(entity: type[Any], item: Item) -> Any:
    values = load_item(item)
    found = new_user(values) if entity is User else new_order(values)
    return next(iter(found))


def create_old_tables(db: Database) -> None:
    """Create the two old tables."""
    for name, names in (("Users", ("id",)), ("Orders", ("user", "no"))):
        kinds = zip(names, ("HASH", "RANGE"), strict=False)
        members = {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
            "KeySchema": [{"AttributeName": each, "KeyType": kind} for each, kind in kinds],
        }
        flow.run(flow.send(flow.scope_of(db), Control(operation="CreateTable", members=members)), db)


def migration_of(old: Database, new: Database, name: str = "shop") -> Migration:
    """Return a migration whose record and fences exist, and whose source is open."""
    migration = Migration(name, mapping, sources=old.engine, target=new)
    for side in (migration.source, migration.target):
        side.run(ensure_control_table(side))
        side.run(set_fences(side, name, is_open=side.name == "source", epoch=0))
    migration.target.run(create_record(migration.target, ControlRecord(name=name, state="Verified")))
    return migration


def change(migration: Migration, **changes: Any) -> ControlRecord:
    """Change the control record, whatever its state is."""
    record = migration.record()
    changed = replace(record, epoch=record.epoch + 1, **changes)
    side = migration.target
    side.run(flow.send(side.scope, PutItem(table=side.control, item=encode_record(changed))))
    return changed


def announce(migration: Migration) -> None:
    """Begin a switch of writes."""
    change(migration, state="SwitchingWrites")


def close(migration: Migration) -> None:
    """Close the side that takes writes."""
    record = migration.record()
    side = migration.side(record.writes)
    side.run(set_fences(side, migration.name, is_open=False, epoch=record.epoch))


def flip(migration: Migration) -> None:
    """Open the other side and move the writes to it."""
    record = migration.record()
    other = migration.side("target" if record.writes == "source" else "source")
    other.run(set_fences(other, migration.name, is_open=True, epoch=record.epoch + 1))
    change(migration, state="WritesSwitched", writes=other.name, flips=record.flips + 1)


def open_side(migration: Migration, name: SideName) -> None:
    """Open one side and close the other one, whatever they are."""
    for side in (migration.source, migration.target):
        side.run(set_fences(side, migration.name, is_open=side.name == name, epoch=migration.record().epoch))
