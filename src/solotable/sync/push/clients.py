"""The records of clients and groups: last mutation ids, rejected mutations, and the owner of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solotable._expressions.ast import Attr, Compare, Const, Exists, KeyTerm, Not
from solotable._flows.reads.get import get_items
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.sync.log import decoding
from solotable._flows.sync.spaces import TAG, Space, client_sort, group_sort
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import PutItem, Query
from solotable._values import Item, dump, load

#: A client with unsent mutations may come back after months; its record is small.
KEPT_SECONDS = 400 * 86_400
_REMEDY = "delete the item, and the client starts again without its unsent mutations"
#: The number of rejected mutations of a client that its view shows.
MOST_REJECTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRecord:
    """What the server knows of one client."""

    group: str
    client: str
    last: int = 0
    #: The versions of the spaces that confirm `last`, by the names of the spaces.
    versions: Mapping[str, int] = field(default_factory=dict)
    #: The values of `control/rejected/<client>/<id>`, the oldest first.
    rejected: Sequence[Mapping[str, Any]] = ()
    #: Whether the server has lost mutations of the client since, as after a restore.
    is_reset: bool = False
    #: When the record was written; 0 for a new client.
    at: float = 0.0

    @property
    def is_new(self) -> bool:
        """Whether the client has no record yet."""
        return self.at == 0


def rejected_key(client: str, mutation_id: int) -> str:
    """Return the key under which a client sees a rejected mutation.

    >>> rejected_key("c1", 7)
    'control/rejected/c1/7'
    """
    return f"control/rejected/{client}/{mutation_id}"


def read_clients(
    scope: Scope, root: Space, group: str, clients: Iterable[str], *, with_owner: bool = True
) -> Flow[tuple[dict[str, ClientRecord], str | None]]:
    """Return the records of clients, and the owner of their group; None for an unknown group."""
    names = list(dict.fromkeys(clients))
    keys = [root.key(client_sort(group, name)) for name in names]
    if with_owner:
        keys.append(root.key(group_sort(group)))
    items = yield from get_items(scope, root.table, keys, consistent=True)
    owner = _owner(group, items[-1]) if with_owner and items[-1] is not None else None
    found = {
        name: ClientRecord(group=group, client=name) if item is None else _decode(group, name, item)
        for name, item in zip(names, items[: len(names)], strict=True)
    }
    return found, owner


def group_clients(scope: Scope, root: Space, group: str) -> Flow[list[ClientRecord]]:
    """Return the records of all clients of a group."""
    prefix, found, start = client_sort(group), [], None
    table = root.table
    assert table.sort is not None
    terms = (
        KeyTerm(table.partition.name, "=", ({"S": root.partition},)),
        KeyTerm(table.sort.name, "begins_with", ({"S": prefix},)),
    )
    while True:
        request = Query(table=scope.table(table), key=terms, start=start, consistent=True)
        page = yield from send(request, scope.retries)
        found += [
            _decode(group, item.get("client", {}).get("S", ""), item)
            for item in decode_items(page.items or ())
        ]
        start = page.last_key
        if not start:
            return found


def client_put(scope: Scope, root: Space, before: ClientRecord, after: ClientRecord) -> PutItem:
    """Return the put of a client's record, if it is still as it was read."""
    table = root.table
    item: Item = {
        **root.key(client_sort(after.group, after.client)),
        table.internal_tag: {"S": TAG},
        "client": {"S": after.client},
        "last": {"N": str(after.last)},
        "at": {"N": str(int(scope.clock() * 1000))},
        # DynamoDB: a name in a map must not be empty, and the name of the tenant's own space is.
        "v": {"L": [{"L": [{"S": name}, {"N": str(version)}]} for name, version in after.versions.items()]},
    }
    if after.rejected:
        item["rejected"] = dump([dict(each) for each in after.rejected])
    if table.ttl is not None:
        item[table.ttl] = {"N": str(int(scope.clock()) + KEPT_SECONDS)}
    if before.is_new:
        condition: Any = Not(Exists((table.partition.name,)))
    else:
        condition = Compare("=", Attr(("last",)), Const({"N": str(before.last)}))
    return PutItem(table=scope.table(table), item=item, condition=condition)


def group_put(scope: Scope, root: Space, group: str, user: str) -> PutItem:
    """Return the put of a new group's record."""
    table = root.table
    item: Item = {
        **root.key(group_sort(group)),
        table.internal_tag: {"S": TAG},
        "user": {"S": user},
    }
    if table.ttl is not None:
        # A group lives as long as its last client can.
        item[table.ttl] = {"N": str(int(scope.clock()) + 10 * KEPT_SECONDS)}
    absent = Not(Exists((table.partition.name,)))
    return PutItem(table=scope.table(table), item=item, condition=absent)


def _owner(group: str, item: Item) -> str:
    with decoding(
        f"The record of group {group!r}", "delete the item, and the next user of the group owns it"
    ):
        found: str = item["user"]["S"]
        return found


def _decode(group: str, client: str, item: Item) -> ClientRecord:
    with decoding(f"The record of client {client!r} of group {group!r}", _REMEDY):
        return ClientRecord(
            group=group,
            client=client,
            last=int(item["last"]["N"]),
            versions={each["L"][0]["S"]: int(each["L"][1]["N"]) for each in item.get("v", {}).get("L", ())},
            rejected=load(item["rejected"]) if "rejected" in item else (),
            is_reset="reset" in item,
            at=int(item["at"]["N"]) / 1000,
        )
