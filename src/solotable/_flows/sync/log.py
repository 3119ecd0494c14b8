"""The head and the log of a space: read them, and add a version to a transaction.

The head has the version of the space. Every version has one log record with all its changes, and one item
is always read whole. So a run of records without a gap is a snapshot on any engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from solotable._entities.synced import SPACE_VERSION
from solotable._expressions.ast import Assign, Attr, Compare, Condition, Const, Exists, KeyTerm, Not
from solotable._flows.retry import Flow, send, send_all
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.conflicts import retry_conflicts
from solotable._protocol.replies import SomeItem, TransactGot, decode_items
from solotable._protocol.requests import (
    GetItem,
    PutItem,
    Query,
    TransactGetItems,
    UpdateItem,
    WriteAction,
)
from solotable._values import AttributeValue, Item, item_size
from solotable._values.limits import LARGEST_ITEM
from solotable.errors import DataError, StoredDataError

from .entries import LogEntry
from .spaces import HEAD, TAG, Space, log_sort

_DAY_SECONDS = 86_400
#: The largest record; its key and its clients come on top.
LARGEST_RECORD = 300_000
MOST_VERSIONS = 10**15 - 1


@dataclass(frozen=True, slots=True)
class Head:
    """The version of a space, its epoch, and the time of its last commit; version 0 without a commit."""

    space: Space
    version: int = 0
    epoch: str = ""
    at: float = 0.0

    @property
    def lost(self) -> int | None:
        """The version of a log that has lost its head; None for other spaces."""
        return self.version if self.version and not self.epoch else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A change of one key of a client, in a log record."""

    key: str
    #: JSON; None for a deleted key, and for a value that is too large for the log.
    value: str | None = None
    #: The primary key of an item whose value is too large for the log.
    item_key: Item | None = None
    #: The only group that sees the key; None for all.
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """The changes of one version of a space."""

    version: int
    operations: Sequence[Operation] = ()
    #: Group, client and last mutation id.
    clients: Sequence[tuple[str, str, int]] = ()
    #: Versions of other spaces of the tenant that a view with this one needs: those of the same transaction,
    #: and those of the previous mutations of its clients.
    needs: Mapping[str, int] = field(default_factory=dict)
    days: int = 30
    #: The time of the commit; 0 before it.
    at: float = 0.0
    #: The version before a new epoch, which may skip some; None within an epoch.
    after: int | None = None

    def follows(self, version: int) -> bool:
        """Return whether this record comes directly after a version."""
        return self.version == version + 1 or (self.after is not None and self.after <= version)


def read_heads(scope: Scope, spaces: Sequence[Space], *, consistent: bool = True) -> Flow[list[Head]]:
    """Return the heads of spaces."""
    gets = [
        GetItem(table=scope.table(each.table), key=each.key(HEAD), consistent=consistent) for each in spaces
    ]
    replies = yield from send_all(gets, scope.retries)
    return [
        Head(space) if reply.item is None else decode_head(space, decode_item(reply.item))
        for space, reply in zip(spaces, replies, strict=True)
    ]


def read_heads_to_write(scope: Scope, spaces: Sequence[Space]) -> Flow[list[Head]]:
    """Return the heads that the next commit moves; a missing one has the version of the last log record.

    Another program may have deleted a head and left the log. The next commit then makes a new epoch.
    """
    heads = yield from read_heads(scope, spaces)
    lasts = {}
    for head in heads:
        if not head.epoch:
            lasts[head.space] = yield from last_version(scope, head.space)
    return [replace(head, version=lasts.get(head.space, head.version)) for head in heads]


def read_committed_head(scope: Scope, space: Space) -> Flow[Head]:
    """Return the head of a space after every commit of which an item was visible before.

    A transactional read conflicts with a commit that is visible in part, so it waits for its end.
    """
    get = GetItem(table=scope.table(space.table), key=space.key(HEAD))
    request = TransactGetItems(gets=(get,))
    reply: TransactGot = yield from retry_conflicts(scope, lambda: send(request, scope.retries))
    item = reply.items[0]
    return Head(space) if item is None else decode_head(space, decode_item(item))


def decode_head(space: Space, item: Item) -> Head:
    """Return the head that an item holds."""
    with decoding(f"The head of {space}"):
        return Head(space, int(item["version"]["N"]), item["epoch"]["S"], int(item["at"]["N"]) / 1000)


@contextmanager
def decoding(title: str, remedy: str = "call Sync.reset() for its space") -> Iterator[None]:
    """Raise StoredDataError for an internal item that another program has changed."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise StoredDataError(f"{title} is damaged ({type(error).__name__}: {error}); {remedy}.") from error


def head_put(scope: Scope, head: Head, version: int, epoch: str | None = None) -> PutItem:
    """Return the put that moves the head to a version, if it is still as it was read."""
    space = head.space
    item: Item = {
        **space.key(HEAD),
        space.table.internal_tag: {"S": TAG},
        "version": {"N": str(version)},
        "epoch": {"S": epoch or head.epoch or scope.tokens()},
        "at": {"N": str(int(scope.clock() * 1000))},
    }
    return PutItem(table=scope.table(space.table), item=item, condition=_is_at(head))


def _is_at(head: Head) -> Condition:
    if not head.epoch:
        return Not(Exists((head.space.table.partition.name,)))
    at: AttributeValue = {"N": str(head.version)}
    return Compare("=", Attr(("version",)), Const(at))


def record_put(scope: Scope, space: Space, record: LogRecord) -> PutItem:
    """Return the put of a log record, which must not exist."""
    table = space.table
    item: Item = {
        **space.key(log_sort(record.version)),
        table.internal_tag: {"S": TAG},
        "at": {"N": str(int(scope.clock() * 1000))},
    }
    if record.operations:
        item["ops"] = {"L": [{"M": _encode_operation(each)} for each in record.operations]}
    if record.clients:
        item["clients"] = {
            "L": [
                {"L": [{"S": group}, {"S": client}, {"N": str(last)}]}
                for group, client, last in record.clients
            ]
        }
    if record.after is not None:
        item["after"] = {"N": str(record.after)}
    if record.needs:
        item["needs"] = {"L": [{"L": [{"S": name}, {"N": str(at)}]} for name, at in record.needs.items()]}
    if table.ttl is not None:
        item[table.ttl] = {"N": str(int(scope.clock()) + record.days * _DAY_SECONDS)}
    if item_size(item) > LARGEST_ITEM:
        raise DataError(
            f"The log record of {space} has {item_size(item):,} bytes for {len(record.operations)} keys, and "
            f"DynamoDB accepts {LARGEST_ITEM:,}; split the transaction."
        )
    return PutItem(table=scope.table(table), item=item, condition=Not(Exists((table.partition.name,))))


def decode_record(table_sort: str, item: Item) -> LogRecord:
    """Return the log record that an item holds; `table_sort` is the name of the sort key."""
    with decoding(f"The log record {item[table_sort].get('S')}"):
        return _decode_record(table_sort, item)


def _decode_record(table_sort: str, item: Item) -> LogRecord:
    clients = [
        (each["L"][0]["S"], each["L"][1]["S"], int(each["L"][2]["N"]))
        for each in item.get("clients", {}).get("L", ())
    ]
    operations = [_decode_operation(each["M"]) for each in item.get("ops", {}).get("L", ())]
    version = _version_in(item[table_sort]["S"])
    at = int(item["at"]["N"]) / 1000
    after = int(item["after"]["N"]) if "after" in item else None
    needs = {each["L"][0]["S"]: int(each["L"][1]["N"]) for each in item.get("needs", {}).get("L", ())}
    return LogRecord(version=version, operations=operations, clients=clients, needs=needs, at=at, after=after)


def _encode_operation(operation: Operation) -> Item:
    found: Item = {"k": {"S": operation.key}}
    if operation.value is not None:
        found["j"] = {"S": operation.value}
    if operation.item_key is not None:
        found["i"] = {"M": operation.item_key}
    if operation.group is not None:
        found["g"] = {"S": operation.group}
    return found


def _decode_operation(item: Item) -> Operation:
    return Operation(
        key=item["k"]["S"],
        value=item.get("j", {}).get("S"),
        item_key=item.get("i", {}).get("M"),
        group=item.get("g", {}).get("S"),
    )


def operations_of(entries: Iterable[LogEntry]) -> list[Operation]:
    """Return the operations of a record; the largest values stay out of the log if it would be too large."""
    found = {each.key: each for each in entries}
    sizes = {key: len(key.encode()) + len((each.value or "").encode()) for key, each in found.items()}
    total = sum(sizes.values())
    aside: set[str] = set()
    for key in sorted(sizes, key=lambda each: -sizes[each]):
        if total <= LARGEST_RECORD:
            break
        if found[key].value is not None:
            aside.add(key)
            total -= sizes[key]
    return [
        Operation(key=key, item_key=each.item_key) if key in aside else Operation(key=key, value=each.value)
        for key, each in found.items()
    ]


def by_space(entries: Iterable[LogEntry]) -> dict[Space, list[LogEntry]]:
    """Return log entries by their spaces."""
    found: dict[Space, list[LogEntry]] = {}
    for entry in entries:
        found.setdefault(entry.space, []).append(entry)
    return found


def log_actions(scope: Scope, entries: Iterable[LogEntry]) -> Flow[tuple[list[PutItem], dict[str, int]]]:
    """Return the head and the log record of each space, and the versions of the items in `entries`.

    The versions are by `item_identity`. The heads are read now: a conflict is repaired by another call.
    """
    grouped = by_space(entries)
    heads = yield from read_heads_to_write(scope, list(grouped))
    actions: list[PutItem] = []
    versions: dict[str, int] = {}
    for head in heads:
        some = grouped[head.space]
        record = LogRecord(
            version=head.version + 1,
            operations=operations_of(some),
            needs=needs_of(head.space, {each.space: each.version + 1 for each in heads}),
            days=max(each.log_days for each in some),
            after=head.lost,
        )
        actions += (head_put(scope, head, record.version), record_put(scope, head.space, record))
        table = scope.table(head.space.table)
        versions |= {
            item_identity(table, each.item_key): record.version for each in some if each.item_key is not None
        }
    return actions, versions


def needs_of(space: Space, versions: Mapping[Space, int]) -> dict[str, int]:
    """Return the versions of the other spaces of a transaction that clients of a space may see too."""
    return {
        other.name: version
        for other, version in versions.items()
        if other != space and (other.table, other.tenant) == (space.table, space.tenant)
    }


def item_identity(table: str, key: Mapping[str, Any]) -> str:
    """Return a text for the primary key of an item in a table."""
    return repr((table, sorted(key.items())))


def with_version(action: WriteAction, version: int) -> WriteAction:
    """Return a put or an update that also sets the version of the space."""
    number: AttributeValue = {"N": str(version)}
    match action:
        case PutItem():
            return replace(action, item={**action.item, SPACE_VERSION: number}, size=None)
        case UpdateItem():
            assign = Assign((SPACE_VERSION,), Const(number))
            others = tuple(each for each in action.update.actions if each.path != (SPACE_VERSION,))
            update = replace(action.update, actions=(*others, assign), creates=True)
            return replace(action, update=update)
        case _:
            return action


def read_records(scope: Scope, space: Space, since: int) -> Flow[list[LogRecord]]:
    """Return the visible log records after a version, in order; some may be missing."""
    request = _log_query(scope, space, since)
    found: list[LogRecord] = []
    while True:
        page = yield from send(request, scope.retries)
        found += _decode_records(space, page.items)
        if not page.last_key:
            return found
        request = replace(request, start=page.last_key)


def last_version(scope: Scope, space: Space) -> Flow[int]:
    """Return the version of the last log record; 0 without one."""
    request = replace(_log_query(scope, space, 0), forward=False, limit=1)
    page = yield from send(request, scope.retries)
    assert space.table.sort is not None
    sorts = [item[space.table.sort.name]["S"] for item in decode_items(page.items or ())]
    return _version_in(sorts[0]) if sorts else 0


def _version_in(sort: str) -> int:
    return int(sort.rpartition("#")[2])


def _log_query(scope: Scope, space: Space, since: int) -> Query:
    table = space.table
    assert table.sort is not None
    limits: tuple[AttributeValue, ...] = ({"S": log_sort(since + 1)}, {"S": log_sort(MOST_VERSIONS)})
    terms = (
        KeyTerm(table.partition.name, "=", ({"S": space.partition},)),
        KeyTerm(table.sort.name, "BETWEEN", limits),
    )
    return Query(table=scope.table(table), key=terms, consistent=True)


def _decode_records(space: Space, items: Sequence[SomeItem] | None) -> list[LogRecord]:
    assert space.table.sort is not None
    return [decode_record(space.table.sort.name, item) for item in decode_items(items or ())]


def contiguous(records: Sequence[LogRecord], version: int) -> list[LogRecord]:
    """Return the records after a version that follow each other without a gap."""
    found: list[LogRecord] = []
    for record in records:
        if record.version != version + 1 + len(found):
            break
        found.append(record)
    return found


def after_gaps(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Return the last records of one epoch that follow each other without a gap."""
    found: list[LogRecord] = []
    for record in records:
        if record.after is not None or (found and record.version != found[-1].version + 1):
            found.clear()
        found.append(record)
    return found


def read_item(scope: Scope, table: str, key: Item) -> Flow[Item | None]:
    """Read one item consistently."""
    reply = yield from send(GetItem(table=table, key=key, consistent=True), scope.retries)
    return None if reply.item is None else decode_item(reply.item)
