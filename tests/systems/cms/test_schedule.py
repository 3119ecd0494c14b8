"""Scheduled pages: public from their time on, published once by any number of workers, at any clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from solotable.systems.cms import (
    Comments,
    Content,
    ContentDraft,
    ContentPatch,
    PathRedirect,
    Routes,
    Schedule,
    Versions,
    publish_due,
)
from solotable.systems.cms.routes.site.sitemaps import Sitemaps

from .site import Site

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class HandClock:
    """A clock that tests set."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


def schedule(site: Site, slug: str, at: datetime = NOON) -> Content:
    draft = ContentDraft(title=slug, slug=slug, status="scheduled", publish_at=at)
    return site.run(site.acme.contents.create(draft))


def test_s0_5_a_scheduled_page_is_public_from_its_time_on(site: Site) -> None:
    page = schedule(site, "/party")
    clock = HandClock(NOON - timedelta(milliseconds=1))
    routes = Routes(site.acme.store, now=clock)
    assert site.run(routes.resolve("/party")) is None
    assert site.run(routes.resolve("/party", preview=True)) == page
    clock.at = NOON
    assert site.run(routes.resolve("/party")) == page
    # A clock that goes back hides the page again, as long as no job has published it.
    clock.at -= timedelta(hours=1)
    assert site.run(routes.resolve("/party")) is None


def test_s0_20_the_redirect_of_a_scheduled_page_waits_with_it(site: Site) -> None:
    page = schedule(site, "/early")
    site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/late")))
    clock = HandClock(NOON - timedelta(seconds=1))
    routes = Routes(site.acme.store, now=clock)
    assert site.run(routes.resolve("/early")) is None
    clock.at = NOON
    assert site.run(routes.resolve("/early")) == PathRedirect(path="/early", to="/late")


def test_s0_14_two_workers_publish_a_page_once(site: Site) -> None:
    pages = [schedule(site, f"/due-{number}") for number in range(3)]
    schedule(site, "/later", NOON + timedelta(seconds=1))

    async def crowd() -> list[int]:
        return await asyncio.gather(*(publish_due(site.db, now=HandClock()) for _ in range(4)))

    assert sum(site.run(crowd())) == 3
    stored = [site.run(site.acme.contents.get(each.node_id)) for each in pages]
    assert [(each.status, each.version, each.publish_at) for each in stored] == [("published", 2, NOON)] * 3
    assert [each.slug for each in site.run(site.acme.contents.inbox("scheduled"))] == ["/later"]
    assert site.run(publish_due(site.db, now=HandClock())) == 0
    # A clock that goes back takes nothing away.
    early = Routes(site.acme.store, now=HandClock(NOON - timedelta(days=400)))
    assert site.run(early.resolve("/due-0")) == stored[0]


def test_c0_3_an_editor_who_moves_the_time_wins_against_a_worker(site: Site) -> None:
    page = schedule(site, "/moving")
    later = NOON + timedelta(days=1)

    async def race() -> int:
        worker = Schedule(site.acme.store, now=HandClock())
        due = await worker.due()
        assert [each.node_id for each in due] == [page.node_id]
        await site.acme.contents.update(page.node_id, ContentPatch(status="scheduled", publish_at=later))
        return await worker.publish(due)

    assert site.run(race()) == 0
    stored = site.run(site.acme.contents.get(page.node_id))
    assert (stored.status, stored.publish_at) == ("scheduled", later)


def test_s0_14_the_sitemap_has_a_page_whose_time_has_come(site: Site) -> None:
    schedule(site, "/party")
    clock = HandClock(NOON - timedelta(seconds=1))

    def text() -> str:
        return site.run(Sitemaps(now=clock).text(site.acme.store, None, base="")) or ""

    assert "/party" not in text()
    clock.at = NOON
    assert text().count("/party<") == 1
    site.run(publish_due(site.db, now=clock))
    assert text().count("/party<") == 1


def test_s0_7_a_page_takes_comments_from_its_time_on(site: Site) -> None:
    page = schedule(site, "/party")
    clock = HandClock(NOON - timedelta(seconds=1))
    comments = Comments(site.acme.store, now=clock)
    with pytest.raises(Exception, match="not published"):
        site.run(comments.post(page.node_id, author_name="Ben", body="Hi"))
    clock.at = NOON
    assert site.run(comments.post(page.node_id, author_name="Ben", body="Hi")).status == "pending"


def test_c0_6_a_restore_keeps_the_schedule(site: Site) -> None:
    page = site.run(site.acme.contents.create(ContentDraft(title="One", slug="/one")))
    site.run(
        site.acme.contents.update(
            page.node_id, ContentPatch(title="Two", status="scheduled", publish_at=NOON)
        )
    )
    restored = site.run(Versions(site.acme.store).restore(page.node_id, 1))
    assert (restored.title, restored.status, restored.publish_at) == ("One", "scheduled", NOON)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "scheduled"},
        {"publish_at": NOON},
        {"status": "published", "publish_at": NOON},
        {"status": "scheduled", "publish_at": NOON.replace(tzinfo=None)},
        {"status": "scheduled", "publish_at": None},
    ],
)
def test_a_status_and_a_time_go_together(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContentDraft.model_validate({"title": "x", **fields})
    with pytest.raises(ValidationError):
        ContentPatch.model_validate(fields)
