"""Memberships: joins, leaves, roles, counts, privacy and history."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._protocol.requests import TransactWriteItems
from solotable.errors import NotFound
from solotable.systems.community.entities.neighbourhoods import Membership, MembershipEvent
from solotable.systems.community.errors import (
    AlreadyMember,
    Forbidden,
    InvitationOver,
    LastAdmin,
    NotMember,
)
from solotable.systems.community.roles import VISITOR
from solotable.systems.community.services.memberships import Memberships

from .town import ANN, BEN, EVA, OPERATOR, VIC, Town, Work


def test_s2_5_a_membership_has_its_keys_and_attributes(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    (item,) = (each for each in town.items("MEMBER") if each["user_did"] == {"S": BEN.did})
    assert item["PK"] == {"S": f"NBHD#{place.id}"}
    assert item["SK"] == {"S": f"MEMBER#{BEN.did}"}
    assert (item["role"], item["status"]) == ({"S": "member"}, {"S": "active"})
    assert item["joined_at"]["S"].endswith("Z")


def test_s2_10_the_neighbourhoods_of_a_user_are_one_query_of_gsi3(town: Town) -> None:
    places = []
    for number in range(3):
        town.pass_time(minutes=1)
        places.append(town.found(ANN, name=f"Place {number}"))
        town.pass_time(minutes=1)
        town.join(BEN, places[-1])
    town.journal.clear()
    page, used = town.measured(town.memberships.of_user(BEN, BEN.require_user(), limit=10))
    assert town.sent() == ["Query", "BatchGetItem"]
    assert [each.neighbourhood.id for each in page] == [place.id for place in reversed(places)]
    # One query of three small rows, and three neighbourhoods at half a unit each.
    assert used.rcu <= 0.5 + 3 * 0.5


def test_s2_14_members_are_one_query_and_one_member_is_one_get(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    town.journal.clear()
    page, used = town.measured(town.memberships.members(VISITOR, place.id))
    assert town.sent() == ["GetItem", "Query", "BatchGetItem"]
    assert [each.did for each in page] == [ANN.did, BEN.did]
    assert used.rcu <= 0.5 + 0.5 + 2 * 0.5
    town.journal.clear()
    assert town.blocking.get(Membership, neighbourhood_id=place.id, user_did=BEN.require_user()) is not None
    assert town.sent() == ["GetItem"]


def test_c2_1_a_prefix_of_the_sort_key_is_a_key_condition(town: Town) -> None:
    place = town.found()
    explained = str(town.blocking.explain(Membership.of_neighbourhood(place.id)))
    assert "begins_with" in explained or "BETWEEN" in explained
    assert [each.user_did for each in town.blocking.all(Membership.of_neighbourhood(place.id))] == [ANN.did]


def test_c2_6_joining_and_leaving_keep_the_count_exact(town: Town) -> None:
    place = town.found()
    assert town.counts(place) == (1, 1)
    town.join(BEN, place)
    assert town.counts(place) == (2, 1)
    with pytest.raises(AlreadyMember):
        town.join(BEN, place)
    assert town.counts(place) == (2, 1)
    town.run(town.memberships.leave(BEN, place.id))
    assert town.counts(place) == (1, 1)
    with pytest.raises(NotMember):
        town.run(town.memberships.leave(BEN, place.id))
    assert town.counts(place) == (1, 1)


def test_c2_5_a_membership_its_count_and_its_event_are_one_transaction(town: Town) -> None:
    place = town.found()
    town.journal.clear()
    _, used = town.measured(town.memberships.join(BEN, place.id))
    assert town.sent() == ["BatchGetItem", "TransactWriteItems"]
    # In a transaction every write costs double: the check of the user 2; the membership and its entry in
    # GSI3 4; the event and its entries in GSI3 and GSI5 6; the neighbourhood and its entries in GSI1 and
    # GSI2 6.
    assert used.wcu <= 18


def test_c2_13_a_membership_keeps_its_item_after_a_leave(town: Town) -> None:
    place = town.found()
    first = town.join(BEN, place)
    town.pass_time(days=1)
    left = town.run(town.memberships.leave(BEN, place.id))
    assert (left.status, left.joined_at) == ("left", first.joined_at)
    assert list(town.run(town.memberships.of_user(BEN, BEN.require_user()))) == []
    town.pass_time(days=1)
    again = town.join(BEN, place)
    assert again.status == "active"
    assert again.joined_at is not None
    assert first.joined_at is not None
    assert again.joined_at > first.joined_at
    assert len(town.items("MEMBER")) == 2


def test_s2_24_the_history_has_every_join_leave_and_role_change(town: Town) -> None:
    place = town.found()
    steps: list[Work] = [
        lambda: town.memberships.join(BEN, place.id),
        lambda: town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"),
        lambda: town.memberships.change_role(ANN, place.id, BEN.require_user(), "member"),
        lambda: town.memberships.leave(BEN, place.id),
        lambda: town.memberships.join(BEN, place.id),
        lambda: town.memberships.remove(ANN, place.id, BEN.require_user()),
    ]
    for step in steps:
        town.pass_time(minutes=1)
        town.run(step())
    events = list(town.run(town.memberships.history(ANN, place.id, limit=100)))
    assert [(each.kind, each.previous_role, each.role) for each in reversed(events)] == [
        ("joined", None, "creator"),
        ("joined", None, "member"),
        ("role_changed", "member", "admin"),
        ("role_changed", "admin", "member"),
        ("left", "member", "member"),
        ("joined", None, "member"),
        ("removed", "member", "member"),
    ]
    own = list(town.run(town.memberships.history_of_user(BEN, limit=100)))
    assert len(own) == 6
    assert own[0].actor_did == ANN.did
    town.pass_time(days=5000)
    assert len(town.run(town.memberships.history(ANN, place.id, limit=100))) == 7
    with pytest.raises(Forbidden):
        town.run(town.memberships.history(VIC, place.id))


def test_c2_7_events_are_neither_replaced_nor_changed_nor_deleted(town: Town) -> None:
    place = town.found()
    (event,) = town.run(town.memberships.history(ANN, place.id))
    changed = event.model_copy(update={"kind": "left"})
    key: dict[str, Any] = {"neighbourhood_id": place.id, "at": event.at, "event_id": event.event_id}
    with pytest.raises(Forbidden):
        town.blocking.put(changed)
    with pytest.raises(Forbidden):
        town.blocking.update(MembershipEvent, **key, set={"kind": "left"})
    with pytest.raises(Forbidden):
        town.blocking.update(MembershipEvent, **key, set={"user_did": "did:x:y"}, remove=["role"])
    with pytest.raises(Forbidden):
        town.blocking.delete(event)
    with pytest.raises(Forbidden), town.blocking.transaction() as tx:
        tx.delete(event)
    assert list(town.run(town.memberships.history(ANN, place.id))) == [event]


def test_c2_13_the_creator_and_the_last_admin_cannot_leave_or_be_demoted(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"))
    attempts: list[Work] = [
        lambda: town.memberships.leave(ANN, place.id),
        lambda: town.memberships.change_role(BEN, place.id, ANN.require_user(), "member"),
        lambda: town.memberships.change_role(ANN, place.id, ANN.require_user(), "admin"),
        lambda: town.memberships.remove(BEN, place.id, ANN.require_user()),
    ]
    for attempt in attempts:
        with pytest.raises(LastAdmin):
            town.run(attempt())
    assert town.counts(place) == (2, 2)
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "creator"))
    assert town.stored(place).creator_did == BEN.did
    town.run(town.memberships.leave(ANN, place.id))
    assert town.counts(place) == (1, 1)
    with pytest.raises(LastAdmin):
        town.run(town.memberships.leave(BEN, place.id))


def test_c2_13_of_two_admins_who_leave_at_the_same_time_one_stays(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"))
    # Adopted data may have admins and no creator.
    stored = town.blocking.require(Membership, neighbourhood_id=place.id, user_did=ANN.require_user())
    town.blocking.put(stored.model_copy(update={"role": "admin"}))
    town.watched.slip_in(
        TransactWriteItems,
        lambda: town.run_beside(lambda db: Memberships(db, now=town.now).leave(BEN, place.id)),
    )
    with pytest.raises(LastAdmin):
        town.run(town.memberships.leave(ANN, place.id))
    assert town.counts(place) == (1, 1)


def test_roles_decide_who_changes_whom(town: Town) -> None:
    place = town.found()
    for caller in (BEN, EVA, VIC):
        town.join(caller, place)
    for admin in (BEN, EVA):
        town.run(town.memberships.change_role(ANN, place.id, admin.did or "", "admin"))
    with pytest.raises(Forbidden):
        town.run(town.memberships.change_role(VIC, place.id, EVA.require_user(), "member"))
    with pytest.raises(Forbidden):
        town.run(town.memberships.remove(BEN, place.id, EVA.require_user()))
    with pytest.raises(Forbidden):
        town.run(town.memberships.change_role(BEN, place.id, EVA.require_user(), "creator"))
    town.run(town.memberships.change_role(BEN, place.id, BEN.require_user(), "member"))
    town.run(town.memberships.remove(EVA, place.id, VIC.require_user()))
    with pytest.raises(NotMember):
        town.run(town.memberships.change_role(ANN, place.id, VIC.require_user(), "admin"))
    assert town.counts(place) == (3, 2)


def test_a_private_neighbourhood_needs_an_approval_or_an_invitation(town: Town) -> None:
    place = town.found(privacy="private")
    assert town.join(BEN, place).status == "pending"
    with pytest.raises(AlreadyMember):
        town.join(BEN, place)
    assert town.counts(place) == (1, 1)
    waiting = town.run(town.memberships.members(ANN, place.id, status="pending"))
    assert [each.did for each in waiting] == [BEN.did]
    assert town.run(town.memberships.approve(ANN, place.id, BEN.require_user())).status == "active"
    with pytest.raises(AlreadyMember):
        town.run(town.memberships.approve(ANN, place.id, BEN.require_user()))
    with pytest.raises(Forbidden):
        town.run(town.memberships.invite(BEN, place.id, EVA.require_user()))
    assert town.run(town.memberships.invite(ANN, place.id, EVA.require_user())).status == "invited"
    assert town.counts(place) == (2, 1)
    assert town.join(EVA, place).status == "active"
    assert town.join(VIC, place).status == "pending"
    assert town.run(town.memberships.reject(ANN, place.id, VIC.require_user())).status == "left"
    with pytest.raises(NotMember):
        town.run(town.memberships.approve(ANN, place.id, VIC.require_user()))
    assert town.counts(place) == (3, 1)


def test_a_private_neighbourhood_hides_its_members_in_every_list(town: Town) -> None:
    place = town.found(privacy="private")
    town.run(town.memberships.invite(ANN, place.id, BEN.require_user()))
    town.join(BEN, place)
    for caller in (VISITOR, VIC):
        with pytest.raises(Forbidden):
            town.run(town.memberships.members(caller, place.id))
        with pytest.raises(Forbidden):
            town.run(town.memberships.member(caller, place.id, BEN.require_user()))
        assert list(town.run(town.memberships.of_user(caller, BEN.require_user()))) == []
        assert list(town.run(town.memberships.of_handle(caller, "ben.bsky.social"))) == []
    for caller in (ANN, BEN, OPERATOR):
        (seen,) = town.run(town.memberships.of_user(caller, BEN.require_user()))
        assert seen.neighbourhood.member_count == 2
    town.run(town.memberships.leave(BEN, place.id))
    with pytest.raises(Forbidden):
        town.run(town.memberships.members(BEN, place.id))


def test_requests_of_a_user_are_hidden_from_others_and_show_no_count(town: Town) -> None:
    place = town.found(privacy="private")
    town.join(BEN, place)
    (asked,) = town.run(town.memberships.of_user(BEN, BEN.require_user(), status="pending"))
    assert (asked.neighbourhood.name, asked.neighbourhood.member_count) == ("Downtown Collective", None)
    with pytest.raises(Forbidden):
        town.run(town.memberships.of_user(VIC, BEN.require_user(), status="pending"))


def test_a_code_makes_one_user_a_member_once(town: Town) -> None:
    place = town.found(privacy="private")
    ticket = town.run(town.invitations.create(ANN, place.id))
    assert ticket.code not in str(town.raw())
    assert town.run(town.invitations.accept(BEN, place.id, ticket.code)).status == "active"
    with pytest.raises(InvitationOver):
        town.run(town.invitations.accept(EVA, place.id, ticket.code))
    assert town.counts(place) == (2, 1)
    late = town.run(town.invitations.create(ANN, place.id))
    town.pass_time(days=14)
    with pytest.raises(InvitationOver):
        town.run(town.invitations.accept(EVA, place.id, late.code))
    revoked = town.run(town.invitations.create(ANN, place.id))
    (listed,) = town.run(town.invitations.list(ANN, place.id))
    town.run(town.invitations.revoke(ANN, place.id, listed.digest))
    with pytest.raises(InvitationOver):
        town.run(town.invitations.accept(EVA, place.id, revoked.code))
    with pytest.raises(Forbidden):
        town.run(town.invitations.create(BEN, place.id))


def test_a_neighbourhood_that_does_not_exist_has_no_members(town: Town) -> None:
    attempts: list[Work] = [
        lambda: town.memberships.join(BEN, "none"),
        lambda: town.memberships.leave(BEN, "none"),
        lambda: town.memberships.members(BEN, "none"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            town.run(attempt())
    place = town.found()
    town.join(BEN, place)
    town.run(town.neighbourhoods.delete(ANN, place.id))
    with pytest.raises(NotFound):
        town.join(EVA, place)
    with pytest.raises(NotFound):
        town.run(town.memberships.leave(BEN, place.id))
    assert list(town.run(town.memberships.of_user(BEN, BEN.require_user()))) == []


def test_c2_7_the_events_of_a_membership_are_in_order_when_the_clock_goes_back(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    town.pass_time(hours=-1)
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"))
    town.pass_time(hours=-1)
    town.run(town.memberships.leave(BEN, place.id))
    events = town.run(town.memberships.history_of_user(BEN, limit=10))
    assert [each.kind for each in events] == ["left", "role_changed", "joined"]


def test_a_code_ends_when_its_maker_is_not_an_admin_any_more(town: Town) -> None:
    place = town.found(ANN, privacy="private")
    for caller in (BEN, EVA):
        town.run(town.memberships.invite(ANN, place.id, caller.require_user()))
        town.join(caller, place)
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"))
    code = town.run(town.invitations.create(BEN, place.id)).code
    for_admin = town.run(town.invitations.create(ANN, place.id, role="admin")).code
    town.run(town.memberships.remove(ANN, place.id, BEN.require_user()))
    with pytest.raises(InvitationOver):
        town.run(town.invitations.accept(BEN, place.id, code))
    # A creator who handed over cannot make admins, nor can the codes that they made.
    town.run(town.memberships.change_role(ANN, place.id, EVA.require_user(), "creator"))
    with pytest.raises(InvitationOver):
        town.run(town.invitations.accept(VIC, place.id, for_admin))
    assert town.counts(place) == (2, 2)


def test_s2_24_pages_of_the_history_and_of_invitations_are_one_query(town: Town) -> None:
    place = town.found(ANN)
    for _ in range(5):
        town.join(BEN, place)
        town.pass_time(seconds=1)
        town.run(town.memberships.leave(BEN, place.id))
        town.pass_time(seconds=1)
        town.run(town.invitations.create(ANN, place.id))
    town.journal.clear()
    # The membership of the admin is read consistently; a row is less than 500 bytes.
    page, used = town.measured(town.memberships.history(ANN, place.id))
    assert (len(page.items), town.sent()) == (11, ["GetItem", "Query"])
    assert used.rcu <= 1.0 + 1.0
    mine, used = town.measured(town.memberships.history_of_user(BEN))
    assert (len(mine.items), town.sent()) == (10, ["Query"])
    assert used.rcu <= 1.0
    codes, used = town.measured(town.invitations.list(ANN, place.id))
    assert (len(codes.items), town.sent()) == (5, ["GetItem", "Query"])
    assert used.rcu <= 1.0 + 0.5
