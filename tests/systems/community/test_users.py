"""Users: profiles, lists, handles, batches, and what is rejected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from solotable._protocol.requests import BatchGetItem, TransactWriteItems
from solotable.errors import NotFound, VersionConflict
from solotable.systems.community.entities.users import User
from solotable.systems.community.errors import Forbidden, NameTaken
from solotable.systems.community.roles import VISITOR, Caller
from solotable.systems.community.services.drafts import ProfilePatch
from solotable.systems.community.services.users import OwnProfile, Users
from solotable.systems.errors import InvalidInput

from .town import ANN, BEN, OPERATOR, Town

BEN_DID = BEN.require_user()


def test_s2_3_a_user_has_the_key_and_the_attributes_of_the_design(town: Town) -> None:
    patch = ProfilePatch.model_validate(
        {"bio": "Organiser", "profile_images": {"avatar": {"url": "https://img.example/a.png"}}}
    )
    town.run(town.users.update(BEN, patch))
    (item,) = (each for each in town.items("USER") if each["did"] == {"S": BEN_DID})
    assert (item["PK"], item["SK"]) == ({"S": f"USER#{BEN_DID}"}, {"S": "PROFILE"})
    names = {"did", "bluesky_handle", "bluesky_did", "display_name", "avatar_url", "bio"}
    assert names | {"created_at", "updated_at"} <= item.keys()


def test_s2_12_a_profile_is_one_get(town: Town) -> None:
    _, used = town.measured(town.users.get(ANN, BEN_DID))
    assert town.sent() == ["GetItem"]
    assert used.rcu == 0.5


def test_s2_13_users_are_listed_newest_first_in_pages(town: Town) -> None:
    for number in range(5):
        town.pass_time(minutes=1)
        town.sign_up(Caller(did=f"did:plc:user{number}"))
    town.journal.clear()
    page, used = town.measured(town.users.list(OPERATOR, limit=3))
    assert [each.did for each in page] == [f"did:plc:user{number}" for number in (4, 3, 2)]
    # Four shards, at half a unit each; the page reads about 1.5 times as many rows as it has.
    assert town.sent() == ["Query"] * 4
    assert used.rcu <= 4 * 0.5
    rest = town.run(town.users.list(OPERATOR, limit=10, cursor=page.cursor))
    assert len(rest) == 6
    with pytest.raises(Forbidden):
        town.run(town.users.list(ANN))


def test_s2_8_users_of_january_are_a_range(town: Town) -> None:
    days = {"dec": (2029, 12, 31, 23, 59), "first": (2030, 1, 1, 0, 0), "last": (2030, 1, 31, 23, 59)}
    for name, day in {**days, "feb": (2030, 2, 1, 0, 0)}.items():
        town.clock.seconds = datetime(*day, tzinfo=UTC).timestamp()
        town.sign_up(Caller(did=f"did:plc:{name}"))
    january = (datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 1, 31, 23, 59, 59, 999999, tzinfo=UTC))
    found = town.run(town.users.list(OPERATOR, created=january))
    assert [each.did for each in found] == ["did:plc:last", "did:plc:first"]


def test_c2_2_every_user_is_in_the_list_and_no_partition_is_hot(town: Town) -> None:
    for number in range(40):
        town.sign_up(Caller(did=f"did:plc:user{number}"))
    partitions = {item["GSI1PK"]["S"] for item in town.items("USER")}
    assert partitions == {"USER#00", "USER#01", "USER#02", "USER#03"}
    assert len(town.run(town.users.list(OPERATOR, limit=100))) == 44


def test_c2_10_a_handle_finds_its_user_in_every_spelling(town: Town) -> None:
    for spelling in ("ben.bsky.social", "@Ben.bsky.social", "ben@bsky.social", " BEN.BSKY.SOCIAL "):
        assert town.run(town.users.by_handle(VISITOR, spelling)).did == BEN_DID
    town.journal.clear()
    town.run(town.users.by_handle(VISITOR, "ben.bsky.social"))
    assert town.sent() == ["Query"]
    with pytest.raises(NotFound):
        town.run(town.users.by_handle(VISITOR, "none.bsky.social"))


def test_c2_10_a_did_and_a_bluesky_did_may_differ_and_belong_to_one_user(town: Town) -> None:
    town.run(town.users.sign_in("did:web:carl.example", bluesky_did="did:plc:xyz789"))
    found = town.blocking.first(User.with_bluesky_did("did:plc:xyz789"))
    assert found is not None
    assert found.did == "did:web:carl.example"
    with pytest.raises(NameTaken):
        town.run(town.users.sign_in("did:plc:thief", bluesky_did="did:plc:xyz789"))


def test_c2_4_a_handle_belongs_to_the_user_who_proved_it_last(town: Town) -> None:
    eve = town.run(town.users.sign_in("did:plc:eve", handle="Ben.Bsky.Social"))
    assert eve.bluesky_handle == "ben.bsky.social"
    assert town.blocking.require(User, did=BEN_DID).bluesky_handle is None
    assert town.run(town.users.by_handle(VISITOR, "ben.bsky.social")).did == "did:plc:eve"
    again = town.run(town.users.sign_in(BEN_DID, handle="benjamin.example"))
    assert again.bluesky_handle == "benjamin.example"
    ann = town.run(town.users.sign_in(ANN.require_user(), handle="ben@bsky.social"))
    assert ann.bluesky_handle == "ben.bsky.social"
    handles = [item["bluesky_handle"]["S"] for item in town.items("USER") if "bluesky_handle" in item]
    assert len(set(handles)) == len(handles)


def test_c2_4_the_handle_of_a_deleted_account_stays_taken_and_stops_no_login(town: Town) -> None:
    town.run(town.accounts.delete(BEN))
    eve = town.run(town.users.sign_in("did:plc:eve", handle="ben.bsky.social"))
    assert eve.bluesky_handle is None
    assert town.run(town.accounts.recover(BEN_DID)).bluesky_handle == "ben.bsky.social"


def test_two_first_logins_at_the_same_time_create_one_user(town: Town) -> None:
    town.watched.slip_in(
        TransactWriteItems,
        lambda: town.run_beside(
            lambda db: Users(db, now=town.now).sign_in("did:plc:new", handle="new.bsky.social")
        ),
    )
    made = town.run(town.users.sign_in("did:plc:new", handle="new.bsky.social"))
    assert made.version == 1


def test_c2_12_a_batch_reads_100_profiles_and_repeats_unprocessed_keys(town: Town) -> None:
    dids = [f"did:plc:user{number:03d}" for number in range(100)]
    for did in dids:
        town.blocking.create(User(did=did, display_name=did[-3:]))
    town.journal.clear()
    found, used = town.measured(town.users.batch(ANN, [*reversed(dids), dids[0]]))
    assert [each.did for each in found] == list(reversed(dids))
    assert town.sent() == ["BatchGetItem"]
    assert used.rcu == 50
    assert len(town.run(town.users.batch(ANN, ["did:plc:none", *dids[:3]]))) == 3
    with pytest.raises(InvalidInput, match="101"):
        town.run(town.users.batch(ANN, [*dids, "did:plc:more"]))
    # A reply that leaves keys unprocessed, as DynamoDB gives it over 16 MB.
    real = town.watched.handle

    def leave_some(request: Any, /) -> Any:
        if isinstance(request, BatchGetItem) and len(request.tables[0].keys) > 40:
            (part,) = request.tables
            left = type(part)(**{**_fields(part), "keys": part.keys[40:]})
            some = type(part)(**{**_fields(part), "keys": part.keys[:40]})
            reply = real(type(request)(**{**_fields(request), "tables": (some,)}))
            reply.unprocessed[part.table] = {"Keys": list(left.keys)}
            return reply
        return real(request)

    town.watched.handle = leave_some  # type: ignore[method-assign]
    assert [each.did for each in town.run(town.users.batch(ANN, dids))] == dids


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_an_e_mail_address_is_for_its_user_operators_and_admins_only(town: Town) -> None:
    own = town.run(town.users.update(BEN, ProfilePatch(email=" Ben@Example.ORG ")))
    assert own.email == "ben@example.org"
    place = town.found(ANN)
    town.join(BEN, place)
    for caller in (VISITOR, ANN):
        assert "example.org" not in town.run(town.users.get(caller, BEN_DID)).model_dump_json()
        assert not isinstance(town.run(town.users.batch(caller, [BEN_DID]))[0], OwnProfile)
    assert "ben@example.org" in town.run(town.users.get(OPERATOR, BEN_DID)).model_dump_json()
    for caller, is_seen in ((ANN, True), (BEN, False), (VISITOR, False), (OPERATOR, True)):
        members = town.run(town.memberships.members(caller, place.id))
        shown = "".join(each.model_dump_json() for each in members)
        assert ("ben@example.org" in shown) is is_seen


def test_a_changed_address_is_not_verified(town: Town) -> None:
    town.run(town.users.update(BEN, ProfilePatch(email="ben@example.org")))
    assert town.run(town.users.verify_email(BEN_DID, "ben@example.org")).email_verified
    town.run(town.users.update(BEN, ProfilePatch(bio="x")))
    assert town.blocking.require(User, did=BEN_DID).email_verified
    town.run(town.users.update(BEN, ProfilePatch(email="new@example.org")))
    assert not town.blocking.require(User, did=BEN_DID).email_verified
    with pytest.raises(InvalidInput):
        town.run(town.users.verify_email(BEN_DID, "ben@example.org"))


@pytest.mark.parametrize(
    "fields",
    [
        {"bio": "x" * 501},
        {"location": "x" * 101},
        {"display_name": ""},
        {"website": "javascript:alert(1)"},
        {"website": "java\nscript:alert(1)"},
        {"website": "data:text/html,x"},
        {"website": "//example.org"},
        {"website": "https://user:secret@example.org"},
        {"website": "https://"},
        {"profile_images": {"avatar": {"url": "JavaScript:alert(1)"}}},
        {"profile_images": {"avatar": {"url": 'https://a.example/"onerror=x'}}},
        {"did": "did:plc:other"},
        # A handle is proven by a login.
        {"bluesky_handle": "ben.bsky.social"},
        {"version": 3},
    ],
)
def test_a_profile_that_breaks_a_limit_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProfilePatch.model_validate(fields)


def test_a_profile_at_the_limits_is_stored(town: Town) -> None:
    patch = ProfilePatch(bio="ö" * 500, location="東" * 100, website="https://example.org/a?b=c#d")
    town.run(town.users.update(BEN, patch))
    stored = town.run(town.users.get(BEN, BEN_DID))
    assert (len(stored.bio), len(stored.location)) == (500, 100)


def test_an_update_of_an_older_version_is_rejected(town: Town) -> None:
    town.run(town.users.update(BEN, ProfilePatch(bio="a"), version=1))
    with pytest.raises(VersionConflict):
        town.run(town.users.update(BEN, ProfilePatch(bio="b"), version=1))


@pytest.mark.parametrize(
    "did", ["", "alice", "did:", "did:plc:", "did:PLC:abc", "did:plc:a b", "did:x:" + "y" * 300]
)
def test_a_malformed_did_is_rejected(town: Town, did: str) -> None:
    with pytest.raises(InvalidInput):
        town.run(town.users.sign_in(did))


def test_c2_10_a_handle_and_a_linked_account_are_one_query_of_half_a_unit(town: Town) -> None:
    town.journal.clear()
    found, used = town.measured(town.users.by_handle(BEN, "ann.bsky.social"))
    assert (found.did, town.sent(), used.rcu) == (ANN.did, ["Query"], 0.5)
    with town.blocking.consumed() as used:
        linked = town.blocking.first(User.with_bluesky_did(ANN.require_user()))
    assert (linked is not None, town.sent(), used.rcu) == (True, ["Query", "BatchGetItem"], 1.0)
