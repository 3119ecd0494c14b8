"""The audit trail: S0.10, S0.23-S0.26 and C0.12, C0.14."""

from __future__ import annotations

from datetime import timedelta

import pytest

from solotable._protocol.requests import TransactWriteItems
from solotable.errors import AlreadyExists, NotUnique
from solotable.jobs.deliver import deliver
from solotable.systems.cms import ContentPatch, ProductDraft, TenantDraft, audit_sink

from .site import Site


def patch(**changes: object) -> ContentPatch:
    return ContentPatch.model_validate(changes)


def test_s0_10_the_trail_of_a_tenant_is_one_query_newest_first(site: Site) -> None:
    site.deliver()
    site.clock.seconds += 1
    page = site.page("/a", title="One")
    site.clock.seconds += 1
    site.run(site.acme.contents.update(page.node_id, patch(title="Two")))
    site.clock.seconds += 1
    site.run(site.acme.products.create(ProductDraft(title="Lamp")))
    assert site.deliver() == 3
    site.sent()
    trail = site.run(site.acme.trail.list(limit=3))
    assert site.sent() == ["Query"]
    assert [(each.verb, each.target.title) for each in trail] == [
        ("created", "Lamp"),
        ("updated", "Two"),
        ("created", "One"),
    ]
    newest = site.keys("AUDIT#")[-1]
    assert newest == f"AUDIT#2035-01-01T00:00:03.000000Z#{trail.items[0].event_id}"
    rest = site.run(site.acme.trail.list(cursor=trail.cursor))
    assert {each.target.title for each in rest} == {"Home", "Contact", "Acme"}
    assert {each.target.title for each in site.run(site.zeta.trail.list())} == {"Home", "Contact", "Zeta"}


def test_s0_23_a_request_neither_waits_for_the_trail_nor_fails_on_it(site: Site) -> None:
    site.sent()
    page = site.page("/a")
    assert site.sent() == ["TransactWriteItems"]  # the event is an item among the others
    assert site.run(site.acme.trail.list()).items == []

    def broken(event: object) -> None:
        raise OSError("the bus is down")

    done = deliver(site.blocking, [broken], consumer="broken", attempts=1)
    assert done.dead == done.events > 0
    assert site.run(site.acme.contents.update(page.node_id, patch(title="Still works"))).version == 2
    site.deliver()
    assert site.run(site.acme.trail.list()).items[0].target.title is not None


def test_s0_24_a_record_names_its_actor_readably(site: Site) -> None:
    site.page("/a")
    site.deliver()
    for record in site.run(site.acme.trail.list()):
        assert record.actor is not None
        assert (record.actor.email, record.actor.name) == ("ann@example.org", "Ann")
    (newest,) = [each for each in site.run(site.acme.trail.list()) if each.target.title == "About"]
    assert newest.request_id == "r-1"


def test_s0_25_a_record_names_its_target_by_title(site: Site) -> None:
    page = site.page("/a", title="About us")
    site.run(site.acme.comments.post(page.node_id, author_name="Vi", body="Hi"))
    site.run(site.acme.leads.capture("vi@example.org"))
    site.run(site.acme.users("TENANT_ADMIN").create(email="bo@example.org"))
    site.deliver()
    titles = {each.target.entity: each.target.title for each in site.run(site.acme.trail.list())}
    assert titles == {
        "Content": titles["Content"],
        "Comment": "About us",
        "Lead": "v***@example.org",
        "User": "bo@example.org",
        "TenantConfig": "Acme",
    }
    assert None not in titles.values()


def test_s0_26_a_record_can_be_read_without_another_query(site: Site) -> None:
    site.clock.seconds += 1
    page = site.page("/a", title="One", blocks=[{"text": "needle"}])
    site.clock.seconds += 1
    site.run(site.acme.contents.update(page.node_id, patch(title="Two", slug="/b")))
    site.clock.seconds += 1
    site.run(site.acme.contents.delete(page.node_id))
    site.deliver()
    deleted, updated, created = site.run(site.acme.trail.list(limit=3))
    assert deleted.snapshot["title"] == "Two"
    assert deleted.verb == "deleted"
    assert updated.changes["title"] == {"before": "One", "after": "Two"}
    assert updated.changes["slug"] == {"before": "/a", "after": "/b"}
    assert (created.snapshot["slug"], created.target.key["node_id"]) == ("/a", page.node_id)
    assert "needle" not in repr((deleted, updated, created))


def test_c0_12_an_event_that_is_delivered_twice_is_stored_once(site: Site) -> None:
    site.page("/a")
    site.deliver()
    before = site.keys("AUDIT#")
    assert deliver(site.blocking, [audit_sink()], consumer="again").events > 0
    assert site.keys("AUDIT#") == before


def test_c0_12_the_event_is_in_the_transaction_and_a_failed_write_leaves_none(site: Site) -> None:
    site.page("/a")
    site.deliver()
    with pytest.raises(AlreadyExists):
        site.page("/a")
    with pytest.raises(NotUnique):
        site.run(site.tenants.create(TenantDraft(id="late", name="Late", domain="www.acme.example")))
    assert site.deliver() == 0
    site.journal.clear()
    site.page("/b")
    (request,) = site.journal.requests()
    assert isinstance(request, TransactWriteItems)
    assert sum("_outbox" in repr(action) for action in request.actions) == 1


def test_c0_14_the_trail_is_stored_for_400_days(site: Site) -> None:
    site.page("/a")
    site.deliver()
    (record, *_) = site.run(site.acme.trail.list())
    trail = [item for item in site.raw() if item["_type"]["S"] == "AuditEvent"]
    (stored,) = [item for item in trail if item["event_id"]["S"] == record.event_id]
    ends = record.at + timedelta(days=400)
    assert int(stored["expires_at"]["N"]) == int(ends.timestamp())
    site.clock.seconds += timedelta(days=400, seconds=1).total_seconds()
    assert site.run(site.acme.trail.list()).items == []
