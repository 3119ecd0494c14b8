"""Look at spaces without changing them: their heads, their newest log records, and their clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solotable._entities.declare.table import Table
from solotable._entities.keys.parts.codecs import unescape
from solotable._expressions.ast import KeyTerm
from solotable._flows.retry import Flow, send, send_all
from solotable._flows.scope import Scope
from solotable._flows.sync.log import MOST_VERSIONS, LogRecord, decode_record, read_heads
from solotable._flows.sync.spaces import Space, log_sort
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Query
from solotable._store import Database
from solotable._store.runner import run
from solotable._values import Item, load

_CLIENT, _GROUP = "CLIENT#", "GROUP#"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceStatus:
    """The head of a space, and the oldest version in its log."""

    tenant: str | None
    name: str
    #: The number of commits; 0 without a commit.
    version: int
    epoch: str
    #: Seconds since the epoch; None without a commit.
    at: float | None
    #: Clients with an older version load the whole space; None for an empty log.
    oldest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatus:
    """One client of a tenant, and how far its mutations are confirmed."""

    group: str
    client: str
    #: The user of the group; None if the group has no record.
    user: str | None
    last_mutation_id: int
    #: When its last mutation was confirmed, in seconds since the epoch.
    at: float
    #: The versions of the spaces that confirm the last mutation.
    versions: Mapping[str, int]
    rejected: int
    #: Whether the space was reset after its last push.
    is_reset: bool


def read_spaces(
    database: Database, table: Table, names: Sequence[tuple[str | None, str]]
) -> list[SpaceStatus]:
    """Return the status of spaces by tenant and name: two small reads each."""
    spaces = [Space(table, tenant, name) for tenant, name in names]
    found: list[SpaceStatus] = run(_read_spaces(database.scope.of_admin(), spaces), database.engine)
    return found


def _read_spaces(scope: Scope, spaces: Sequence[Space]) -> Flow[list[SpaceStatus]]:
    heads = yield from read_heads(scope, spaces, consistent=False)
    pages = yield from send_all([_log_query(scope, each, limit=1) for each in spaces], scope.retries)
    found = []
    for head, page in zip(heads, pages, strict=True):
        records = _decode_records(head.space, decode_items(page.items or ()))
        found.append(
            SpaceStatus(
                tenant=head.space.tenant,
                name=head.space.name,
                version=head.version,
                epoch=head.epoch,
                at=head.at if head.epoch else None,
                oldest=records[0].version if records else None,
            )
        )
    return found


def read_log(
    database: Database, table: Table, space: tuple[str | None, str], *, before: int | None = None, limit: int
) -> list[LogRecord]:
    """Return the newest log records of a space, or those before a version."""
    scope, found = database.scope.of_admin(), Space(table, *space)
    last = MOST_VERSIONS if before is None else max(before - 1, 0)
    page = run(send(_log_query(scope, found, limit, last=last), scope.retries), database.engine)
    return _decode_records(found, decode_items(page.items or ()))


def read_clients(database: Database, table: Table, tenant: str | None, *, limit: int) -> list[ClientStatus]:
    """Return the first clients of a tenant, by group: two queries."""
    scope = database.scope.of_admin()
    found: list[ClientStatus] = run(_read_clients(scope, Space(table, tenant), limit), database.engine)
    return found


def _read_clients(scope: Scope, root: Space, limit: int) -> Flow[list[ClientStatus]]:
    sort = _sort_name(root.table)
    queries = [_prefix_query(scope, root, prefix, limit) for prefix in (_CLIENT, _GROUP)]
    clients, groups = yield from send_all(queries, scope.retries)
    users = {
        item[sort]["S"].removeprefix(_GROUP): item["user"]["S"] for item in decode_items(groups.items or ())
    }
    found = []
    for item in decode_items(clients.items or ()):
        group, _, _ = item[sort]["S"].removeprefix(_CLIENT).partition("#")
        rejected = load(item["rejected"]) if "rejected" in item else ()
        found.append(
            ClientStatus(
                group=unescape(group),
                client=item["client"]["S"],
                user=users.get(group),
                last_mutation_id=int(item["last"]["N"]),
                at=int(item["at"]["N"]) / 1000,
                versions={
                    each["L"][0]["S"]: int(each["L"][1]["N"]) for each in item.get("v", {}).get("L", ())
                },
                rejected=len(rejected),
                is_reset="reset" in item,
            )
        )
    return found


def _log_query(scope: Scope, space: Space, limit: int, last: int | None = None) -> Query:
    """Return the query of the oldest records, or of those up to a version, newest first."""
    upper = {"S": log_sort(MOST_VERSIONS if last is None else last)}
    between = KeyTerm(_sort_name(space.table), "BETWEEN", ({"S": log_sort(0)}, upper))
    return Query(
        table=scope.table(space.table),
        key=(KeyTerm(space.table.partition.name, "=", ({"S": space.partition},)), between),
        forward=last is None,
        limit=limit,
    )


def _prefix_query(scope: Scope, root: Space, prefix: str, limit: int) -> Query:
    table = root.table
    terms = (
        KeyTerm(table.partition.name, "=", ({"S": root.partition},)),
        KeyTerm(_sort_name(table), "begins_with", ({"S": prefix},)),
    )
    return Query(table=scope.table(table), key=terms, limit=limit)


def _decode_records(space: Space, items: Sequence[Item]) -> list[LogRecord]:
    return [decode_record(_sort_name(space.table), item) for item in items]


def _sort_name(table: Table) -> str:
    # A table with synced entities has a sort key.
    assert table.sort is not None
    return table.sort.name
