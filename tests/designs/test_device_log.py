"""Device state log, of aws-samples/amazon-dynamodb-design-patterns: a composite sort key and sparse indexes.

GSI2 sorts by the table's own sort key. Items have no type attribute; the device is only in the key.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | Logs of a device with a state, newest first | table | Query |
| 2 | Logs of an operator between two dates | GSI1 | Query |
| 3 | Logs that were escalated to a supervisor | GSI2 | Query |
| 4 | Logs with a state that were escalated to a supervisor | GSI2 | Query |
| 5 | Logs with a state that were escalated to a supervisor, of a day | GSI2 | Query |
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated, Self

import pytest

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from tests.store.opening import Opening

from .expectations import at, contents, requests

device_log = Table(
    "DeviceStateLog",
    partition="DeviceID",
    sort="State#Date",
    tag=None,
    key_format=KeyFormat(escape=False),
    indexes=[
        Index("GSI1", partition="Operator", sort="Date"),
        Index("GSI2", partition="EscalatedTo", sort="State#Date"),
    ],
)


class Log(Entity, table=device_log):
    """A change of a device's state."""

    key = Key("d#{device_id}", "{state}#{logged_at}")
    by_operator = Key(("operator",), ("logged_at",), index="GSI1")
    by_supervisor = Key(("escalated_to",), "{state}#{logged_at}", index="GSI2")
    device_id: Annotated[str, Attr(stored=False)]
    state: Annotated[str, Attr("State")]
    logged_at: Annotated[datetime, Attr("Date"), Iso("s", offset="")]
    operator: Annotated[str, Attr("Operator")]
    escalated_to: Annotated[str | None, Attr("EscalatedTo")] = None

    @pattern
    @classmethod
    def of_device(cls, device_id: str, state: str) -> Query[Self]:
        """The logs of a device with a state, newest first."""
        return cls.key.query(device_id=device_id, state=state).descending()

    @pattern
    @classmethod
    def of_operator(cls, operator: str, first: datetime, last: datetime) -> Query[Self]:
        """The logs of an operator between two dates, oldest first."""
        return cls.by_operator.query(operator=operator).between(logged_at=(first, last))

    @pattern
    @classmethod
    def escalated(cls, supervisor: str) -> Query[Self]:
        """The logs that were escalated to a supervisor."""
        return cls.by_supervisor.query(escalated_to=supervisor)

    @pattern
    @classmethod
    def escalated_with_state(cls, supervisor: str, state: str) -> Query[Self]:
        """The logs with a state that were escalated to a supervisor."""
        return cls.by_supervisor.query(escalated_to=supervisor, state=state)

    @pattern
    @classmethod
    def escalated_on_day(cls, supervisor: str, state: str, day: date) -> Query[Self]:
        """The logs with a state that were escalated to a supervisor, of a day."""
        bounds = (datetime.combine(day, time.min, UTC), datetime.combine(day, time.max, UTC))
        return cls.by_supervisor.query(escalated_to=supervisor, state=state).between(logged_at=bounds)


#: Device, state, time, operator and supervisor of the published items, and some neighbours.
LOGS = [
    ("12345", "WARNING1", "2020-04-24T14:40:00", "Liz", None),
    ("12345", "WARNING1", "2020-04-24T14:45:00", "Liz", None),
    ("12345", "WARNING1", "2020-04-24T14:50:00", "Liz", None),
    ("12345", "NORMAL", "2020-04-24T14:55:00", "Liz", None),
    ("12345", "WARNING10", "2020-04-24T15:00:00", "Sue", None),
    ("54321", "WARNING2", "2020-04-11T09:25:00", "Sue", None),
    ("54321", "NORMAL", "2020-04-11T09:30:00", "Sue", None),
    ("54321", "WARNING3", "2020-04-11T05:50:00", "Sue", None),
    ("54321", "WARNING3", "2020-04-11T05:55:00", "Liz", None),
    ("54321", "NORMAL", "2020-04-11T06:00:00", "Liz", None),
    ("11223", "WARNING4", "2020-04-27T16:10:00", "Sue", None),
    ("11223", "WARNING4", "2020-04-27T16:15:00", "Sue", "Sara"),
    ("11223", "WARNING4", "2020-04-28T00:00:00", "Sue", "Sara"),
    ("11223", "WARNING1", "2020-04-27T17:00:00", "Sue", "Sara"),
    ("11223", "WARNING4", "2020-04-27T16:20:00", "Sue", "Sarah"),
]


@pytest.fixture
def db(opening: Opening) -> Database:
    store = opening(device_log)
    for device, state, when, operator, supervisor in LOGS:
        found = {"DeviceID": f"d#{device}", "State#Date": f"{state}#{when}", "State": state, "Date": when}
        found |= {"Operator": operator} | ({} if supervisor is None else {"EscalatedTo": supervisor})
        opening.plant(device_log, {name: {"S": value} for name, value in found.items()})
    return store


def _times(logs: object) -> list[str]:
    assert isinstance(logs, list | tuple)
    assert all(type(log) is Log for log in logs)
    return [f"{log.logged_at:%d %H:%M}" for log in logs]


def test_device_log_1_logs_of_a_device_with_a_state(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        logs = db.page(Log.of_device("12345", "WARNING1"))
    assert _times(logs.items) == ["24 14:50", "24 14:45", "24 14:40"]
    assert logs.scanned == 3


def test_device_log_2_logs_of_an_operator_between_two_dates(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        logs = db.page(Log.of_operator("Liz", at("2020-04-20"), at("2020-04-25")))
    assert _times(logs.items) == ["24 14:40", "24 14:45", "24 14:50", "24 14:55"]


def test_device_log_3_logs_of_a_supervisor(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        logs = db.page(Log.escalated("Sara"))
    assert _times(logs.items) == ["27 17:00", "27 16:15", "28 00:00"]


def test_device_log_4_logs_of_a_supervisor_with_a_state(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        logs = db.page(Log.escalated_with_state("Sara", "WARNING4"))
    assert _times(logs.items) == ["27 16:15", "28 00:00"]


def test_device_log_5_logs_of_a_supervisor_with_a_state_of_a_day(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        logs = db.page(Log.escalated_on_day("Sara", "WARNING4", date(2020, 4, 27)))
    assert _times(logs.items) == ["27 16:15"]


def test_device_logs_are_escalated_and_written_back_unchanged(db: Database, opening: Opening) -> None:
    before = contents(opening, device_log)
    (log,) = [each for each in db.all(Log.of_device("11223", "WARNING4")) if each.escalated_to is None]
    db.put(log)
    assert contents(opening, device_log) == before
    db.update(log, set={"escalated_to": "Sara"})
    assert db.count(Log.escalated("Sara")) == 4
    assert len(opening.raw(device_log)) == len(before)
