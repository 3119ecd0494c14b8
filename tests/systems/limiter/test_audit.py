"""The audit trail: what is kept of each change, for how long, and the archive of it."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta

import pytest

from solotable.errors import CursorRejected, DataError
from solotable.jobs.deliver import deliver
from solotable.systems.limiter.admin.audit import RETENTION, AuditRecord, archive, audit, audit_sink
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.admin.registry import create_entity, delete_entity, delete_limits, set_limits

from .conftest import Drive
from .ground import Place

RPM, TPM = Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 5)


def busy(place: Place, drive: Drive) -> None:
    """Do one of everything, a second apart."""
    scope = place.scope
    for flow in (
        create_entity(scope, "acct", name="Account"),
        create_entity(scope, "key", parent="acct", cascade=True, metadata={"a": [1]}),
        set_limits(scope, [RPM], entity="key"),
        set_limits(scope, [TPM], entity="key", resource="gpt-4"),
        set_limits(scope, [RPM], resource="gpt-4"),
        set_limits(scope, [TPM], on_unavailable="allow"),
        set_limits(scope, [TPM], entity="key"),
        delete_limits(scope, resource="gpt-4"),
        delete_entity(scope, "key"),
    ):
        place.clock.seconds += 1
        drive(flow)
    assert deliver(place.db, [audit_sink()]).events == 11


def test_every_change_is_in_the_trail_of_its_namespace_newest_first(place: Place, drive: Drive) -> None:
    busy(place, drive)
    place.sent()
    page = drive(audit(place.scope, limit=100))
    assert place.sent() == ["Query"]
    told = [(each.action, each.title) for each in page]
    # The deletion of an entity takes its limits first, at the same moment here.
    assert sorted(told[:3]) == [
        ("entity_deleted", "key"),
        ("limits_deleted", "key"),
        ("limits_deleted", "key on gpt-4"),
    ]
    assert told[3:] == [
        ("limits_deleted", "gpt-4"),
        ("limits_set", "key"),
        ("limits_set", "system"),
        ("limits_set", "gpt-4"),
        ("limits_set", "key on gpt-4"),
        ("limits_set", "key"),
        ("entity_created", "key"),
        ("entity_created", "Account"),
    ]
    assert {(each.actor_id, each.actor_name, each.actor_email, each.request_id) for each in page} == {
        ("u-17", "Ann", "ann@example.org", "r-1")
    }
    assert drive(audit(place.other)).items == []


def test_a_record_says_what_changed(place: Place, drive: Drive) -> None:
    busy(place, drive)
    by_time = {each.at: each for each in drive(audit(place.scope, limit=100))}
    again = by_time[place.clock.at(7)]
    assert again.changes["rules"] == {"before": "rpm=100/60", "after": "tpm=5/60"}
    assert again.snapshot["rules"] == "tpm=5/60"
    system = by_time[place.clock.at(6)]
    assert (system.entity, system.resource, system.snapshot["on_unavailable"]) == (None, None, "allow")
    gone = by_time[place.clock.at(8)]
    assert gone.changes["rules"] == {"before": "rpm=100/60", "after": None}
    made = by_time[place.clock.at(2)]
    assert (made.snapshot["parent_id"], made.snapshot["cascade"]) == ("acct", True)


def test_the_trail_of_an_entity_has_its_limits_in_pages(place: Place, drive: Drive) -> None:
    busy(place, drive)
    page = drive(audit(place.scope, entity="key", limit=4))
    rest = drive(audit(place.scope, entity="key", limit=4, cursor=page.cursor))
    assert {each.entity for each in (*page, *rest)} == {"key"}
    assert [each.action for each in rest] == ["limits_set", "limits_set", "entity_created"]
    assert [each.at for each in (*page, *rest)] == sorted((each.at for each in (*page, *rest)), reverse=True)
    assert [each.action for each in drive(audit(place.scope, entity="acct"))] == ["entity_created"]
    for stranger in (
        audit(place.scope, cursor=page.cursor),
        audit(place.other, entity="key", cursor=page.cursor),
    ):
        with pytest.raises(CursorRejected):
            drive(stranger)
    with pytest.raises(DataError, match="An entity name has"):
        drive(audit(place.scope, entity="a#b"))


def test_s1_1_a_record_of_the_trail_is_flat(place: Place, drive: Drive) -> None:
    busy(place, drive)
    records = place.raw("AuditRecord")
    assert len(records) == 11
    assert not [name for item in records for name, value in item.items() if "M" in value or "L" in value]


def test_an_event_that_is_delivered_again_is_kept_once(place: Place, drive: Drive) -> None:
    busy(place, drive)
    before = place.raw("AuditRecord")
    assert deliver(place.db, [audit_sink()], consumer="again").events == 11
    assert place.raw("AuditRecord") == before


def test_a_record_is_kept_for_90_days(place: Place, drive: Drive) -> None:
    drive(create_entity(place.scope, "acct"))
    deliver(place.db, [audit_sink()])
    (item,) = place.raw("AuditRecord")
    assert item["expires"] == {"N": str(int(place.clock.seconds) + 90 * 86_400)}
    place.clock.seconds += RETENTION.total_seconds() - 1
    assert len(drive(audit(place.scope))) == 1
    place.clock.seconds += 1
    assert len(drive(audit(place.scope))) == len(drive(audit(place.scope, entity="acct"))) == 0


def test_an_archive_is_gzip_of_json_lines_oldest_first(place: Place, drive: Drive) -> None:
    busy(place, drive)
    file = io.BytesIO()
    assert drive(archive(place.scope, file, before=place.clock.at(9))) == 8
    lines = [json.loads(line) for line in gzip.decompress(file.getvalue()).splitlines()]
    assert [line["action"] for line in lines] == [
        "entity_created",
        "entity_created",
        *["limits_set"] * 5,
        "limits_deleted",
    ]
    first = AuditRecord.model_validate(lines[0])
    assert (first.title, first.at, first.actor_email) == ("Account", place.clock.at(1), "ann@example.org")
    again = io.BytesIO()
    drive(archive(place.scope, again, before=place.clock.at(9)))
    assert again.getvalue() == file.getvalue()
    part = io.BytesIO()
    since, before = place.clock.at(2), place.clock.at(9)
    assert drive(archive(place.scope, part, since=since, before=before)) == 7
    none = io.BytesIO()
    assert drive(archive(place.scope, none, before=since - timedelta(seconds=1))) == 0
    assert gzip.decompress(none.getvalue()) == b""
    with pytest.raises(DataError, match="An archive ends after it begins"):
        drive(archive(place.scope, none, since=before, before=since))


def test_a_long_archive_is_read_page_by_page(
    place: Place, drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from solotable.systems.limiter.admin import audit as trail

    monkeypatch.setattr(trail, "_PAGE_RECORDS", 2)
    busy(place, drive)
    place.sent()
    file = io.BytesIO()
    assert drive(archive(place.scope, file, before=place.clock.at(60))) == 11
    assert place.sent() == ["Query"] * 6
    assert len(gzip.decompress(file.getvalue()).splitlines()) == 11
