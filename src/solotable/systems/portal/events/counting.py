"""Count events in the numbers of their day, from the stream, each event once.

No request waits for it. An event that expires is not taken off: numbers outlive their events.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, NamedTuple, Unpack

from solotable import Database, Entity
from solotable.errors import DataError
from solotable.flow import Item, ItemUpdate, Scope, decode_value, encode_entity, run, scope_of
from solotable.flow.feed import Record
from solotable.flow.requests import UpdateItem
from solotable.systems.ledger import AggregateOptions, AggregateResult, Ledger
from solotable.systems.portal.entities.aggregates import (
    TOTALS_DAYS,
    ContentTotals,
    DayTotals,
    EmptySearch,
    UserTotals,
)
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.tables import events

VIEW, DOWNLOAD, SEARCH = "content_view", "content_download", "search"
#: What events with these names add to, besides `events`.
_COUNTED_AS = {VIEW: "views", DOWNLOAD: "downloads", SEARCH: "searches"}
_LONGEST_TEXT = 100
_EVENT = ActivityEvent.plan().tag_value
_log = logging.getLogger("solotable.portal")


class TotalsKey(NamedTuple):
    """A row of the kept numbers."""

    kind: Literal["day", "content", "user", "empty_search"]
    day: date
    subject: str = ""


def is_event(record: Record) -> bool:
    """Return whether a change of the table is a new event. An invalid one is logged and not counted."""
    item = record.after
    if record.kind != "inserted" or item is None or item.get(events.internal_tag) != _EVENT:
        return False
    try:
        for row, _ in additions(record):
            _entity(row)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, DataError) as error:
        problem = f"{type(error).__name__}: {error}"
        _log.warning("event %s is invalid and is not counted: %s", record.sequence, problem)
        return False
    return True


def additions(record: Record) -> Sequence[tuple[TotalsKey, dict[str, int]]]:
    """Return what one event adds to its day, its content, its user, and a search without a result."""
    item = record.after or {}
    day = date.fromisoformat(item[events.partition.name]["S"][:10])
    name = item["event_name"]["S"]
    user, content = _text(item, "user_id"), _text(item, "content_id")
    amounts = {"events": 1, **({_COUNTED_AS[name]: 1} if name in _COUNTED_AS else {})}
    not_found = _empty_search(item) if name == SEARCH else None
    rows = [(TotalsKey("day", day), {**amounts, **({"empty_searches": 1} if not_found else {})})]
    if content is not None and name != SEARCH:
        rows.append((TotalsKey("content", day, content), amounts))
    if user is not None:
        rows.append((TotalsKey("user", day, user), amounts))
    if not_found:
        rows.append((TotalsKey("empty_search", day, not_found), {"searches": 1}))
    return rows


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def _empty_search(item: Item) -> str | None:
    """Return the text of a search that found nothing, as the numbers have it."""
    metadata = decode_value(item["metadata"]) if "metadata" in item else {}
    text = metadata.get("query")
    if metadata.get("results") != 0 or not isinstance(text, str):
        return None
    return " ".join(text.casefold().split())[:_LONGEST_TEXT].strip() or None


def _entity(row: TotalsKey) -> Entity:
    ends = datetime.combine(row.day, time(), UTC) + timedelta(days=TOTALS_DAYS)
    match row.kind:
        case "day":
            return DayTotals(day=row.day, expires_at=ends)
        case "content":
            return ContentTotals(day=row.day, content_id=row.subject, expires_at=ends)
        case "user":
            return UserTotals(day=row.day, user_id=row.subject, expires_at=ends)
        case "empty_search":
            return EmptySearch(day=row.day, text=row.subject, expires_at=ends)


def _update(scope: Scope, row: TotalsKey, amounts: Mapping[str, int]) -> UpdateItem:
    item = encode_entity(scope, _entity(row))
    key = {name: item.pop(name) for name in events.key_names}
    update = ItemUpdate()
    for name, value in item.items():
        # The numbers of a new row are zeros, which ADD starts from.
        if name == events.ttl or "N" not in value:
            update.set_if_missing(name, decode_value(value))
    for name, amount in amounts.items():
        update.add(name, amount)
    return UpdateItem(table=scope.table(events), key=key, update=update.build())


TOTALS = Ledger(table=events, name="analytics", additions=additions, is_counted=is_event, update=_update)


def aggregate(db: Database, **options: Unpack[AggregateOptions]) -> AggregateResult:
    """Count all events that were not counted yet, and return how many there were.

    `follow` waits for more. After a FeedTrimmed, `recover` continues with what the stream still has.
    """
    return run(TOTALS.aggregate(scope_of(db), **options), db)
