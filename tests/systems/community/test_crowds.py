"""Crowds of real processes on one file: counts, unique names and the history stay exact, also after kills."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from solotable import connect
from solotable.systems.community.entities.neighbourhoods import Membership, MembershipEvent, Neighbourhood
from solotable.systems.community.entities.users import User
from solotable.systems.community.table import community
from tests.killing import Start

from .member import CREATOR, NAMES, PLACE, USERS

ACTIONS = 25


def test_c2_6_counts_and_names_are_exact_under_a_crowd_of_processes_and_a_kill(
    tmp_path: Path, start: Start
) -> None:
    url = f"sqlite:///{tmp_path / 'town.db'}?durability=relaxed"
    with connect(url, community) as db:
        for did in (CREATOR, *USERS):
            db.create(User(did=did, display_name=did[-5:]))
        place = db.create(
            Neighbourhood(neighbourhood_id=PLACE, name="Place", slug="place", creator_did=CREATOR)
        )
        assert place.created_at is not None
        db.create(
            Membership(
                neighbourhood_id=PLACE,
                user_did=CREATOR,
                role="creator",
                status="active",
                joined_at=place.created_at,
                changed_at=place.created_at,
            )
        )
        crowd = [
            start("-m", "tests.systems.community.member", url, str(number), str(ACTIONS))
            for number in range(4)
        ]
        # The last process dies in the middle of its work.
        crowd[-1].wait_for_lines(8)
        crowd[-1].kill()
        for each in crowd[:-1]:
            lines = each.end()
            assert lines[-1] == "end"
        outcomes = Counter(line for each in crowd for line in each.lines)
        assert outcomes["done"] > 10

        members = list(db.all(Membership.of_neighbourhood(PLACE).consistent()))
        stored = db.require(Neighbourhood, neighbourhood_id=PLACE, consistent=True)
        active = [each for each in members if each.is_active]
        assert stored.member_count == len(active)
        assert stored.admin_count == len([each for each in active if each.is_admin]) >= 1

        # The history says the same as the memberships.
        inside = {CREATOR}
        for event in db.all(MembershipEvent.key.query(neighbourhood_id=PLACE)):
            if event.kind == "joined":
                assert event.user_did not in inside
                inside.add(event.user_did)
            elif event.kind in ("left", "removed"):
                inside.remove(event.user_did)
        assert inside == {each.user_did for each in active}

        # C2.4: each contested name has one neighbourhood.
        names = [found.name for found in db.all(Neighbourhood.newest()) if found.neighbourhood_id != PLACE]
        assert sorted(names) == NAMES
