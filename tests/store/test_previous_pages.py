"""`page.previous`: pages before a page, in the order of the query, while rows come and go."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solotable import FROM_SCOPE, Database, Entity, Index, Key, Page, Query, Store, Table
from solotable.errors import CursorRejected

from .opening import Opening

feed = Table("Feed", tenant="org", indexes=[Index("Ties"), Index("Shards"), Index("Days")])
START = datetime(2030, 1, 1, tzinfo=UTC)


class Post(Entity, table=feed):
    """A post by number, by a group that many posts share, over shards, and by day."""

    key = Key("ORG#{org}", "POST#{number:05d}")
    by_group = Key("ORG#{org}", "G#{group:02d}", index="Ties")
    by_shard = Key("ORG#{org}", "G#{group:02d}", index="Shards", shards=3)
    by_day = Key("ORG#{org}#{at:day}", "{at}", index="Days", shards=2)
    org: str = FROM_SCOPE
    number: int
    group: int
    at: datetime


QUERIES: dict[str, Callable[[], Query[Post]]] = {
    "primary key": Post.key.query,
    "range": lambda: Post.key.query().between(number=(20, 70)),
    "equal sort keys": Post.by_group.query,
    "shards with equal sort keys": Post.by_shard.query,
    "time buckets": lambda: Post.by_day.query().between(at=(START, START + timedelta(days=9))),
}


def _post(number: int) -> Post:
    return Post(number=number, group=number % 7, at=START + timedelta(hours=2 * number))


@pytest.fixture
def db(opening: Opening) -> Store:
    return opening(feed).tenant("acme")


def _fill(db: Store, numbers: Any) -> None:
    with db.batch() as batch:
        for number in numbers:
            batch.put(_post(number))


def _numbers(page: Page[Post] | list[Post]) -> list[int]:
    return [each.number for each in page]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("descending", [False, True])
def test_random_walks_agree_with_a_list(db: Store, name: str, descending: bool) -> None:
    """Steps in both directions with pages of any size and a filter, against a plain list."""
    _fill(db, range(90))
    query = QUERIES[name]().descending() if descending else QUERIES[name]()
    walk = random.Random(f"{name}{descending}")
    for asked in (query, query.where(lambda post: post.group != 3)):
        rows = _numbers(list(db.all(asked)))
        # The model: the rows from `low` to `high` are on the page.
        page: Page[Post] = db.page(asked, limit=walk.randint(1, 20))
        low, high = 0, len(page)
        assert _numbers(page) == rows[low:high]
        assert not page.previous
        for _ in range(25):
            size = walk.randint(1, 20)
            if page.cursor is not None and (page.previous is None or walk.random() < 0.55):
                low, high = high, min(high + size, len(rows))
                page = db.page(asked, limit=size, cursor=page.cursor)
            else:
                assert page.previous is not None
                low, high = max(low - size, 0), low
                page = db.page(asked, limit=size, cursor=page.previous)
            assert _numbers(page) == rows[low:high]
            assert page.cursor is not None or high == len(rows)
            assert page.previous is not None or low == 0


def test_rows_at_the_edges_may_come_and_go(db: Store) -> None:
    """A walk over a set of rows that changes between the steps, against the same set."""
    walk = random.Random(11)
    stored = set(range(0, 100, 3))
    _fill(db, stored)
    query = Post.key.query()
    page = db.page(query, limit=8)
    for _ in range(60):
        for number in walk.sample(range(100), 4):
            if number in stored:
                db.delete(Post, number=number)
                stored.discard(number)
            else:
                db.put(_post(number))
                stored.add(number)
        seen = _numbers(page)
        if page.cursor is not None and (page.previous is None or walk.random() < 0.5):
            page = db.page(query, limit=8, cursor=page.cursor)
            if seen:
                assert _numbers(page) == sorted(each for each in stored if each > seen[-1])[:8]
        else:
            assert page.previous is not None
            page = db.page(query, limit=8, cursor=page.previous)
            if seen:
                assert _numbers(page) == sorted(each for each in stored if each < seen[0])[-8:]


def test_an_empty_page_has_a_page_before_and_after(db: Store) -> None:
    _fill(db, range(6))
    query = Post.key.query()
    second = db.page(query, limit=2, cursor=db.page(query, limit=2).cursor)
    for number in (4, 5):
        db.delete(Post, number=number)
    empty = db.page(query, limit=2, cursor=second.cursor)
    assert (empty.items, empty.cursor) == ([], None)
    assert _numbers(db.page(query, limit=3, cursor=empty.previous)) == [1, 2, 3]
    for number in (0, 1):
        db.delete(Post, number=number)
    before = db.page(query, limit=2, cursor=second.previous)
    assert (before.items, before.previous) == ([], None)
    assert _numbers(db.page(query, limit=9, cursor=before.cursor)) == [2, 3]


def test_a_page_that_ran_out_of_work_has_a_page_before(db: Store) -> None:
    _fill(db, range(60))
    query = Post.key.query().where(lambda post: post.number < 10)
    first = db.page(query, limit=10)
    page = db.page(query, limit=5, cursor=first.cursor, work=10)
    assert (page.items, page.cursor is None) == ([], False)
    assert _numbers(db.page(query, limit=3, cursor=page.previous)) == [7, 8, 9]


def test_a_previous_cursor_is_bound_as_any_cursor(opening: Opening, db: Store) -> None:
    base: Database = opening(feed)
    _fill(db, range(20))
    query = Post.key.query()
    page = db.page(query, limit=5, cursor=db.page(query, limit=5).cursor)
    assert page.previous is not None
    assert page.previous != page.cursor
    for other in (query.descending(), Post.by_group.query(), query.since(number=0)):
        with pytest.raises(CursorRejected):
            db.page(other, limit=5, cursor=page.previous)
    with pytest.raises(CursorRejected):
        base.tenant("other").page(query, limit=5, cursor=page.previous)
    with pytest.raises(CursorRejected):
        db.page(query, limit=5, cursor=page.previous[:-1])
    opening.clock.seconds += 8 * 24 * 3600
    with pytest.raises(CursorRejected):
        db.page(query, limit=5, cursor=page.previous)
