"""Lists of content: newest first, sealed cursors, full pages, and what a page costs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from solotable import Page
from solotable.errors import CursorRejected
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.errors import Forbidden
from solotable.systems.portal.services.drafts import ContentPatch
from solotable.systems.portal.services.pages import page_with_rows

from .studio import ADA, ANN, BEN, EVA, VIC, Studio


def followed(portal: Studio, read: Callable[[str | None], Coroutine[Any, Any, Page[Any]]]) -> list[Page[Any]]:
    """Follow the cursors of a list to its end."""
    pages = [portal.run(read(None))]
    while pages[-1].cursor is not None:
        pages.append(portal.run(read(pages[-1].cursor)))
    return pages


def make(portal: Studio, count: int, **fields: Any) -> list[Content]:
    """Create approved content, a minute apart, and return it newest first."""
    made = []
    for number in range(count):
        portal.pass_time(minutes=1)
        made.append(portal.approved(title=f"Title {number}", **fields))
    return made[::-1]


def test_s3_7_content_of_a_status_is_listed_newest_first(portal: Studio) -> None:
    made = make(portal, 3)
    portal.draft()
    portal.pass_time(minutes=1)
    portal.run(portal.contents.update(EVA, made[2].content_id, ContentPatch(title="Newest")))
    listed = [each.content_id for each in portal.run(portal.contents.list(VIC, status="Approved"))]
    assert listed == [made[2].content_id, made[0].content_id, made[1].content_id]


def test_s3_8_content_of_a_product_is_listed_newest_first(portal: Studio) -> None:
    made = make(portal, 3, product_suite="Compass", product_concept="Billing")
    make(portal, 1, product_suite="Compass", product_concept="Sales")
    listed = portal.run(portal.contents.list(VIC, product_suite="Compass", product_concept="Billing"))
    assert [each.content_id for each in listed] == [each.content_id for each in made]
    assert len(portal.run(portal.contents.list(VIC, product_suite="Compass"))) == 4


def _page(portal: Studio, filters: dict[str, Any], cursor: str | None) -> Coroutine[Any, Any, Page[Any]]:
    return portal.contents.list(VIC, **filters, limit=3, cursor=cursor)


def test_s3_24_following_the_cursors_visits_every_item_once(portal: Studio) -> None:
    made = make(portal, 7, product_suite="Compass", product_concept="Billing")
    wanted = [each.content_id for each in made]
    every: list[dict[str, Any]] = [{}, {"product_suite": "Compass"}, {"owner": "ann"}]
    for filters in every:
        pages = followed(portal, partial(_page, portal, filters))
        assert [each.content_id for page in pages for each in page] == wanted
        assert pages[-1].cursor is None


def test_c3_1_a_cursor_of_another_list_or_a_changed_one_is_rejected(portal: Studio) -> None:
    make(portal, 3, product_suite="Compass")
    page = portal.run(portal.contents.list(VIC, limit=1))
    assert page.cursor is not None
    for wrong in (page.cursor[:-2] + "AA", "eyJjb250ZW50X2lkIjoiMSJ9", "x"):
        with pytest.raises(CursorRejected):
            portal.run(portal.contents.list(VIC, limit=1, cursor=wrong))
    with pytest.raises(CursorRejected):
        portal.run(portal.contents.list(VIC, status="Deprecated", cursor=page.cursor))
    with pytest.raises(CursorRejected):
        portal.run(portal.contents.list(VIC, product_suite="Compass", cursor=page.cursor))


def test_c3_1_a_cursor_of_another_user_is_rejected(portal: Studio) -> None:
    for caller in (VIC, BEN):
        for _ in range(3):
            portal.subscribe(caller)
    cursor = portal.run(portal.subscriptions.list(VIC, limit=1)).cursor
    assert cursor is not None
    with pytest.raises(CursorRejected):
        portal.run(portal.subscriptions.list(BEN, limit=1, cursor=cursor))


def test_c3_6_a_page_is_never_empty_before_the_end(portal: Studio) -> None:
    first, *_ = make(portal, 1, product_suite="Compass", product_concept="Billing")
    for _ in range(12):
        portal.pass_time(minutes=1)
        portal.draft(product_suite="Compass", product_concept="Billing")

    def read(cursor: str | None) -> Coroutine[Any, Any, Page[Any]]:
        return portal.contents.list(
            VIC, product_suite="Compass", product_concept="Billing", limit=2, cursor=cursor
        )

    pages = followed(portal, read)
    assert [each.content_id for page in pages for each in page] == [first.content_id]
    assert all(page.items for page in pages if page.cursor is not None)


def test_c3_6_a_filter_that_drops_a_whole_read_does_not_end_the_list(portal: Studio) -> None:
    first, *_ = make(portal, 1, product_suite="Compass")
    for _ in range(4):
        portal.pass_time(minutes=1)
        portal.draft(product_suite="Compass")
    query = Content.of_suite("Compass").where(lambda content: content.status == "Approved")
    empty = portal.run(portal.db.page(query, limit=1, work=2))
    assert (empty.items, empty.cursor is None) == ([], False)
    page = portal.run(page_with_rows(portal.db, query, limit=1, cursor=None, work=2))
    assert [each.content_id for each in page] == [first.content_id]


def test_a_list_costs_what_its_page_is(portal: Studio) -> None:
    make(portal, 30, product_suite="Compass", product_concept="Billing", summary="x" * 300)
    for _ in range(20):
        portal.draft()
    portal.sent()
    # An entry of an index has about 1 KB: ten of them are three units of 4 KB, at half a unit each.
    by_product = portal.contents.list(VIC, product_suite="Compass", product_concept="Billing", limit=10)
    page, used = portal.measured(by_product)
    assert len(page) == 10
    assert used.rcu <= 2
    assert portal.sent() == ["Query"]
    page, used = portal.measured(portal.contents.list(VIC, limit=10))
    assert len(page) == 10
    # Each of the four shards has a page of a few entries; one may be read again.
    assert 4 <= len(portal.sent()) <= 8
    assert used.rcu <= 5


def test_lists_show_drafts_and_expired_content_to_owners_and_approvers(portal: Studio) -> None:
    mine = portal.draft(ANN)
    for status in ("Draft", "Expired"):
        with pytest.raises(Forbidden):
            portal.run(portal.contents.list(VIC, status=status))
    assert [each.content_id for each in portal.run(portal.contents.list(EVA, status="Draft"))] == [
        mine.content_id
    ]
    assert [each.status for each in portal.run(portal.contents.list(ANN, owner="ann"))] == ["Draft"]
    assert list(portal.run(portal.contents.list(BEN, owner="ann"))) == []
    assert len(portal.run(portal.contents.list(ADA, owner="ann"))) == 1
