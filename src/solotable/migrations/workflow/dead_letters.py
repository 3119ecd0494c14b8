"""Dead letters: source items that cannot be migrated, with their key and the cause."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from solotable._expressions.ast import KeyTerm
from solotable._flows.retry import Flow, send
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, PutItem, Query
from solotable._values import Item, dump, load
from solotable.errors import OutcomeUnknown
from solotable.migrations.mapping import DeadLetter

from .control import write_while
from .sides import Side, control_key

_KIND = "DEAD#"


def dead_key(migration: str, direction: str, source: str, key: Item) -> Item:
    """Return the key of the item that stores a dead letter."""
    digest = blake2b(repr(sorted(key.items())).encode(), digest_size=12).hexdigest()
    return control_key(migration, f"{_KIND}{direction}#{source}#{digest}")


def bury(side: Side, migration: str, direction: str, letters: Iterable[DeadLetter]) -> Flow[None]:
    """Store dead letters; one of the same source item is replaced.

    Raises MigrationConflict if the migration has ended.
    """
    for letter in letters:
        item = dead_key(migration, direction, letter.source, letter.key)
        item |= {"source": {"S": letter.source}, "key": {"M": dict(letter.key)}, "cause": dump(letter.cause)}
        yield from write_while(side, migration, PutItem(table=side.control, item=item))


def revive(side: Side, migration: str, direction: str, keys: Iterable[tuple[str, Item]]) -> Flow[None]:
    """Delete the dead letters of source items that were migrated after all."""
    for source, key in keys:
        stored = dead_key(migration, direction, source, key)
        yield from _repeat(DeleteItem(table=side.control, key=stored), side)


def dead_letters(side: Side, migration: str, direction: str | None = None) -> Flow[list[DeadLetter]]:
    """Return the dead letters of a migration."""
    found: list[DeadLetter] = []
    start = None
    prefix = _KIND if direction is None else f"{_KIND}{direction}#"
    key = (
        KeyTerm("PK", "=", (control_key(migration, "")["PK"],)),
        KeyTerm("SK", "begins_with", ({"S": prefix},)),
    )
    while True:
        request = Query(table=side.control, key=key, start=start, consistent=True)
        reply = yield from send(request, side.scope.retries)
        found += [
            DeadLetter(item["source"]["S"], item["key"]["M"], load(item["cause"]))
            for item in decode_items(reply.items or ())
        ]
        start = reply.last_key
        if not start:
            return found


def _repeat(request: PutItem | DeleteItem, side: Side) -> Flow[None]:
    """Send a write that may be executed twice."""
    try:
        yield from send(request, side.scope.retries)
    except OutcomeUnknown:
        yield from send(request, side.scope.retries)
