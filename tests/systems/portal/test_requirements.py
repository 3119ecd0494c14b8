"""Every requirement and trap of the portal has a test with its number, and the page lists it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from solotable._entities.lint import lint
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.entities.notifications import Notification
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.tables import TABLES
from tests.systems.requirements import check_requirements

NUMBERS = [f"s3_{n}" for n in range(1, 26)] + [f"c3_{n}" for n in range(1, 13)]


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-portal.md", NUMBERS)


def test_the_linter_finds_only_what_user_ids_rule_out() -> None:
    tables = [entity.plan().table for entity in (Content, Notification, Subscription, ActivityEvent)]
    assert tables == list(TABLES)
    found = {(each.code, each.entity) for table in TABLES for each in lint(table) if each.severity != "note"}
    # User ids have no `#`, so the partitions `unread#...`, `downloads#...` and `announcement#queue` are
    # apart from those of users. The queue has few items, and a worker empties it.
    assert {each for each in found if each[1] in {"Content", "ActivityEvent"}} == set()
    assert ("ST201", "Announcement") in found
    assert {code for code, _ in found} <= {"ST101", "ST102", "ST201"}
    for bad in ("unread#ann", "announcement#queue", "downloads#c1", "a:b", ""):
        with pytest.raises(ValidationError):
            Content(title="t", owner_user_id=bad)
