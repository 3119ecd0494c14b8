"""Collections: the entities of one partition by class, read as a mixed query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._entities.patterns.query import Query, mixed
from solotable._flows.consumption import measured
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable.errors import DataError

from .query import FilledPage, page, prepare, read


@measured
def collection(
    scope: Scope,
    members: Sequence[Query[Any]],
    *,
    limit: int | None,
    cursor: str | None,
    descending: bool,
    most: int,
) -> Flow[FilledPage]:
    """Read the entities of all members in the order of their key: a page of `limit`, or at most `most`."""
    query: Query[Any] = mixed(members)
    if descending:
        query = query.descending()
    if limit is not None:
        return (yield from page(scope, query, limit=limit, cursor=cursor))
    if cursor is not None:
        raise DataError("collection(cursor=...) needs limit=, the number of items of a page.")
    prepared = prepare(scope, query)
    found: list[Any] = []
    scanned, skipped, start = 0, 0, None
    while True:
        batch = yield from read(scope, prepared, start)
        found += batch.rows
        scanned, skipped, start = scanned + batch.scanned, skipped + batch.skipped, batch.last_key
        if len(found) > most:
            raise DataError(
                f"The collection has more than {most:,} items; raise most=, or read it in pages with limit=."
            )
        if start is None:
            return FilledPage(found, None, scanned, skipped)


def grouped(members: Sequence[Query[Any]], found: Sequence[Any], *, root: bool) -> tuple[Any, ...]:
    """Return one list for each member; with `root`, the first is its single entity, or None."""
    groups = tuple([each for each in found if isinstance(each, part.plan.entity)] for part in members)
    if not root:
        return groups
    if len(groups[0]) > 1:
        name = members[0].plan.name
        raise DataError(
            f"collection({name}, ...) returns one item of its first entity, but {len(groups[0])} {name} "
            f"items are in this range; put the entity with one item first, or pass root=False."
        )
    return (groups[0][0] if groups[0] else None, *groups[1:])
