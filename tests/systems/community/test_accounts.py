"""Accounts: deletion with grace, recovery, purge with a receipt, pseudonyms, and exports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solotable import Database
from solotable._protocol.requests import (
    BatchWriteItem,
    DeleteItem,
    PutItem,
    Request,
    TransactWriteItems,
    UpdateItem,
)
from solotable.errors import NotFound
from solotable.systems.community.entities.accounts import AccountDeletion
from solotable.systems.community.entities.builds import Build, BuildLog
from solotable.systems.community.entities.neighbourhoods import Membership
from solotable.systems.community.entities.users import Session, User
from solotable.systems.community.errors import AccountDeleted, Forbidden, LastAdmin, NotRecoverable
from solotable.systems.community.formats.content_ids import content_id
from solotable.systems.community.jobs.account_purge import AccountPurge
from solotable.systems.community.roles import VISITOR
from solotable.systems.community.table import SHARDS
from solotable.testing import RecordingEngine

from .town import ANN, BEN, EVA, VIC, Town, Work

BEN_DID = BEN.require_user()


def furnish(town: Town) -> None:
    """Give ben a site with posts, a build and its log, records, a session and memberships."""
    place = town.found(ANN)
    town.join(BEN, place)
    private = town.found(ANN, name="Private", privacy="private")
    town.join(BEN, private)
    left = town.found(ANN, name="Left")
    town.join(BEN, left)
    town.run(town.memberships.leave(BEN, left.id))
    site = town.site(BEN, subdomain="ben")
    for number in range(3):
        town.post(site, title=f"Post {number}")
    deleted = town.site(BEN, subdomain="ben-old")
    town.run(town.sites.delete(BEN, deleted.site_id))
    record = town.record(BEN)
    town.run(town.records.update(BEN, record.type, record.rkey, {"text": "changed"}))
    gone = town.record(BEN)
    town.run(town.records.delete(BEN, gone.type, gone.rkey))
    build = town.blocking.create(Build(did=BEN_DID, site_id=site.site_id))
    town.blocking.create(
        BuildLog(did=BEN_DID, site_id=site.site_id, job_id=build.job_id, number=1, text="Start")
    )
    town.blocking.create(
        Session(did=BEN_DID, session_id="s1", digest="0" * 64, expires_at=town.clock.at(10**9))
    )


def mentions(town: Town, text: str) -> list[str]:
    """Return the types of stored items that contain a text."""
    return sorted(
        str(item.get("entity_type")) for item in town.raw() if text in json.dumps(item, default=str)
    )


def test_s2_21_an_active_profile_never_expires(town: Town) -> None:
    town.pass_time(days=4000)
    town.purge()
    assert town.blocking.get(User, did=BEN_DID) is not None
    assert all("expires_at" not in item for item in town.items("USER"))


def test_s2_22_a_deleted_account_is_hidden_at_once_and_recovered_within_30_days(town: Town) -> None:
    furnish(town)
    before = town.blocking.require(User, did=BEN_DID)
    deletion = town.run(town.accounts.delete(BEN))
    with pytest.raises(NotFound):
        town.run(town.users.get(ANN, BEN_DID))
    with pytest.raises(NotFound):
        town.run(town.users.by_handle(ANN, "ben.bsky.social"))
    assert town.run(town.users.batch(ANN, [BEN_DID])) == []
    assert list(town.blocking.all(Session.of_user(BEN_DID))) == []
    with pytest.raises(AccountDeleted):
        town.sign_up(BEN)
    with pytest.raises(Forbidden):
        town.run(town.memberships.join(BEN, town.found(EVA, name="New").id))
    town.pass_time(days=29, hours=23)
    assert town.purge().accounts == 0
    assert town.run(town.accounts.pending(BEN_DID)) == deletion
    assert town.run(town.accounts.recover(BEN_DID)) == before
    assert len(town.run(town.memberships.of_user(BEN, BEN_DID))) == 1
    town.pass_time(days=10)
    assert town.purge().accounts == 0
    assert town.blocking.get(User, did=BEN_DID) is not None


def test_s2_22_after_30_days_the_purge_removes_everything_and_leaves_a_receipt(town: Town) -> None:
    furnish(town)
    deletion = town.run(town.accounts.delete(BEN))
    town.pass_time(days=30, seconds=3)
    with pytest.raises(NotRecoverable):
        town.run(town.accounts.recover(BEN_DID))
    expected = town.purge(dry_run=True)
    assert mentions(town, BEN_DID)
    report = town.purge()
    assert (report.accounts, report.errors, report.held) == (1, 0, 0)
    receipt = town.run(town.accounts.receipt(deletion.receipt_id))
    assert receipt.removed == {
        "Build": 1,
        "BuildLog": 1,
        "Membership": 3,
        "MembershipEvent": 4,
        "Post": 3,
        "Record": 2,
        "Site": 2,
        "SiteOwner": 2,
        "User": 1,
    }
    assert expected.removed == report.removed
    assert mentions(town, BEN_DID) == []
    assert mentions(town, "ben.bsky.social") == []
    assert town.purge().accounts == 0
    # The names are free again.
    assert town.site(ANN, subdomain="ben").subdomain == "ben"
    other = town.run(town.users.sign_in("did:plc:other", handle="ben.bsky.social"))
    assert other.bluesky_handle == "ben.bsky.social"


def test_c2_7_the_history_of_a_purged_account_stays_under_a_pseudonym(town: Town) -> None:
    furnish(town)
    place = town.found(ANN, name="Choir")
    town.join(BEN, place)
    town.join(VIC, place)
    town.run(town.memberships.change_role(ANN, place.id, BEN_DID, "admin"))
    town.pass_time(minutes=1)
    town.run(town.memberships.remove(BEN, place.id, VIC.require_user()))
    deletion = town.run(town.accounts.delete(BEN))
    town.pass_time(days=31)
    town.purge()
    events = list(reversed(list(town.run(town.memberships.history(ANN, place.id, limit=100)))))
    kinds = [(each.kind, each.user_did == deletion.pseudonym) for each in events]
    assert sorted(kinds) == sorted(
        [
            ("joined", False),
            ("joined", True),
            ("joined", False),
            ("role_changed", True),
            ("removed", False),
            ("left", True),
        ]
    )
    (removed,) = (each for each in events if each.kind == "removed")
    assert removed.actor_did == deletion.pseudonym
    assert BEN_DID not in str(events)
    receipt = town.items("RECEIPT")
    assert deletion.pseudonym not in str(receipt)


def test_c2_6_a_purged_member_leaves_and_the_counts_are_right(town: Town) -> None:
    place = town.found(ANN)
    for caller in (BEN, EVA):
        town.join(caller, place)
    town.run(town.accounts.delete(BEN))
    assert town.counts(place) == (3, 1)
    town.pass_time(days=31)
    town.purge()
    assert town.counts(place) == (2, 1)


def test_c2_13_the_creator_deletes_the_account_only_after_the_handover(town: Town) -> None:
    place = town.found(ANN)
    town.join(BEN, place)
    with pytest.raises(LastAdmin, match="Downtown Collective"):
        town.run(town.accounts.delete(ANN))
    town.run(town.memberships.leave(BEN, place.id))
    town.run(town.accounts.delete(ANN))
    # A user joins while the creator is in the grace period: the longest member takes over.
    town.pass_time(days=1)
    town.join(EVA, place)
    town.pass_time(days=1)
    town.join(VIC, place)
    town.pass_time(days=31)
    town.purge()
    assert town.counts(place) == (2, 1)
    assert town.stored(place).creator_did == EVA.did
    heir = town.blocking.require(Membership, neighbourhood_id=place.id, user_did=EVA.require_user())
    assert heir.role == "creator"
    assert "promoted" in str(town.run(town.memberships.history(EVA, place.id)).items)


def test_c2_13_a_neighbourhood_without_another_member_goes_with_its_creator(town: Town) -> None:
    place = town.found(ANN)
    town.run(town.accounts.delete(ANN))
    town.pass_time(days=31)
    town.purge()
    with pytest.raises(NotFound):
        town.run(town.neighbourhoods.get(BEN, place.id))
    town.pass_time(days=31)
    town.purge()
    assert town.items("NBHD") == []
    assert town.found(BEN, name="Downtown Collective").slug == "downtown-collective"
    assert ANN.require_user() not in json.dumps(town.items("MEMBER_EVENT"))


def test_s2_22_an_account_on_hold_stays_with_its_memberships(town: Town) -> None:
    furnish(town)
    town.blocking.hold(User, did=BEN_DID, reason="case 7")
    town.run(town.accounts.delete(BEN))
    town.pass_time(days=31)
    report = town.purge()
    assert (report.accounts, report.held) == (0, 1)
    assert len(list(town.blocking.all(Membership.of_user(BEN_DID)))) == 1
    town.blocking.release_hold(User, did=BEN_DID)
    assert town.purge().accounts == 1


class Killed(BaseException):
    """The process ended."""


class DyingEngine(RecordingEngine):
    """An engine whose process ends after a number of writes."""

    left = 0

    def handle(self, request: Request[Any], /) -> Any:
        reply = super().handle(request)
        if isinstance(request, (PutItem, UpdateItem, DeleteItem, TransactWriteItems, BatchWriteItem)):
            self.left -= 1
            if self.left == 0:
                raise Killed
        return reply

    def close(self) -> None:
        """Leave the engine to the fixture."""


def test_s2_22_a_purge_that_dies_at_any_write_continues_and_its_receipt_is_exact(town: Town) -> None:
    furnish(town)
    place = town.found(BEN, name="Heirs")
    deletion = town.run(town.accounts.delete(BEN))
    town.join(EVA, place)
    town.pass_time(days=31)
    expected = town.purge(dry_run=True).removed
    engine = DyingEngine(town.engine)
    job = AccountPurge(Database(engine, town.blocking.scope), now=town.now)
    kills = 0
    while True:
        # Each run does one write more than the one before: the first runs end in the first steps.
        engine.left = kills + 1
        try:
            report = job.run_once()
        except Killed:
            kills += 1
            continue
        break
    assert report.errors == 0
    assert kills >= 5
    receipt = town.run(town.accounts.receipt(deletion.receipt_id))
    assert receipt.removed == expected
    assert mentions(town, BEN_DID) == []
    assert town.counts(place) == (1, 1)


def test_two_purges_at_the_same_time_leave_one_receipt(town: Town) -> None:
    furnish(town)
    town.run(town.accounts.delete(BEN))
    town.pass_time(days=31)
    beside = AccountPurge(Database(town.engine, town.blocking.scope), now=town.now)
    others = []
    # The other run does everything before the first transaction of this one.
    town.watched.slip_in(TransactWriteItems, lambda: others.append(beside.run_once()))
    report = town.purge()
    (other,) = others
    assert (report.accounts, report.errors) == (0, 0)
    assert (other.accounts, other.errors) == (1, 0)
    assert len(town.items("RECEIPT")) == 1
    assert mentions(town, BEN_DID) == []
    assert town.purge().accounts == 0


def test_s2_22_a_recovery_at_the_moment_of_the_purge_is_refused(town: Town) -> None:
    town.run(town.accounts.delete(BEN))
    town.pass_time(days=29)
    stored = town.run(town.accounts.pending(BEN_DID))
    assert stored is not None
    town.blocking.put(stored.model_copy(update={"started_at": town.now()}))
    with pytest.raises(NotRecoverable):
        town.run(town.accounts.recover(BEN_DID))
    with pytest.raises(NotRecoverable):
        town.run(town.accounts.recover(ANN.require_user()))


def test_an_export_has_everything_of_the_user_and_nothing_of_others(town: Town) -> None:
    furnish(town)
    town.site(ANN, subdomain="ann")
    exported: dict[str, Any] = town.run(town.accounts.export(BEN))
    assert json.loads(json.dumps(exported)) == exported
    assert exported["profile"]["did"] == BEN_DID
    assert [each["site"]["subdomain"] for each in exported["sites"]] == ["ben"]
    assert len(exported["sites"][0]["posts"]) == 3
    assert {each["status"] for each in exported["memberships"]} == {"active", "pending", "left"}
    assert len(exported["membership_history"]) == 4
    assert len(exported["records"]) == 1
    assert "digest" not in json.dumps(exported["sessions"])
    assert "ann.bsky.social" not in json.dumps(exported)


def test_an_export_for_at_protocol_has_addresses_and_content_ids(town: Town) -> None:
    furnish(town)
    exported = town.run(town.accounts.export_atproto(BEN))
    records = exported["records"]
    assert [each["value"]["$type"] for each in records] == [
        "city.nbhd.profile",
        "city.nbhd.post",
        "city.nbhd.post",
        "city.nbhd.post",
        "city.nbhd.note",
    ]
    for each in records[:4]:
        assert each["uri"].startswith(f"at://{BEN_DID}/")
        assert each["cid"] == content_id(each["value"])


def test_visitors_have_no_account(town: Town) -> None:
    attempts: list[Work] = [
        lambda: town.accounts.delete(VISITOR),
        lambda: town.accounts.export(VISITOR),
        lambda: town.accounts.export_atproto(VISITOR),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            town.run(attempt())


def test_s2_22_the_queue_of_accounts_to_purge_is_one_query_of_each_shard(town: Town) -> None:
    town.run(town.accounts.delete(ANN))
    town.pass_time(days=31)
    town.journal.clear()
    with town.blocking.consumed() as used:
        due = list(town.blocking.all(AccountDeletion.due(town.now())))
    assert [each.did for each in due] == [ANN.did]
    assert town.sent() == ["Query"] * SHARDS
    assert used.rcu <= 0.5 * SHARDS
