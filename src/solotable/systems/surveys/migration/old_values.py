"""Values of the old tables: times, old spellings of enums, orders, and what no new field has.

What a rule corrects, it keeps beside the entity as an attribute that begins with `old_`, so that the way back
can restore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from solotable import Entity, flow
from solotable.migrations.mapping import stable_id
from solotable.systems.surveys.entities.stored import Condition
from solotable.systems.surveys.entities.surveys import SurveyStatus

#: The time of items that have none.
UNKNOWN_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ORDER_WIDTH = 6
_CONDITIONS: Mapping[str, Condition] = {
    "excellent": "Excellent",
    "very good": "Excellent",
    "good": "Good",
    "ok": "Fair",
    "fair": "Fair",
    "average": "Fair",
    "poor": "Poor",
    "bad": "Poor",
    "n/a": "N/A",
    "na": "N/A",
    "": "N/A",
}
_STATUSES: Mapping[str, SurveyStatus] = {
    "draft": "draft",
    "new": "draft",
    "": "draft",
    "in_progress": "in_progress",
    "in-progress": "in_progress",
    "open": "in_progress",
    "completed": "completed",
    "complete": "completed",
    "published": "completed",
    "archived": "archived",
    "deleted": "archived",
}


def parse_time(value: Any) -> datetime | None:
    """Return the time of an ISO 8601 text; None if it has none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def format_time(value: datetime | None) -> str | None:
    """Return a time as the old tables store it."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def times_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return when an old item was created and changed; one stands in for the other."""
    created, updated = parse_time(item.get("created")), parse_time(item.get("updated"))
    return {
        "created": created or updated or UNKNOWN_TIME,
        "updated": updated or created or UNKNOWN_TIME,
    }


def condition_of(value: Any) -> Condition:
    """Return a condition by an old spelling; N/A for an unknown one (S4.26, C4.12)."""
    return _CONDITIONS.get(str(value or "").strip().lower(), "N/A")


def status_of(value: Any) -> SurveyStatus:
    """Return a status by an old spelling; draft for an unknown one (S4.26, C4.12)."""
    return _STATUSES.get(str(value or "").strip().lower().replace(" ", "_"), "draft")


def old_spelling(value: Any, now: str) -> str | None:
    """Return the old spelling to keep; None if it is missing or the same."""
    return None if value is None or str(value) == now else str(value)


def spelled(entity: Entity, name: str, value: str) -> str:
    """Return the old spelling of a value that has not changed since, or the value."""
    kept = old_values(entity).get(f"old_{name}")
    known: str = condition_of(kept) if name == "condition" else status_of(kept)
    return str(kept) if kept is not None and known == value else value


def order_of(value: Any) -> int:
    """Return an order as a number; 0 for a missing one (S4.26)."""
    try:
        return max(0, int(float(value)))
    except (TypeError, ValueError, OverflowError):
        return 0


def order_key(number: int) -> str:
    """Return an order key that sorts as the numbers do.

    >>> order_key(2) < order_key(10) < order_key(100)
    True
    """
    rest, text = min(number, 62**_ORDER_WIDTH - 1), ""
    for _ in range(_ORDER_WIDTH):
        rest, digit = divmod(rest, 62)
        text = _DIGITS[digit] + text
    # A key does not end with 0.
    return text + "V"


def order_number(key: str) -> int:
    """Return the number of an order key, also of one that a move made."""
    number = 0
    for digit in key[:_ORDER_WIDTH].ljust(_ORDER_WIDTH, "0"):
        number = number * 62 + _DIGITS.index(digit)
    return number


def config_id(survey_id: str, created: datetime) -> str:
    """Return the id of a survey's snapshot: it sorts by time as a new id does, and is always the same."""
    rest, text = max(0, int(created.timestamp() * 1000)), ""
    for _ in range(10):
        rest, digit = divmod(rest, 32)
        text = _ULID_DIGITS[digit] + text
    return text + stable_id("SurveyConfig", survey_id)[:16].upper()


def sync_of(item: Mapping[str, Any], updated: datetime) -> dict[str, Any]:
    """Return the fields of an item's synchronisation; the old index key has the status behind the tenant."""
    status = str(item.get("sync_key", "")).rpartition("#")[2]
    if status not in ("pending", "failed"):
        return {}
    fields: dict[str, Any] = {"sync_status": status, "waiting_since": updated}
    if item.get("sync_error"):
        fields["sync_error"] = str(item["sync_error"])[:1000]
    return fields


def texts(value: Any) -> list[str]:
    """Return a list of texts: missing ones are empty, and an old item may have a set."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return []
    return [str(each) for each in (sorted(value) if isinstance(value, (set, frozenset)) else value)]


def keep(entity: Entity, values: Mapping[str, Any]) -> None:
    """Keep values beside the fields of an entity; None is left out."""
    entity.keep_unknown(
        {name: flow.encode_value(value) for name, value in sorted(values.items()) if value is not None}
    )


def old_values(entity: Entity) -> dict[str, Any]:
    """Return the values that a rule kept beside the fields."""
    kept = entity.unknown_attributes
    return {name: flow.decode_value(value) for name, value in kept.items() if not name.startswith("_")}


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item without the values that are None."""
    return {name: value for name, value in values.items() if value is not None}
