"""How long things are kept: rules by the time to live, kept for good, and sweeping what has expired."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest

from solotable import FROM_SCOPE, TTL, Attr, Created, Database, Entity, Index, Key, Retention, Store, Table
from solotable.errors import DeclarationError, NotFound
from solotable.jobs.purge import list_receipts, sweep

from .opening import Opening

DAY = 86_400
kept = Table("Kept", tenant="tenant_id", ttl="ttl", indexes=[Index("GSI1")])


class BuildLog(Entity, table=kept):
    key = Key("TENANT#{tenant_id}#SITE#{site_id}", "LOG#{log_id}")
    by_state = Key("TENANT#{tenant_id}#STATE#{state}", "{log_id}", index="GSI1")
    retention = Retention(timedelta(days=90), since="created_at")
    tenant_id: str = FROM_SCOPE
    site_id: str = "s"
    log_id: str
    state: str = "ok"
    created_at: Annotated[datetime | None, Created()] = None
    expires_at: Annotated[datetime | None, TTL(), Attr("ttl")] = None


class Export(Entity, table=kept):
    """Kept until it was exported, and 7 days longer."""

    key = Key("TENANT#{tenant_id}", "EXPORT#{site_id}")
    retention = Retention(timedelta(days=7), since="exported_at")
    tenant_id: str = FROM_SCOPE
    site_id: str
    exported_at: datetime | None = None
    ends: Annotated[datetime | None, TTL(), Attr("ttl")] = None


class Membership(Entity, table=kept):
    key = Key("TENANT#{tenant_id}", "MEMBERSHIP#{user_id}#{at}")
    retention = Retention(None)
    tenant_id: str = FROM_SCOPE
    user_id: str
    at: datetime
    what: str


class Sync(Entity, table=kept):
    key = Key("TENANT#{tenant_id}", "TEMP#SYNC#{sync_id}")
    retention = Retention(timedelta(hours=24), since="begun")
    tenant_id: str = FROM_SCOPE
    sync_id: str
    begun: Annotated[datetime | None, Created()] = None
    ttl: Annotated[datetime | None, TTL()] = None


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(kept)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def test_s2_23_build_logs_are_kept_90_days_and_then_gone(db: Store, opening: Opening) -> None:
    log = db.create(BuildLog(log_id="1"))
    assert log.expires_at == opening.clock.at(90 * DAY)
    assert opening.only(BuildLog)["ttl"] == {"N": str(int(opening.clock.seconds) + 90 * DAY)}
    opening.clock.seconds += 90 * DAY - 1
    db.put(log.model_copy(update={"state": "failed"}))
    assert db.require(BuildLog, site_id="s", log_id="1").expires_at == log.expires_at, (
        "a write does not make it last longer"
    )
    opening.clock.seconds += 1
    assert db.get(BuildLog, site_id="s", log_id="1") is None


def test_s3_23_what_has_expired_is_hidden_and_swept(db: Store, opening: Opening) -> None:
    """C2.9: DynamoDB may take days to remove it."""
    with db.batch() as batch:
        for number in range(230):
            batch.put(BuildLog(log_id=f"{number:03d}", site_id=str(number % 7)))
    opening.clock.seconds += 10
    db.put(BuildLog(log_id="young"))
    db.put(Sync(sync_id="x"))
    opening.clock.seconds += 90 * DAY - 10
    assert db.count(BuildLog.by_state.query(state="ok")) == 1
    assert len(opening.raw(kept)) == 232
    admin = opening.beside(kept).admin()
    assert sweep(admin, BuildLog, budget=1000, dry_run=True).removed == {"BuildLog": 230}
    assert sweep(admin, BuildLog, budget=1000).removed == {"BuildLog": 230}
    assert {item[kept.internal_tag]["S"] for item in opening.raw(kept)} == {"BuildLog", "Sync", "_receipt"}
    assert db.get(BuildLog, site_id="s", log_id="young") is not None
    assert {(each.entity, each.why) for each in list_receipts(admin)} == {("BuildLog", "expired")}
    assert sweep(admin, BuildLog, budget=10).looked_at <= 10


def test_s2_25_an_exported_site_is_gone_after_7_days(db: Store, opening: Opening) -> None:
    site = db.create(Export(site_id="s"))
    assert site.ends is None, "nothing ends before it was exported"
    opening.clock.seconds += 100 * DAY
    now = opening.clock.at(100 * DAY)
    assert db.update(Export, site_id="s", set={"exported_at": now}).ends == now + timedelta(days=7)
    again = db.update(Export, site_id="s", set={"exported_at": now + timedelta(days=1)})
    assert again.ends == now + timedelta(days=7), "an end that is there stays"
    own = db.update(Export, site_id="s", set={"exported_at": now, "ends": None})
    assert own.ends is None, "what the caller says counts"
    db.update(Export, site_id="s", set={"exported_at": now})
    opening.clock.seconds += 7 * DAY
    assert db.get(Export, site_id="s") is None
    with pytest.raises(NotFound):
        db.update(Export, site_id="s", set={"exported_at": None})


def test_s2_24_membership_history_and_s2_21_profiles_are_kept_for_good(db: Store, opening: Opening) -> None:
    rule = Membership.plan().retention
    assert rule is not None
    assert rule.period is None, "it is stated, not forgotten"
    for seconds, what in ((0, "join"), (60, "leave")):
        db.create(Membership(user_id="u", at=opening.clock.at(seconds), what=what))
    opening.clock.seconds += 50 * 365 * DAY
    assert [each.what for each in db.all(Membership.key.query(user_id="u"))] == ["join", "leave"]
    assert all("ttl" not in item for item in opening.raw(kept))


def test_s4_42_temporary_data_ends_after_24_hours(db: Store, opening: Opening) -> None:
    db.create(Sync(sync_id="1"))
    item = opening.only(Sync)
    assert item["SK"] == {"S": "TEMP#SYNC#1"}
    assert item["ttl"] == {"N": str(int(opening.clock.seconds) + DAY)}
    opening.clock.seconds += DAY
    assert db.get(Sync, sync_id="1") is None


def test_an_end_of_ones_own_is_not_touched(db: Store, opening: Opening) -> None:
    mine = opening.clock.at(60)
    assert db.put(BuildLog(log_id="1", expires_at=mine)).expires_at == mine


Moment = Annotated[datetime | None, Created()]
End = Annotated[datetime | None, TTL(), Attr("ttl")]
REFUSED: dict[str, tuple[Retention, dict[str, Any], str]] = {
    "no end": (Retention(timedelta(1)), {"created_at": Moment}, "which has none"),
    "no beginning": (Retention(timedelta(1)), {"ends": End}, "'created_at', which is not a field"),
    "no moment": (Retention(timedelta(1), since="a"), {"ends": End}, "'a', which is not a datetime"),
    "no time": (Retention(timedelta(0)), {"ends": End}, "is too short"),
    "for good": (Retention(None), {"ends": End}, "is a time to live; remove one of them"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_rules_that_cannot_hold_are_refused(case: str) -> None:
    rule, fields, message = REFUSED[case]
    body = {"key": Key("A#{a}", "A"), "retention": rule, "__module__": __name__}
    body |= {"__annotations__": {"a": str, **fields}, **dict.fromkeys(fields)}
    with pytest.raises(DeclarationError, match=message):
        type("Bad", (Entity,), body, table=Table("Bad", ttl="ttl"))
