"""Times as other programs write them, and ranges over times finer than the key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import pytest

from solotable import TTL, Created, Entity, Epoch, Index, Iso, Key, Table, Updated, between
from solotable.errors import DataError, DeclarationError

from .opening import Opening

logs = Table(
    "Logs",
    partition="device",
    sort="at",
    ttl="expires",
    indexes=[Index("GSI1", partition="device", sort="seen:N"), Index("GSI2")],
)
BASE = datetime(2035, 1, 1, 12, 0, 0, tzinfo=UTC)


class Entry(Entity, table=logs):
    """A log entry of a device, with the times of a JavaScript program."""

    key = Key(("device",), ("at",))
    by_seen = Key(("device",), ("seen",), index="GSI1")
    by_created = Key("CREATED#{device}", "{created:s}#{changed}", index="GSI2")
    device: str
    at: Annotated[datetime, Iso("ms")]
    seen: Annotated[datetime | None, Epoch("s")] = None
    created: Annotated[datetime | None, Created()] = None
    changed: Annotated[datetime | None, Updated(), Epoch("ms")] = None
    pynamo: Annotated[datetime | None, Iso("us", offset="+0000")] = None
    expires: Annotated[datetime | None, TTL(), Epoch("s")] = None


def _at(milliseconds: float) -> datetime:
    return BASE + timedelta(milliseconds=milliseconds)


def test_times_are_written_in_their_format_and_truncated(opening: Opening) -> None:
    db = opening(logs)
    opening.clock.seconds += 0.123456
    entry = Entry(device="d", at=_at(1.9), seen=_at(2999), pynamo=_at(0), expires=_at(10**10))
    assert entry.at == _at(1)
    stored = db.put(entry)
    item = opening.only(Entry)
    assert item["at"] == {"S": "2035-01-01T12:00:00.001Z"}
    assert item["seen"] == {"N": str(int(BASE.timestamp()) + 2)}
    assert item["pynamo"] == {"S": "2035-01-01T12:00:00.000000+0000"}
    assert item["created"] == {"S": "2035-01-01T00:00:00.000000Z"}
    assert item["changed"] == {"N": f"{int(opening.clock.seconds)}123"}
    assert item["GSI2SK"] == {"S": f"2035-01-01T00:00:00Z#{int(opening.clock.seconds)}123"}
    assert stored.seen == _at(2000)
    assert db.get(Entry, device="d", at=_at(1)) == stored
    # A copy is not validated; the put truncates it.
    again = db.put(stored.model_copy(update={"seen": _at(3999)}))
    assert again.seen == _at(3000)
    updated = db.update(Entry, device="d", at=_at(1), set={"seen": _at(4999)})
    assert updated.seen == _at(4000)
    with pytest.raises(DataError, match="finer than the milliseconds"):
        db.get(Entry, device="d", at=_at(1.5))


naive = Table("NaiveLogs", indexes=[Index("GSI1", partition="device", sort="at")])


class NaiveEntry(Entity, table=naive):
    """A log entry whose times have no offset."""

    key = Key("D#{device}", "{at}#{number:02d}")
    by_device = Key(("device",), ("at",), index="GSI1")
    device: str
    at: Annotated[datetime, Iso("s", offset="")]
    number: int = 0


def test_times_without_an_offset_are_utc(opening: Opening) -> None:
    db = opening(naive)
    in_paris = datetime(2035, 1, 1, 13, 0, 1, 900_000, tzinfo=timezone(timedelta(hours=1)))
    db.put(NaiveEntry(device="d", at=in_paris))
    item = opening.only(NaiveEntry)
    assert (item["at"], item["SK"]) == ({"S": "2035-01-01T12:00:01"}, {"S": "2035-01-01T12:00:01#00"})
    (found,) = db.all(NaiveEntry.by_device.query(device="d").between(at=(BASE, _at(1000))))
    assert found.at == _at(1000)
    assert db.get(NaiveEntry, device="d", at=_at(1000), number=0) == found
    assert db.count(NaiveEntry.key.query(device="d").after(at=_at(1000))) == 0
    with pytest.raises(DataError, match="no time zone"):
        db.put(NaiveEntry(device="d", at=datetime(2035, 1, 1)))


def test_ranges_over_finer_times_are_exact(opening: Opening) -> None:
    db = opening(logs)
    for number in range(4):
        db.put(Entry(device="d", at=_at(number), seen=_at(number * 1000)))
    # Written by JavaScript, as in the table before.
    opening.plant(
        logs, {"device": {"S": "d"}, "at": {"S": "2035-01-01T12:00:00.004Z"}, "_type": {"S": "Entry"}}
    )
    query = Entry.key.query(device="d")

    def found(*bounds: float, verb: str) -> list[int]:
        values = tuple(map(_at, bounds))
        ranged = getattr(query, verb)(at=values if verb == "between" else values[0])
        return [(entry.at - BASE) // timedelta(milliseconds=1) for entry in db.all(ranged)]

    assert found(1, verb="since") == [1, 2, 3, 4]
    assert found(1.5, verb="since") == [2, 3, 4]
    assert found(1.5, verb="after") == [2, 3, 4]
    assert found(1, verb="until") == [0, 1]
    assert found(1.5, verb="until") == [0, 1]
    assert found(1.5, verb="before") == [0, 1]
    assert found(2, verb="before") == [0, 1]
    assert found(0.5, 2.5, verb="between") == [1, 2]
    assert found(1.2, 1.8, verb="between") == []
    assert found(4, 4, verb="between") == [4]
    by_seen = Entry.by_seen.query(device="d").since(seen=_at(1500))
    assert [entry.at for entry in db.all(by_seen)] == [_at(2), _at(3)]


def test_conditions_over_finer_times_are_exact(opening: Opening) -> None:
    db = opening(logs)
    for number in range(4):
        db.put(Entry(device="d", at=_at(number), seen=_at(number * 1000)))
    query = Entry.key.query(device="d")
    before = query.where(lambda entry: entry.seen < _at(1500))  # type: ignore[operator]  # may be None
    assert [entry.at for entry in db.all(before)] == [_at(0), _at(1)]
    since = query.where(lambda entry: entry.seen >= _at(1500))  # type: ignore[operator]  # may be None
    assert [entry.at for entry in db.all(since)] == [_at(2), _at(3)]
    within = query.where(lambda entry: between(entry.seen, _at(1200), _at(1800)))
    assert list(db.all(within)) == []


def test_bounds_of_a_template_are_rounded(opening: Opening) -> None:
    db = opening(logs)
    for seconds in (0.2, 1.7, 2.0):
        opening.clock.seconds = BASE.timestamp() + seconds
        db.put(Entry(device="d", at=_at(seconds * 1000)))
    query = Entry.by_created.query(device="d")
    # The key has whole seconds: 12:00:00, 12:00:01 and 12:00:02.
    assert len(list(db.all(query.since(created=_at(500))))) == 2
    assert len(list(db.all(query.until(created=_at(1500))))) == 2
    assert len(list(db.all(query.before(created=_at(1000))))) == 1
    assert len(list(db.all(query.before(created=_at(1001))))) == 2
    assert len(list(db.all(query.after(created=_at(1999))))) == 1
    assert len(list(db.all(query.between(created=(_at(1), _at(999)))))) == 0


def test_markers_that_do_not_fit_are_rejected() -> None:
    table = Table("Wrong", ttl="x")
    with pytest.raises(DeclarationError, match="declare it as datetime"):

        class Text(Entity, table=table):
            key = Key("A#{a}", "A")
            a: str
            x: Annotated[str, Iso("s")]

    with pytest.raises(DeclarationError, match="time to live is always epoch seconds"):

        class Life(Entity, table=table):
            key = Key("A#{a}", "A")
            a: str
            x: Annotated[datetime, TTL(), Epoch("ms")]

    with pytest.raises(DeclarationError, match="Iso and Epoch"):

        class Both(Entity, table=table):
            key = Key("A#{a}", "A")
            a: str
            x: Annotated[datetime, Iso("s"), Epoch("s")]


def test_bounds_that_no_epoch_key_has_select_everything_or_nothing(opening: Opening) -> None:
    table = Table("EpochBounds")

    class Reading(Entity, table=table):
        key = Key("READING#{device}", "{at}")
        device: str
        at: Annotated[datetime, Epoch("ms")]

    db = opening(table)
    db.put(Reading(device="a", at=datetime(2026, 1, 1, tzinfo=UTC)))
    query = Reading.key.query(device="a")
    early = (datetime.min.replace(tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC))
    late = (datetime(2300, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    for bound in early:
        assert [db.count(each) for each in (query.since(at=bound), query.after(at=bound))] == [1, 1]
        assert [db.count(each) for each in (query.until(at=bound), query.before(at=bound))] == [0, 0]
    for bound in late:
        assert [db.count(each) for each in (query.since(at=bound), query.after(at=bound))] == [0, 0]
        assert [db.count(each) for each in (query.until(at=bound), query.before(at=bound))] == [1, 1]
    for low, high, found in ((early[0], late[1], 1), (*early, 0), (*late, 0), (early[1], early[0], 0)):
        assert db.count(query.between(at=(low, high))) == found
