"""Offloaded fields: contents in a storage, stored before their items, and collected after them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from solotable import (
    ANY,
    FROM_SCOPE,
    Blob,
    Compressed,
    Database,
    Encrypted,
    Entity,
    History,
    Json,
    Key,
    Offloaded,
    Outbox,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
    exists,
    upgrade,
)
from solotable._protocol.requests import BatchWriteItem, PutItem, TransactWriteItems, UpdateItem
from solotable.blobs import BlobStorage, BlockingStorage, MemoryStorage, StoredObject
from solotable.encryption import Keyring
from solotable.errors import (
    AlreadyExists,
    DataError,
    DeclarationError,
    StoredDataError,
    TransportError,
    VersionConflict,
)
from solotable.jobs.backfill import backfill
from solotable.jobs.collect_blobs import BlobCollection, _DigestPage, collect_blobs

from .opening import START, Opening

library = Table("Library", tenant="tenant_id", stream=True)
LARGE = b"All work and no play. " * 40_000  # 880 KB
OTHER = b"Here comes the sun. " * 40_000


class Shelf(BlockingStorage):
    """A storage that notes calls, has a clock of its own, lets a test step in, and can be emptied."""

    def __init__(self) -> None:
        self.clear(MemoryStorage())

    def clear(self, contents: BlobStorage) -> None:
        """Forget everything; the objects are in this storage from now on."""
        self.contents = contents
        self.seconds = START
        self.calls: list[str] = []
        self.fails = False
        self._times: dict[str, datetime] = {}

    @property
    def names(self) -> list[str]:
        """The names of all objects."""
        return [each.name for each in self.list("")]

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Note it."""
        if self.fails:
            raise TransportError("The storage is down.")
        self.calls.append("put")
        self.contents.put(name, data, media_type)
        self._times[name] = datetime.fromtimestamp(self.seconds, UTC)

    def touch(self, name: str, media_type: str | None) -> bool:
        """Note it."""
        self.calls.append("touch")
        is_there = self.contents.touch(name, media_type)
        if is_there:
            self._times[name] = datetime.fromtimestamp(self.seconds, UTC)
        return is_there

    def get(self, name: str) -> bytes | None:
        """Note it."""
        self.calls.append("get")
        return self.contents.get(name)

    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Compare with the own clock."""
        if self._times[name] > unless_modified_after:
            return False
        return self.contents.delete(name, unless_modified_after=datetime.max.replace(tzinfo=UTC))

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Replace the times by those of the own clock."""
        for each in self.contents.list(prefix):
            yield replace(each, modified=self._times[each.name])

    def damage(self, name: str, data: bytes) -> None:
        """Replace the content of an object."""
        self.contents.put(name, data, None)

    def lose(self, name: str) -> None:
        """Delete an object behind the store's back."""
        assert self.contents.delete(name, unless_modified_after=datetime.max.replace(tzinfo=UTC))


shelf = Shelf()


class Book(Entity, table=library):
    """A book of a tenant."""

    key = Key("TENANT#{tenant_id}", "BOOK#{isbn}")
    tenant_id: str = FROM_SCOPE
    isbn: str
    title: str = ""
    body: Annotated[Blob, Offloaded(shelf, inline_bytes=1_000)]
    cover: Annotated[Blob | None, Offloaded(shelf)] = None


class Draft(Entity, table=library):
    """A draft with a history and a grace period."""

    key = Key("TENANT#{tenant_id}", "DRAFT#{draft_id}")
    history = History("DRAFT#{draft_id}#v{version:06d}")
    deletion = SoftDelete(grace=timedelta(days=30))
    tenant_id: str = FROM_SCOPE
    draft_id: str
    body: Annotated[Blob, Offloaded(shelf, inline_bytes=1_000)]
    version: Annotated[int, Version()] = 0


class Report(Entity, table=library):
    """A report whose changes are events."""

    key = Key("TENANT#{tenant_id}", "REPORT#{report_id}")
    events = Outbox(days=None)
    tenant_id: str = FROM_SCOPE
    report_id: str
    body: Annotated[Blob, Offloaded(shelf, inline_bytes=1_000)]
    version: Annotated[int, Version()] = 0


class Licence(Entity, table=library, scope="global"):
    """A global entity."""

    key = Key("LICENCE", "{name}")
    name: str
    text: Annotated[Blob, Offloaded(shelf, inline_bytes=10)]


class BookBody(BaseModel):
    """A view."""

    isbn: str
    body: Blob


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    shelf.clear(MemoryStorage())
    yield
    shelf.clear(MemoryStorage())


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(library)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def item_of(opening: Opening, tag: str) -> dict[str, Any]:
    (found,) = [each for each in opening.raw(library) if each["_type"] == {"S": tag}]
    return found


def name_of(data: bytes, tenant: str = "acme") -> str:
    return f"%4Cibrary/tenant/{tenant}/{sha256(data).hexdigest()}"


def test_a_large_value_is_stored_beside_the_item_and_read_on_demand(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE, media_type="application/pdf")))
    digest = sha256(LARGE).hexdigest()
    assert item_of(opening, "Book")["body"] == {
        "M": {"sha256": {"S": digest}, "size": {"N": str(len(LARGE))}, "type": {"S": "application/pdf"}}
    }
    assert shelf.names == [name_of(LARGE)]
    book = db.require(Book, isbn="1")
    assert (book.body.size, book.body.sha256, book.body.media_type) == (len(LARGE), digest, "application/pdf")
    assert "get" not in shelf.calls
    assert book.body.read() == LARGE
    assert book.body.read() == LARGE
    assert shelf.calls.count("get") == 1
    assert book.body == Blob(LARGE, media_type="application/pdf")
    assert book.cover is None


def test_a_small_value_is_stored_in_the_item(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob.of("short"), cover=Blob(b"\x00\xff", media_type="image/png")))
    item = item_of(opening, "Book")
    assert item["body"] == {"S": "short"}
    assert item["cover"] == {"M": {"data": {"B": "AP8="}, "type": {"S": "image/png"}}}
    book = db.require(Book, isbn="1")
    assert book.body.read().decode() == "short"
    assert book.cover == Blob(b"\x00\xff", media_type="image/png")
    assert shelf.calls == []


def test_text_and_bytes_become_blobs(db: Store) -> None:
    book = Book.model_validate({"tenant_id": "acme", "isbn": "1", "body": "text", "cover": b"bytes"})
    assert (book.body, book.cover) == (Blob.of("text"), Blob(b"bytes"))
    assert db.put(book).model_dump(mode="json")["cover"]["size"] == 5
    with pytest.raises(ValueError, match="takes a Blob, bytes or text, got int"):
        Book.model_validate({"isbn": "1", "body": 7})


def test_the_object_is_stored_before_the_item(opening: Opening, db: Store) -> None:
    seen: list[list[str]] = []
    opening.spy.before = lambda request: seen.append(shelf.names) if isinstance(request, PutItem) else None
    db.put(Book(isbn="1", body=Blob(LARGE)))
    assert seen == [[name_of(LARGE)]]


def test_a_failed_upload_writes_nothing(opening: Opening, db: Store) -> None:
    shelf.fails = True
    with pytest.raises(TransportError, match="The storage is down"):
        db.put(Book(isbn="1", body=Blob(LARGE)))
    assert opening.raw(library) == []


def test_every_verb_stores_the_object(opening: Opening, db: Store) -> None:
    blobs = [Blob(LARGE + bytes((number,))) for number in range(9)]
    db.create(Book(isbn="0", body=blobs[0]))
    changed = db.update(Book, isbn="0", set={"body": blobs[1]})
    assert changed.body.read() == blobs[1].read()
    db.update(Book, isbn="0", set_if_missing={"cover": blobs[2]})
    db.upsert(Book, isbn="2", set={"body": blobs[3]})
    db.modify(Book, lambda book: book.model_copy(update={"body": blobs[4]}), isbn="2")
    with db.transaction() as tx:
        tx.put(Book(isbn="3", body=blobs[5]))
        tx.update(Book, isbn="2", set={"cover": blobs[6]})
        tx.create(Draft(draft_id="d", body=blobs[7]))
    with db.batch() as batch:
        batch.put(Book(isbn="4", body=blobs[8]))
    assert sorted(shelf.names) == sorted(name_of(each.read()) for each in blobs)
    kinds = (PutItem, UpdateItem, TransactWriteItems, BatchWriteItem)
    assert {type(each) for each in opening.spy.sent if isinstance(each, kinds)} == set(kinds)
    found = {isbn: db.require(Book, isbn=isbn) for isbn in "0234"}
    assert [found["0"].body.read(), found["2"].body.read()] == [blobs[1].read(), blobs[4].read()]
    assert found["0"].cover is not None
    assert found["2"].cover is not None
    assert [found["0"].cover.read(), found["2"].cover.read()] == [blobs[2].read(), blobs[6].read()]
    assert db.require(Draft, draft_id="d").body.read() == blobs[7].read()


def test_equal_values_of_one_tenant_are_one_object(db: Store, base: Database) -> None:
    for isbn in "12":
        db.put(Book(isbn=isbn, body=Blob(LARGE)))
    base.tenant("Acme").put(Book(isbn="1", body=Blob(LARGE)))
    base.put(Licence(name="MIT", text=Blob(LARGE)))
    digest = sha256(LARGE).hexdigest()
    assert sorted(shelf.names) == [
        f"%4Cibrary/global/{digest}",
        f"%4Cibrary/tenant/%41cme/{digest}",
        f"%4Cibrary/tenant/acme/{digest}",
    ]


def test_a_blob_of_another_tenant_is_copied(db: Store, base: Database) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    theirs = base.tenant("other")
    theirs.put(Book(isbn="9", body=db.require(Book, isbn="1").body))
    assert sorted(shelf.names) == [name_of(LARGE), name_of(LARGE, "other")]
    assert theirs.require(Book, isbn="9").body.read() == LARGE


def test_an_item_cannot_refer_to_an_object_of_another_tenant(
    opening: Opening, db: Store, base: Database
) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    item = item_of(opening, "Book")
    opening.plant(library, {**item, "PK": {"S": "TENANT#other"}, "tenant_id": {"S": "other"}})
    with pytest.raises(StoredDataError, match=r"Book.body refers to the object '%4Cibrary/tenant/other/"):
        base.tenant("other").require(Book, isbn="1").body.read()


def test_a_put_of_a_reference_refreshes_its_object(db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    shelf.calls.clear()
    shelf.seconds += 500
    book = db.require(Book, isbn="1")
    stored = db.put(book.model_copy(update={"title": "New"}))
    assert shelf.calls == ["touch"]
    assert [each.modified.timestamp() for each in shelf.list("")] == [shelf.seconds]
    db.put(stored)
    db.update(Book, isbn="1", set={"title": "Newer"})
    assert shelf.calls == ["touch", "touch"]


def test_a_put_stores_a_missing_object_again_or_is_rejected(opening: Opening, db: Store) -> None:
    stored = db.put(Book(isbn="1", body=Blob(LARGE)))
    reference = db.require(Book, isbn="1")
    shelf.lose(name_of(LARGE))
    with pytest.raises(
        StoredDataError, match=r"Book.body refers to the object .*, which its storage does not"
    ):
        db.put(reference.model_copy(update={"title": "New"}))
    assert "title" not in item_of(opening, "Book") or item_of(opening, "Book")["title"] == {"S": ""}
    db.put(stored)
    assert shelf.names == [name_of(LARGE)]


def test_a_damaged_object_is_not_returned(db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    shelf.damage(name_of(LARGE), LARGE[:-1] + b"?")
    with pytest.raises(StoredDataError, match="does not match its checksum"):
        db.require(Book, isbn="1").body.read()


def test_await_loads_the_content(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    blob = db.require(Book, isbn="1").body
    if opening.runner is not None:
        assert opening.runner.run(blob.aread()) == LARGE
        assert blob.is_loaded


def test_a_failed_condition_leaves_an_orphan_and_no_item(opening: Opening, db: Store) -> None:
    db.create(Book(isbn="1", body=Blob(LARGE)))
    with pytest.raises(AlreadyExists):
        db.create(Book(isbn="1", body=Blob(OTHER)))
    assert db.require(Book, isbn="1").body.read() == LARGE
    assert len(shelf.names) == 2
    shelf.seconds += 200_000
    opening.clock.seconds = shelf.seconds
    assert collected(opening).deleted == 1
    assert shelf.names == [name_of(LARGE)]


def test_conditions_know_only_whether_it_exists(db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    db.update(Book, isbn="1", set={"title": "New"}, where=lambda book: exists(book.body))
    with pytest.raises(DeclarationError, match=r"Book.body is offloaded, so a condition cannot compare it"):
        db.update(Book, isbn="1", set={"title": ""}, where=lambda book: book.body == Blob(LARGE))


def test_views_have_blobs(db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    (found,) = db.page(Book.key.query().select(BookBody), limit=5).items
    assert found.body.read() == LARGE


def test_an_entity_of_an_item_can_load_its_blob(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    assert Book.from_item(item_of(opening, "Book")).body.read() == LARGE


def test_to_item_rejects_a_blob_that_is_not_stored() -> None:
    with pytest.raises(DataError, match=r"Book.to_item\(\) does not store Book.body"):
        Book(tenant_id="acme", isbn="1", body=Blob(LARGE)).to_item()


def test_snapshots_refer_to_former_objects(opening: Opening, db: Store) -> None:
    db.create(Draft(draft_id="d", body=Blob(LARGE)))
    shelf.seconds += 500
    db.update(Draft, draft_id="d", set={"body": Blob(OTHER)}, version=1)
    # The snapshot of the transaction has the former reference, so a running collector must keep its object.
    assert {each.modified.timestamp() for each in shelf.list("")} == {shelf.seconds}
    history = db.history(Draft, draft_id="d")
    former = history.get(1)
    assert former is not None
    assert former.body.read() == LARGE
    history.restore(1)
    assert db.require(Draft, draft_id="d").body.read() == LARGE


def collected(opening: Opening, **options: Any) -> BlobCollection:
    return collect_blobs(opening.beside(library).admin(), library, **{"budget": 10_000, **options})


def with_digests(
    opening: Opening, digests: set[bytes], progress: Callable[[BlobCollection], None]
) -> BlobCollection:
    """Collect as if the scan had found these checksums only."""

    def scanned(*_: Any) -> Iterator[None]:
        yield from ()
        return _DigestPage(digests, 1, None)  # type: ignore[return-value]  # of a generator

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("solotable.jobs.collect_blobs._digests", scanned)
        return collected(opening, progress=progress)


def later(opening: Opening, seconds: float = 200_000) -> None:
    shelf.seconds += seconds
    opening.clock.seconds = shelf.seconds


def test_collecting_keeps_the_objects_of_items_snapshots_and_deleted_entities(
    opening: Opening, db: Store
) -> None:
    blobs = [Blob(LARGE + bytes((number,))) for number in range(5)]
    db.create(Draft(draft_id="d", body=blobs[0]))
    db.update(Draft, draft_id="d", set={"body": blobs[1]}, version=1)
    db.create(Draft(draft_id="soft", body=blobs[2]))
    db.delete(Draft, draft_id="soft", version=ANY)
    db.put(Book(isbn="1", body=blobs[3]))
    db.put(Book(isbn="1", body=blobs[4]))
    later(opening)
    dry = collected(opening, dry_run=True)
    assert (dry.objects, dry.old, dry.unreferenced, dry.deleted) == (5, 5, 1, 0)
    assert dry.unreferenced_bytes == blobs[3].size
    done = collected(opening)
    assert (done.deleted, done.done) == (1, True)
    assert sorted(shelf.names) == sorted(name_of(each.read()) for each in (*blobs[:3], blobs[4]))
    assert collected(opening).deleted == 0


def test_collecting_leaves_young_objects_and_those_that_a_writer_uses_again(
    opening: Opening, db: Store
) -> None:
    db.put(Book(isbn="0", body=Blob(b"kept" * 1_000)))
    db.put(Book(isbn="1", body=Blob(LARGE)))
    db.put(Book(isbn="1", body=Blob.of("small")))
    assert collected(opening).old == 0
    later(opening)

    def again(now: BlobCollection) -> None:
        if now.items and not now.done:
            # A writer stores the value again after the scan has passed.
            shelf.put(name_of(LARGE), LARGE, None)

    report = collected(opening, progress=again)
    assert (report.unreferenced, report.deleted, report.touched) == (1, 0, 1)
    assert name_of(LARGE) in shelf.names


def test_collecting_without_a_complete_scan_deletes_nothing(opening: Opening, db: Store) -> None:
    for isbn in "123":
        db.put(Book(isbn=isbn, body=Blob(LARGE + isbn.encode())))
    db.put(Book(isbn="1", body=Blob.of("")))
    later(opening)
    report = collected(opening, budget=2)
    assert (report.done, report.deleted) == (False, 0)
    assert len(shelf.names) == 3


def test_collecting_in_a_database_without_references_is_rejected(opening: Opening, db: Store) -> None:
    shelf.put(name_of(LARGE), LARGE, None)
    later(opening)
    with pytest.raises(DataError, match="refers to any of its 1 objects; nothing was deleted"):
        collected(opening)
    assert collected(opening, allow_all=True).deleted == 1


def test_segments_are_read_together(opening: Opening, db: Store, base: Database) -> None:
    for tenant in "abcdefgh":
        base.tenant(tenant).put(Book(isbn="1", body=Blob(LARGE + tenant.encode())))
        base.tenant(tenant).put(Book(isbn="1", body=Blob(OTHER + tenant.encode())))
    later(opening)
    seen: list[BlobCollection] = []
    report = collected(opening, segments=4, progress=seen.append)
    assert (report.items, report.unreferenced, report.deleted, report.done) == (8, 8, 8, True)
    assert sorted(shelf.names) == sorted(name_of(OTHER + each.encode(), each) for each in "abcdefgh")
    assert [each.deleted for each in seen[-8:]] == [*range(1, 9)]


def test_segments_share_the_budget(opening: Opening, base: Database) -> None:
    for tenant in "abcdefgh":
        base.tenant(tenant).put(Book(isbn="1", body=Blob(LARGE + tenant.encode())))
        base.tenant(tenant).put(Book(isbn="1", body=Blob(OTHER + tenant.encode())))
    later(opening)
    short = collected(opening, segments=4, budget=7)
    assert (short.items, short.done, short.deleted, len(shelf.names)) == (7, False, 0, 16)
    # A segment that is empty ends after a page, which gives its share back.
    assert collected(opening, segments=4, budget=20).deleted == 8


def test_the_rate_of_a_collection_is_kept(opening: Opening, db: Store) -> None:
    if opening.runner is not None:
        pytest.skip("the job is a blocking one")
    for isbn in "123":
        db.put(Book(isbn=isbn, body=Blob(LARGE + isbn.encode()), title="x" * 20_000))
    db.put(Book(isbn="1", body=Blob.of("")))
    later(opening)
    waits: list[float] = []
    opening.spy.sleep = waits.append
    assert collect_blobs(opening(library).admin(), budget=100, rate=2).deleted == 1
    assert sum(waits) > 1
    for wrong in ({"rate": 0}, {"segments": 0}, {"budget": 0}, {"grace": timedelta(-1)}):
        with pytest.raises(DataError, match="must"):
            collected(opening, **wrong)


def test_collecting_leaves_objects_that_are_not_of_a_field(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    db.put(Book(isbn="1", body=Blob(OTHER)))
    shelf.put("%4Cibrary/readme", b"Do not delete", None)
    later(opening)
    report = collected(opening)
    assert (report.objects, report.deleted) == (2, 1)
    assert sorted(shelf.names) == sorted(["%4Cibrary/readme", name_of(OTHER)])


def test_the_objects_of_an_erased_tenant_are_collected(opening: Opening, db: Store, base: Database) -> None:
    db.put(Book(isbn="1", body=Blob(LARGE)))
    base.tenant("other").put(Book(isbn="1", body=Blob(OTHER)))
    base.admin().erase_tenant("acme")
    later(opening, 0)
    report = collected(opening, tenant="acme", grace=timedelta(0))
    assert (report.objects, report.deleted) == (1, 1)
    assert shelf.names == [name_of(OTHER, "other")]


def test_collecting_keeps_the_objects_of_stored_events(opening: Opening, db: Store) -> None:
    stored = db.create(Report(report_id="r", body=Blob(LARGE)))
    db.put(stored.model_copy(update={"body": Blob(OTHER)}))
    db.put(Book(isbn="1", body=Blob(LARGE + OTHER)))
    db.delete(Book, isbn="1")
    later(opening)
    assert (collected(opening).deleted, len(shelf.names)) == (1, 2)
    db.delete(Report, report_id="r", version=ANY)
    later(opening)
    assert (collected(opening).deleted, len(shelf.names)) == (0, 2)


def test_collecting_during_a_write_with_a_snapshot_keeps_its_object(opening: Opening, db: Store) -> None:
    db.create(Draft(draft_id="d", body=Blob(LARGE)))
    db.put(Book(isbn="1", body=Blob(b"kept" * 1_000)))
    later(opening)
    moved = False

    def move(now: BlobCollection) -> None:
        nonlocal moved
        if not moved:
            moved = True
            # The scan has read a page; now the reference moves from the item to a snapshot.
            db.update(Draft, draft_id="d", set={"body": Blob(OTHER)}, version=1)

    # As if the scan had passed the snapshot's key before, and reads the item afterwards.
    digests = {sha256(b"kept" * 1_000).digest()}
    report = with_digests(opening, digests, move)
    assert (report.unreferenced, report.deleted, report.touched) == (1, 0, 1)
    former = db.history(Draft, draft_id="d").get(1)
    assert former is not None
    assert former.body.read() == LARGE


def test_a_process_killed_after_the_upload_leaves_an_orphan_only(opening: Opening, db: Store) -> None:
    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    db.put(Book(isbn="0", body=Blob(OTHER)))
    opening.spy.once(PutItem, kill)
    with pytest.raises(Killed):
        db.put(Book(isbn="1", body=Blob(LARGE)))
    assert db.get(Book, isbn="1") is None
    assert len(shelf.names) == 2
    db.put(Book(isbn="1", body=Blob(LARGE)))
    assert db.require(Book, isbn="1").body.read() == LARGE
    assert len(shelf.names) == 2


def test_a_retry_after_an_unknown_outcome_stores_one_object(opening: Opening, db: Store) -> None:
    blob = Blob(LARGE)
    for _ in range(2):
        with db.transaction(token="t1") as tx:
            tx.put(Book(isbn="1", body=blob))
    assert shelf.names == [name_of(LARGE)]
    assert db.require(Book, isbn="1").body.read() == LARGE


def test_an_async_store_does_not_block_its_loop(opening: Opening) -> None:
    if opening.runner is None:
        pytest.skip("a blocking store has no loop")
    threads: set[int] = set()
    put = shelf.put

    def noted(name: str, data: bytes, media_type: str | None) -> None:
        threads.add(threading.get_ident())
        put(name, data, media_type)

    shelf.put = noted  # type: ignore[method-assign]  # removed below
    try:
        opening(library).tenant("acme").put(Book(isbn="1", body=Blob(LARGE)))
    finally:
        del shelf.put
    assert threads
    assert threading.get_ident() not in threads


def test_a_backfill_offloads_large_values(opening: Opening, db: Store) -> None:
    db.put(Book(isbn="1", body=Blob.of("x")))
    item = item_of(opening, "Book")
    opening.plant(library, {**item, "body": {"S": "y" * 5_000}})
    assert backfill(opening.beside(library).admin(), Book, budget=100).tally.recoded == 1
    assert "M" in item_of(opening, "Book")["body"]
    assert db.require(Book, isbn="1").body.read() == b"y" * 5_000


def test_an_update_of_another_schema_version_stores_the_object(opening: Opening) -> None:
    shop = Table("Archive")

    class Paper(Entity, table=shop, schema_version=2):
        key = Key("PAPER#{paper_id}", "PAPER")
        paper_id: str
        title: str = ""
        body: Annotated[Blob, Offloaded(shelf, inline_bytes=10)] = Blob.of("")

        @upgrade(to=2)
        @staticmethod
        def titles(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, "title": "untitled"}

    db = opening(shop)
    db.put(Paper(paper_id="1"))
    item = opening.raw(shop)[0]
    old = {name: value for name, value in item.items() if name in {"PK", "SK", "_type", "paper_id"}}
    opening.plant(shop, old)
    found = db.update(Paper, paper_id="1", set={"body": Blob(LARGE)})
    assert found.title == "untitled"
    assert db.require(Paper, paper_id="1").body.read() == LARGE


def test_a_conflict_names_no_content(db: Store) -> None:
    draft = db.create(Draft(draft_id="d", body=Blob(LARGE)))
    db.put(draft)
    with pytest.raises(VersionConflict):
        db.put(draft)


def test_declarations_that_cannot_work_are_rejected() -> None:
    keyring = Keyring({"k1": bytes(32)})
    cases: list[tuple[Any, str]] = [
        (Annotated[str, Offloaded(shelf)], "declare it as Blob"),
        (Annotated[Blob, Offloaded(shelf), Compressed()], "is marked Offloaded and Compressed"),
        (Annotated[Blob, Offloaded(shelf), Encrypted(keyring)], "is marked Offloaded and Encrypted"),
        (Annotated[Blob, Offloaded(shelf), Json()], "is marked Offloaded and Json"),
        (Annotated[Blob, Offloaded(shelf), Unique()], "is marked Offloaded and Unique"),
        (Blob, "is a Blob without a storage"),
        (list[Annotated[Blob, Offloaded(shelf)]], "Offloaded on its members"),
    ]
    for annotation, message in cases:
        with pytest.raises(DeclarationError, match=message):
            type(
                "Wrong",
                (Entity,),
                {
                    "__annotations__": {"wrong_id": str, "body": annotation},
                    "__module__": __name__,
                    "key": Key("WRONG#{wrong_id}", "WRONG"),
                },
                table=Table("Wrong"),
            )
    with pytest.raises(DeclarationError, match="got str"):
        Offloaded("s3://bucket")  # type: ignore[arg-type]  # what a caller may try
