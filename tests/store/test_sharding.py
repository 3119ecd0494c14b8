"""Partitions kept as several: by status and type (C0.9, C2.2), by time (C3.8), of large tenants (C4.16)."""

from __future__ import annotations

import base64
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from solotable import FROM_SCOPE, TTL, Database, Entity, Index, Key, Store, Table
from solotable import Query as Pattern
from solotable._entities.lint import lint
from solotable._protocol.requests import GetItem, PutItem, Query, UpdateItem
from solotable.errors import CursorRejected, DataError, Throttled

from .opening import START, Opening, stale_among

posts = Table(
    "Posts",
    tenant="tenant_id",
    ttl="expires",
    indexes=[Index("GSI1"), Index("GSI2", projection="KEYS_ONLY"), Index("GSI3")],
)
FIRST = datetime.fromtimestamp(START, UTC) - timedelta(days=3)
Status = Literal["draft", "live"]


class Post(Entity, table=posts):
    key = Key("TENANT#{tenant_id}", "POST#{post_id}", shards=4)
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "{at}#{post_id}", index="GSI1", shards=3)
    by_type = Key("TENANT#{tenant_id}#POSTS", "{at}", index="GSI2", shards=2)
    by_day = Key("TENANT#{tenant_id}#DAY#{at:day}", "{at}#{post_id}", index="GSI3", shards=2)
    tenant_id: str = FROM_SCOPE
    post_id: str
    at: datetime
    status: Status = "draft"
    words: int = 0
    expires: Annotated[datetime | None, TTL()] = None


class Reply(Entity, table=posts):
    """Lies with its post: the shard is the post's."""

    key = Key("TENANT#{tenant_id}", "REPLY#{post_id}#{reply_id}", shards=4, shard_by=("post_id",))
    tenant_id: str = FROM_SCOPE
    post_id: str
    reply_id: str


class Title(BaseModel):
    post_id: str
    words: int


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(posts)


@pytest.fixture
def db(base: Database) -> Store:
    db = base.tenant("acme")
    with db.batch() as batch:
        for number in range(60):
            batch.put(_post(number))
    # Of another tenant, and not to be seen.
    base.tenant("zeta").put(_post(7))
    return db


def _post(number: int) -> Post:
    status: Status = "live" if number % 2 else "draft"
    at = FIRST + timedelta(hours=number)
    return Post(post_id=f"p{number:02d}", at=at, status=status, words=number)


def _walked(db: Store, query: Pattern[Post], limit: int) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        page = db.page(query, limit=limit, cursor=cursor)
        pages.append([each.post_id for each in page])
        cursor = page.cursor
        if cursor is None:
            return pages


def test_c0_9_a_status_index_is_spread_over_shards_within_the_tenant(opening: Opening, db: Store) -> None:
    stored = Counter(item["GSI1PK"]["S"] for item in opening.raw(posts) if "GSI1PK" in item)
    mine = {text: count for text, count in stored.items() if text.startswith("TENANT#acme#STATUS#live#")}
    assert len(mine) == 3
    assert all(5 <= count <= 15 for count in mine.values())
    wanted = [f"p{number:02d}" for number in range(1, 60, 2)]
    query = Post.by_status.query(status="live")
    assert [each.post_id for each in db.all(query)] == wanted
    assert [each.post_id for each in db.all(query.descending())] == wanted[::-1]
    assert _walked(db, query, 7) == [wanted[at : at + 7] for at in range(0, 30, 7)]
    assert db.count(query) == 30
    assert db.count(query, where=lambda post: post.words > 40) == 10
    newest = db.first(query.descending())
    assert newest is not None
    assert newest.post_id == "p59"


def test_c2_2_a_list_of_all_of_a_type_has_no_hot_partition_and_hides_other_tenants(
    base: Database, db: Store
) -> None:
    query = Post.by_type.query()
    assert [each.words for each in db.all(query)] == list(range(60))
    assert [each.post_id for each in base.tenant("zeta").all(query)] == ["p07"]
    assert [each.code for each in lint(posts) if each.code in ("ST201", "ST202")] == []
    view = db.page(Post.by_status.query(status="live").select(Title), limit=2)
    assert view.items == [Title(post_id="p01", words=1), Title(post_id="p03", words=3)]


def test_c3_8_a_bucket_of_time_is_sharded_and_walked_until_the_page_is_full(
    opening: Opening, db: Store
) -> None:
    partitions = {item["GSI3PK"]["S"].removeprefix("TENANT#acme#DAY#") for item in opening.raw(posts)}
    assert {"2034-12-29#00", "2034-12-29#01", "2034-12-31#01"} <= partitions
    opening.spy.sent.clear()
    recent = Post.by_day.query().since(at=FIRST).descending()
    page = db.page(recent, limit=5)
    assert [each.post_id for each in page] == [f"p{number}" for number in range(59, 54, -1)]
    asked = [each.key[0].values[0]["S"] for each in opening.spy.of(Query)]
    # The clock stands at midnight: today's bucket is empty, yesterday's fills the page.
    assert {text.split("#")[3] for text in asked} == {"2035-01-01", "2034-12-31"}
    assert [each.words for each in db.all(Post.by_day.query(at=date(2034, 12, 30)))] == list(range(24, 48))
    assert db.count(recent) == 60
    assert list(chain(*_walked(db, recent, 13))) == [f"p{number:02d}" for number in range(59, -1, -1)]
    with pytest.raises(DataError, match="needs two ends"):
        db.page(Post.by_day.query())


def test_c4_16_a_tenants_own_items_are_spread_and_each_is_got_by_one_request(
    opening: Opening, db: Store
) -> None:
    stored = Counter(item["PK"]["S"] for item in opening.raw(posts))
    assert {f"TENANT#acme#{shard:02d}" for shard in range(4)} <= stored.keys()
    opening.spy.sent.clear()
    assert db.require(Post, post_id="p33").words == 33
    assert [type(each) for each in opening.spy.sent] == [GetItem]
    assert [each.post_id for each in db.all(Post.key.query())] == [f"p{number:02d}" for number in range(60)]
    assert [each.words for each in db.get_many(Post, [{"post_id": "p09"}, {"post_id": "p08"}]) if each] == [
        9,
        8,
    ]


def test_an_update_moves_the_item_and_reads_only_what_it_must(opening: Opening, db: Store) -> None:
    opening.spy.sent.clear()
    db.update(Post, post_id="p02", set={"words": 200})
    assert [type(each) for each in opening.spy.sent] == [UpdateItem]
    db.update(Post, post_id="p02", set={"status": "live"})
    moved = db.update(Post, post_id="p04", set={"at": FIRST - timedelta(days=1)})
    assert stale_among(opening.raw(posts), posts) == []
    assert "p02" in [each.post_id for each in db.all(Post.by_status.query(status="live"))]
    assert list(db.all(Post.by_day.query(at=moved.at.date()))) == [moved]
    db.delete(Post, post_id="p02")
    assert db.count(Post.by_status.query(status="live")) == 30


def test_what_has_expired_is_hidden_on_every_shard(opening: Opening, db: Store) -> None:
    for number in range(0, 60, 4):
        db.update(Post, post_id=f"p{number:02d}", set={"expires": opening.clock.at(60)})
    assert db.count(Post.by_status.query(status="draft")) == 30
    opening.clock.seconds += 61
    left = [number for number in range(60) if number % 4]
    assert [each.words for each in db.all(Post.by_type.query())] == left
    drafts = [number for number in left if not number % 2]
    assert db.count(Post.by_status.query(status="draft")) == len(drafts)
    pages = _walked(db, Post.by_status.query(status="draft"), 4)
    assert list(chain(*pages)) == [f"p{number:02d}" for number in drafts]


def test_the_shard_of_a_parent_keeps_its_children_together(opening: Opening, db: Store) -> None:
    for number in range(20):
        db.put(Reply(post_id=f"p{number % 4:02d}", reply_id=f"r{number:02d}"))
    opening.spy.sent.clear()
    found = [each.reply_id for each in db.all(Reply.key.query(post_id="p01"))]
    assert found == [f"r{number:02d}" for number in range(1, 20, 4)]
    assert len(opening.spy.of(Query)) == 1
    assert db.count(Reply.key.query()) == 20


def test_a_collection_over_shards_is_refused_in_words(db: Store) -> None:
    with pytest.raises(DataError, match=r"Post.key is stored in 4 partitions.*declare shard_by="):
        db.collection(Post, Reply)


def test_a_page_reads_a_share_of_each_shard_and_fills_under_a_filter(opening: Opening, db: Store) -> None:
    opening.spy.sent.clear()
    page = db.page(Post.by_status.query(status="live"), limit=12)
    assert len(page) == 12
    assert page.scanned <= 24
    assert all(each.limit <= 12 for each in opening.spy.of(Query))
    rare = db.page(Post.by_status.query(status="live"), limit=3, where=lambda post: post.words > 50)
    assert [each.words for each in rare] == [51, 53, 55]
    little = db.page(Post.by_status.query(status="live"), limit=3, where=lambda post: post.words > 50, work=4)
    assert (little.items, little.cursor is None) == ([], False)
    rest = db.page(
        Post.by_status.query(status="live"), limit=9, where=lambda post: post.words > 50, cursor=little.cursor
    )
    assert [each.words for each in rest] == [51, 53, 55, 57, 59]


def test_one_cursor_of_all_shards_is_sealed_and_small(base: Database, db: Store) -> None:
    query = Post.by_status.query(status="live")
    cursor = db.page(query, limit=5).cursor
    assert cursor is not None
    assert len(cursor) < 600
    assert [each.words for each in db.page(query, limit=2, cursor=cursor)] == [11, 13]
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    for at in (0, 40, len(raw) - 1):
        changed = bytearray(raw)
        changed[at] ^= 1
        with pytest.raises(CursorRejected):
            db.page(query, cursor=base64.urlsafe_b64encode(changed).rstrip(b"=").decode())
    others = (query.descending(), Post.by_status.query(status="draft"), Post.by_type.query())
    for other in others:
        with pytest.raises(CursorRejected):
            db.page(other, cursor=cursor)
    with pytest.raises(CursorRejected):
        base.tenant("zeta").page(query, cursor=cursor)


def test_a_cursor_of_buckets_is_good_after_midnight(opening: Opening, db: Store) -> None:
    query = Post.by_day.query().since(at=FIRST + timedelta(hours=50))
    page = db.page(query, limit=4)
    assert [each.words for each in page] == [50, 51, 52, 53]
    opening.clock.seconds += 24 * 3600
    late = Post(post_id="late", at=opening.clock.at(24 * 3600), words=99)
    db.put(late)
    assert [each.words for each in db.page(query, cursor=page.cursor)] == [54, 55, 56, 57, 58, 59, 99]


def test_a_throttled_shard_is_asked_again_alone(opening: Opening, db: Store) -> None:
    opening.spy.sent.clear()

    def refuse() -> None:
        raise Throttled("ThrottlingException", "slow down")

    opening.spy.once(Query, refuse)
    assert db.count(Post.by_status.query(status="live")) == 30
    assert len(opening.spy.of(Query)) == 4


def test_a_put_is_one_request_as_ever(opening: Opening, db: Store) -> None:
    opening.spy.sent.clear()
    db.put(_post(3))
    assert [type(each) for each in opening.spy.sent] == [PutItem]


def _shelves(key: Key) -> Any:
    """The same entity as one release after the other declares it."""
    table = Table("Shelves", indexes=[Index("GSI1")])
    fields = {"book_id": str, "genre": str, "n": int}
    keys = {"key": Key("BOOK#{book_id}", "BOOK"), "by_genre": key}
    return type("Book", (Entity,), {"__annotations__": fields, **keys}, table=table)


def _key(shards: int | None = None, was: int | None = None) -> Key:
    return Key("GENRE#{genre}", "{n:04d}", index="GSI1", shards=shards, was=was)


@pytest.mark.parametrize(("before", "after"), [(None, 4), (2, 5), (5, 2)])
def test_the_shards_of_an_index_are_changed_while_it_is_read(
    opening: Opening, before: int | None, after: int
) -> None:
    old, between, new = _shelves(_key(before)), _shelves(_key(after, before or 1)), _shelves(_key(after))

    def shown(book: Any) -> list[int]:
        db = opening(book.plan().table)
        query = book.by_genre.query(genre="x")
        paged = list(chain(*_numbers(db, query)))
        assert paged == [each.n for each in db.all(query)]
        assert db.count(query) == len(paged)
        return paged

    for number in range(0, 20, 2):
        opening(old.plan().table).put(old(book_id=str(number), genre="x", n=number))
    assert shown(old) == list(range(0, 20, 2))
    for number in range(1, 20, 2):
        opening(between.plan().table).put(between(book_id=str(number), genre="x", n=number))
    assert shown(between) == list(range(20))
    for number in range(0, 20, 2):
        opening(between.plan().table).put(between(book_id=str(number), genre="x", n=number))
    assert shown(between) == shown(new) == list(range(20))


def _numbers(db: Store, query: Pattern[Any]) -> list[list[int]]:
    pages, cursor = [], None
    while True:
        page = db.page(query, limit=3, cursor=cursor)
        pages.append([each.n for each in page])
        cursor = page.cursor
        if cursor is None:
            return pages
