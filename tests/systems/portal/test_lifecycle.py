"""The status of content: legal changes, roles, concurrent changes, and the expiry job."""

from __future__ import annotations

from datetime import timedelta

import pytest

from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import Announcement, AnnouncementReference, FileRemoval
from solotable.systems.portal.entities.values import STATUSES, Status
from solotable.systems.portal.errors import Forbidden, IllegalTransition
from solotable.systems.portal.roles import ROLES, Caller
from solotable.systems.portal.services.drafts import ContentPatch
from solotable.systems.portal.services.expiry import ExpiryReport
from solotable.systems.portal.services.lifecycle import TRANSITIONS, Change, plan_change
from solotable.systems.portal.tables import content_registry

from .studio import ADA, ANN, EVA, VIC, Studio

LEGAL: dict[tuple[Status, Change], Status] = {
    ("Draft", "approve"): "Approved",
    ("Draft", "expire"): "Expired",
    ("Approved", "deprecate"): "Deprecated",
    ("Approved", "expire"): "Expired",
    ("Deprecated", "approve"): "Approved",
    ("Deprecated", "expire"): "Expired",
    ("Expired", "reopen"): "Draft",
}


def in_status(portal: Studio, status: Status) -> Content:
    """Create content and bring it to a status."""
    made = portal.draft()
    ways: dict[Status, tuple[Change, ...]] = {
        "Draft": (),
        "Approved": ("approve",),
        "Deprecated": ("approve", "deprecate"),
        "Expired": ("expire",),
    }
    for change in ways[status]:
        made = portal.run(getattr(portal.lifecycle, change)(EVA, made.content_id))
    return made


def waiting(portal: Studio) -> list[AnnouncementReference]:
    return list(portal.blocking.all(Announcement.waiting()))


def test_c3_12_exactly_the_legal_changes_of_the_status_are_made(portal: Studio) -> None:
    for status in STATUSES:
        for change in TRANSITIONS:
            made = in_status(portal, status)
            assert made.status == status
            act = getattr(portal.lifecycle, change)(ADA, made.content_id)
            if (status, change) in LEGAL:
                assert portal.run(act).status == LEGAL[status, change]
            else:
                with pytest.raises(IllegalTransition, match=f"Cannot {change} content that is {status}"):
                    portal.run(act)


def test_a_change_of_the_status_needs_its_role(portal: Studio) -> None:
    for change, transition in TRANSITIONS.items():
        for role in ROLES:
            made = in_status(portal, min(transition.sources))
            caller = Caller(user_id="someone", role=role)
            act = getattr(portal.lifecycle, change)(caller, made.content_id)
            if ROLES.index(role) >= ROLES.index(transition.role):
                assert portal.run(act).status_changed_by == "someone"
            else:
                with pytest.raises(Forbidden):
                    portal.run(act)


def test_approving_twice_notifies_once(portal: Studio) -> None:
    made = portal.approved()
    with pytest.raises(IllegalTransition):
        portal.run(portal.lifecycle.approve(EVA, made.content_id))
    assert len(waiting(portal)) == 1


def test_two_approvals_at_the_same_time_make_one_change(portal: Studio) -> None:
    made = portal.draft()

    def approve_beside() -> None:
        planned = plan_change(made, "approve", portal.now(), by="ada")
        with portal.blocking.transaction() as tx:
            planned.write(tx)

    portal.watched.slip_in(TransactWriteItems, approve_beside)
    with pytest.raises(VersionConflict):
        portal.run(portal.lifecycle.approve(EVA, made.content_id))
    (announcement,) = waiting(portal)
    assert announcement.kind == "approved"


def test_c3_12_an_approval_needs_an_expiry_date_that_has_not_passed(portal: Studio) -> None:
    made = portal.draft(expiry_date=portal.now() - timedelta(days=1))
    with pytest.raises(InvalidInput, match="expiry_date: has passed"):
        portal.run(portal.lifecycle.approve(EVA, made.content_id))
    patch = ContentPatch(expiry_date=portal.now() + timedelta(days=1))
    portal.run(portal.contents.update(ANN, made.content_id, patch))
    assert portal.run(portal.lifecycle.approve(EVA, made.content_id)).status == "Approved"


def test_c3_12_reopened_content_does_not_expire_again_at_once(portal: Studio) -> None:
    made = portal.approved(expiry_date=portal.now() + timedelta(days=1))
    portal.pass_time(days=2)
    assert portal.expire_due().expired == 1
    reopened = portal.run(portal.lifecycle.reopen(ADA, made.content_id))
    assert (reopened.status, reopened.expiry_date) == ("Draft", None)
    assert portal.expire_due() == ExpiryReport()


def test_c3_11_a_soft_expiry_hides_content_and_keeps_it(portal: Studio) -> None:
    made = portal.approved(expiry_policy="soft_expire")
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    assert list(portal.run(portal.contents.list(VIC))) == []
    with pytest.raises(NotFound):
        portal.run(portal.contents.get(VIC, made.content_id))
    assert portal.run(portal.contents.get(ADA, made.content_id)).status == "Expired"
    assert [each.kind for each in waiting(portal)] == ["approved", "expired"]
    assert list(portal.blocking.all(FileRemoval.waiting())) == []


def test_c3_9_the_expiry_job_reads_only_what_is_due(portal: Studio) -> None:
    now = portal.now() + timedelta(days=4)
    due = [
        portal.approved(expiry_date=now),
        portal.approved(expiry_date=now - timedelta(days=3)),
        portal.draft(expiry_date=now - timedelta(seconds=1)),
    ]
    portal.announce()
    portal.pass_time(days=4)
    portal.draft(expiry_date=now + timedelta(seconds=1))
    portal.draft()
    portal.sent()
    assert portal.expire_due() == ExpiryReport(scanned=3, expired=3)
    assert portal.sent().count("Query") == 4
    for each in due:
        assert portal.run(portal.contents.get(ADA, each.content_id)).status == "Expired"
    assert [each.kind for each in waiting(portal)] == ["expired", "expired"]
    # A second run finds nothing, and notifies no user again.
    assert portal.expire_due() == ExpiryReport()
    assert len(waiting(portal)) == 2


def test_the_expiry_job_repeats_a_change_that_an_edit_overtook(portal: Studio) -> None:
    made = portal.draft(expiry_date=portal.now())
    beside = portal.blocking

    def edit() -> None:
        found = beside.require(Content, content_id=made.content_id)
        beside.put(found.model_copy(update={"title": "Edited"}))

    portal.watched.slip_in(TransactWriteItems, edit)
    assert portal.expire_due() == ExpiryReport(scanned=1, expired=1)
    found = portal.run(portal.contents.get(ADA, made.content_id))
    assert (found.title, found.status) == ("Edited", "Expired")


def test_items_of_another_program_stop_no_other_expiry(portal: Studio) -> None:
    damaged, made = [portal.draft(expiry_date=portal.now()) for _ in range(2)]
    name = portal.prefix + content_registry.name
    (item,) = [
        each for each in portal.raw(content_registry) if each["content_id"] == {"S": damaged.content_id}
    ]
    portal.engine.handle(PutItem(table=name, item={**item, "title": {"S": "x" * 300}}))
    foreign = {name: value for name, value in item.items() if name != "_type"}
    portal.engine.handle(PutItem(table=name, item={**foreign, "content_id": {"S": "foreign"}}))
    assert portal.expire_due() == ExpiryReport(scanned=2, expired=1, errors=1)
    assert portal.run(portal.contents.get(ADA, made.content_id)).status == "Expired"


def test_the_expiry_job_skips_content_whose_date_an_edit_moved(portal: Studio) -> None:
    made = portal.draft(expiry_date=portal.now())
    beside = portal.blocking

    def postpone() -> None:
        found = beside.require(Content, content_id=made.content_id)
        beside.put(found.model_copy(update={"expiry_date": portal.now() + timedelta(days=1)}))

    portal.watched.slip_in(TransactWriteItems, postpone)
    assert portal.expire_due() == ExpiryReport(scanned=1, skipped=1)
    assert portal.run(portal.contents.get(ANN, made.content_id)).status == "Draft"


def test_an_edit_that_an_expiry_overtook_is_rejected(portal: Studio) -> None:
    made = portal.draft(expiry_date=portal.now())
    read = portal.run(portal.contents.get(ANN, made.content_id))
    portal.expire_due()
    with pytest.raises(IllegalTransition):
        portal.run(portal.contents.update(ANN, read.content_id, ContentPatch(title="x"), revision=1))
