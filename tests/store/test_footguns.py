"""Mistakes that other libraries let happen, one test for each, named after it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from solotable import ANY, FROM_SCOPE, Database, Entity, Index, Key, Query, Store, Table
from solotable._protocol import requests
from solotable._protocol.replies import BatchGot, BatchWrote
from solotable._protocol.replies import Page as Reply
from solotable._protocol.requests import BatchGetItem, BatchWriteItem, PutItem, TransactWriteItems, UpdateItem
from solotable.errors import (
    AlreadyExists,
    BatchIncomplete,
    ConditionFailed,
    CursorRejected,
    DataError,
    DeclarationError,
    ItemTooLarge,
    NotFound,
    TenantViolation,
    TransactionFailed,
    UnknownEntity,
    VersionConflict,
)

from .models import Address, Book, Event, Loan, Photo, Reader, Section, Survey, events, library, surveyor
from .opening import Opening, stale_keys

pairs = Table("Pairs", indexes=[Index("GSI1")])


class Pair(Entity, table=pairs):
    """Two values side by side in each key."""

    key = Key("ORG#{one}#USER#{two}", "TASK#{three}#STEP#{four}")
    by_all = Key("ALL#{four}#{three}", "X#{two}#{one}", index="GSI1")
    one: str
    two: str
    three: str
    four: str


shared = Table("Shared", tenant="tenant_id", indexes=[Index("GSI1")])


class Cat(Entity, table=shared):
    """Shares an index with Dog."""

    key = Key("TENANT#{tenant_id}", "CAT#{name}")
    by_owner = Key("TENANT#{tenant_id}#OWNER#{owner}", "PET#{name}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    name: str
    owner: str


class Dog(Entity, table=shared):
    """Shares an index with Cat."""

    key = Key("TENANT#{tenant_id}", "DOG#{name}")
    by_owner = Key("TENANT#{tenant_id}#OWNER#{owner}", "PET#{name}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    name: str
    owner: str
    tricks: int = 0


def test_the_embedded_engine_is_the_trust_problem(opening: Opening) -> None:
    """The embedded engine is the trust problem: order, BETWEEN, continuation keys, transactions."""
    store = opening(events)
    for seq in (30, 4, 100, 21):
        store.put(Event(seq=seq, name="n"))
    query = Event.key.query(log="l")
    assert [each.seq for each in store.all(query)] == [4, 21, 30, 100]
    assert [each.seq for each in store.all(query.between(seq=(5, 30)))] == [21, 30]
    page = store.page(query, limit=3)
    assert page.cursor is not None
    assert [each.seq for each in store.page(query, cursor=page.cursor)] == [100]
    with store.transaction() as tx:
        tx.delete(Event, log="l", seq=4)
    assert store.count(query) == 3


def test_two_records_one_key_values_containing_the_delimiter(opening: Opening) -> None:
    """Two records, one key: values containing the delimiter."""
    store = opening(pairs)
    odd = ["a", "a#USER#b", "b#USER#c", "a#", "#a", "%23", "%", "$", "", "a#task_b"]
    made = [Pair(one=one, two=two, three=two, four=one) for one, two in itertools.product(odd, odd)]
    for pair in made:
        store.create(pair)
    raw = opening.raw(pairs)
    assert len(raw) == len(made)
    assert len({(item["GSI1PK"]["S"], item["GSI1SK"]["S"]) for item in raw}) == len(made)
    for pair in made:
        assert store.get(Pair, **pair.__dict__) == pair


def test_lower_cased_keys_merge_or_corrupt_ids(db: Store) -> None:
    """Lower-cased keys merge or corrupt ids."""
    names = ["aGVsbG8_-Q", "agvsbg8_-q", "AGVSBG8_-Q", "É", "é", "e\u0301", "ß", "SS"]
    for name in names:
        db.create(Reader(reader_id=name, name=name))
    for name in names:
        found = db.require(Reader, reader_id=name)
        assert (found.reader_id, found.name) == (name, name)


def test_user_1_matches_user_10(db: Store) -> None:
    """`USER#1` matches `USER#10`."""
    for survey in ("1", "10", "1a"):
        db.put(Section(survey_id=survey, section_id="x", name="n", order=1))
    assert [each.survey_id for each in db.all(Section.key.query(survey_id="1"))] == ["1"]
    db.put(Book(book_id="1", title="Ab", author="A"))
    db.put(Book(book_id="2", title="Abc", author="A"))
    assert [each.title for each in db.all(Book.by_title.query(title="Ab"))] == ["Ab"]
    free = Book.by_title.query().starts_with(title="Ab")
    assert [each.title for each in db.all(free)] == ["Ab", "Abc"], "a free prefix has a name of its own"


def test_lexicographic_numbers(db: Store) -> None:
    """Lexicographic numbers."""
    for order in (2, 10, 1, 100):
        db.put(Section(survey_id="s", section_id=str(order), name="n", order=order))
    assert [each.order for each in db.all(Section.of_survey("s"))] == [1, 2, 10, 100]
    for number in (-10, -9, 0, 3, -100, 20):
        db.put(Book(book_id=str(number), title="t", author="a", shelf="s", position=number))
    assert [each.position for each in db.all(Book.on_shelf("s"))] == [-100, -10, -9, 0, 3, 20]
    with pytest.raises(DeclarationError, match=r"Bad\.key.*number"):

        class Bad(Entity, table=Table("Bad")):
            key = Key("A#{name}", "N#{number}")
            name: str
            number: int


def test_stale_gsi_key_after_partial_update(db: Store, opening: Opening) -> None:
    """Stale GSI key after partial update."""
    db.put(Book(book_id="b", title="t", author="A", year=1999, shelf="s", position=1))
    for changes in (
        {"author": "B"},
        {"year": 2001},
        {"title": "u"},
        {"shelf": "q"},
        {"position": -1, "author": "C", "title": "v"},
        {"shelf": None},
    ):
        db.update(Book, book_id="b", set=changes)
        assert stale_keys(opening, library) == [], changes
    beside = opening.beside(surveyor, library).tenant("acme")
    opening.spy.once(UpdateItem, lambda: beside.update(Book, book_id="b", set={"year": 1777}))
    db.update(Book, book_id="b", set={"author": "D"})
    assert stale_keys(opening, library) == []


def test_none_or_empty_in_gsi_key(db: Store, opening: Opening) -> None:
    """None/empty in GSI key."""
    db.put(Book(book_id="b", title="t", author="", shelf="", position=0))
    assert {"GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK"} <= set(opening.only(Book)), "empty text is a value"
    assert [each.author for each in db.all(Book.of_author(""))] == [""]
    db.update(Book, book_id="b", set={"shelf": None})
    assert {"GSI2PK", "GSI2SK"} & set(opening.only(Book)) == set(), "both go together"
    db.put(Book(book_id="b", title="t", author="", position=3))
    assert {"GSI2PK", "GSI2SK"} & set(opening.only(Book)) == set()


def test_wrong_class_from_an_overloaded_index(opening: Opening) -> None:
    """Wrong class from an overloaded index."""
    db = opening(shared).tenant("acme")
    db.put(Cat(name="tom", owner="ann"))
    db.put(Dog(name="rex", owner="ann", tricks=2))
    assert [type(each) for each in db.all(Cat.by_owner.query(owner="ann"))] == [Cat]
    assert [type(each) for each in db.page(Dog.by_owner.query(owner="ann"), limit=5)] == [Dog]
    assert (db.count(Cat.by_owner.query(owner="ann")), db.count(Dog.by_owner.query(owner="ann"))) == (1, 1)
    item = next(each for each in opening.raw(shared) if each["name"] == {"S": "tom"})
    opening.plant(shared, {**item, "_type": {"S": "Bird"}})
    with pytest.raises(UnknownEntity, match="'Bird'"):
        list(db.all(Dog.by_owner.query(owner="ann")))


def test_limit_is_not_page_size_under_filters_cursor_from_wrong_item(db: Store) -> None:
    """Limit ≠ page size under filters; cursor from wrong item."""
    for number in range(30):
        db.put(Book(book_id=f"{number:02d}", title="t", author="A", stars=number % 3))
    query, found, cursor = Book.of_author("A").where(lambda b: b.stars == 0), [], None
    while True:
        page = db.page(query, limit=4, cursor=cursor)
        found.append([int(each.book_id) for each in page])
        cursor = page.cursor
        if cursor is None:
            break
    assert found[:3] == [[0, 3, 6, 9], [12, 15, 18, 21], [24, 27]]
    assert sum(found, []) == list(range(0, 30, 3))  # noqa: RUF017 - a handful


@pytest.mark.parametrize("end", [None, {}])
def test_empty_page_read_as_the_end_or_empty_key_read_as_more(
    db: Store, opening: Opening, end: dict[str, Any] | None
) -> None:
    """Empty page read as the end (or `{}` key read as "more")."""
    book = db.put(Book(book_id="b", title="t", author="A"))
    replies: list[Reply] = []

    def fake(request: Any) -> Any:
        if not isinstance(request, requests.Query):
            return None
        return replies.pop(0)

    key = {name: opening.only(Book)[name] for name in ("PK", "SK", "GSI1PK", "GSI1SK")}
    reads: list[tuple[Any, Any]] = [
        (lambda: [each.book_id for each in db.all(Book.of_author("A"))], ["b"]),
        (lambda: [each.book_id for each in db.page(Book.of_author("A"), limit=2)], ["b"]),
        (lambda: db.first(Book.of_author("A")), book),
        (lambda: db.count(Book.of_author("A")), 1),
    ]
    whole = opening.only(Book)
    for read, expected in reads:
        opening.spy.before = None
        replies[:] = [
            Reply(items=[], count=0, scanned=1, last_key=key),
            Reply(items=[], count=0, scanned=1, last_key=key),
            Reply(items=[whole], count=1, scanned=1, last_key=end),
        ]
        opening.spy.before = fake
        assert read() == expected
        assert replies == []
    opening.spy.before = None


def test_cursor_tampering_or_wrong_query(base: Database) -> None:
    """Cursor tampering / wrong query."""
    db = base.tenant("acme")
    for number in range(3):
        db.put(Book(book_id=str(number), title="t", author="A"))
    cursor = db.page(Book.of_author("A"), limit=1).cursor
    assert cursor is not None
    wrong: list[tuple[Store, Query[Book], str]] = [
        (db, Book.of_author("B"), cursor),
        (db, Book.of_author("A").descending(), cursor),
        (db, Book.of_author("A").where(lambda b: b.stars == 0), cursor),
        (db, Book.by_year.query(), cursor),
        (base.tenant("other"), Book.of_author("A"), cursor),
        (db, Book.of_author("A"), cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BB")),
    ]
    for store, query, forged in wrong:
        with pytest.raises(CursorRejected):
            store.page(query, limit=1, cursor=forged)


def test_unprocessed_keys_dropped(db: Store, opening: Opening) -> None:
    """Unprocessed keys dropped."""
    db.put(Photo(survey_id="s", photo_id="1"))
    stubborn = 2

    def throttled(request: Any) -> Any:
        nonlocal stubborn
        if isinstance(request, BatchGetItem) and stubborn:
            stubborn -= 1
            part = request.tables[0]
            return BatchGot(responses={}, unprocessed={part.table: {"Keys": list(part.keys)}})
        if isinstance(request, BatchWriteItem) and stubborn:
            stubborn -= 1
            table, writes = request.tables[0]
            return BatchWrote(unprocessed={table: [{"PutRequest": {"Item": each.item}} for each in writes]})  # type: ignore[union-attr]
        return None

    opening.spy.before = throttled
    assert db.get_many(Photo, [{"survey_id": "s", "photo_id": "1"}])[0] is not None
    stubborn = 2
    with db.batch() as batch:
        batch.put(Photo(survey_id="s", photo_id="2"))
    assert db.get(Photo, survey_id="s", photo_id="2") is not None
    stubborn = 10_000
    with pytest.raises(BatchIncomplete) as failed:
        db.get_many(Photo, [{"survey_id": "s", "photo_id": "1"}])
    assert len(failed.value.leftovers) == 1
    with pytest.raises(BatchIncomplete) as unwritten, db.batch() as batch:
        batch.put(Photo(survey_id="s", photo_id="3"))
    assert [each.photo_id for each in unwritten.value.leftovers] == ["3"]


def test_batch_commits_although_the_block_raised(db: Store, opening: Opening) -> None:
    """Batch commits although the block raised."""
    with pytest.raises(ZeroDivisionError), db.batch() as batch:  # noqa: PT012 - the block is the test
        for number in range(60):
            batch.put(Photo(survey_id="s", photo_id=str(number)))
        1 / 0  # noqa: B018 - it raises
    assert opening.raw(surveyor) == []


def test_transaction_split_in_chunks(db: Store, opening: Opening) -> None:
    """ "Transaction" split in chunks."""
    with pytest.raises(DataError, match="101"), db.transaction() as tx:  # noqa: PT012 - the end raises
        for number in range(101):
            tx.put(Photo(survey_id="s", photo_id=str(number)))
    assert opening.raw(surveyor) == []


def test_failed_condition_swallowed(db: Store) -> None:
    """Failed condition swallowed."""
    reader = db.put(Reader(reader_id="r", size=1))
    writes: list[Callable[[], Any]] = [
        lambda: db.put(reader, where=lambda r: r.size > 1),
        lambda: db.create(reader),
        lambda: db.update(reader, set={"name": "n"}, where=lambda r: r.size > 1),
        lambda: db.delete(reader, where=lambda r: r.size > 1),
    ]
    for write in writes:
        with pytest.raises(ConditionFailed) as failed:
            write()
        assert failed.value.found == reader, "the current item comes with it"
    with pytest.raises(NotFound):
        db.update(Reader, reader_id="nobody", set={"name": "n"})


def test_stale_read_after_write(db: Store, opening: Opening) -> None:
    """Stale read after write."""
    db.put(Reader(reader_id="r", size=1))
    opening.spy.sent.clear()
    assert db.update(Reader, reader_id="r", add={"size": 1}).size == 2
    (sent,) = opening.spy.sent
    assert isinstance(sent, UpdateItem)
    assert sent.returns == "ALL_NEW", "what comes back is what was written, not a second read"
    db.put(Book(book_id="b", title="t", author="a"))
    db.update(Book, book_id="b", set={"author": "z"})
    assert opening.spy.of(requests.GetItem)[-1].consistent, (
        "and what a key is derived from is read consistently"
    )


def test_local_version_bumped_by_a_failed_save_update_bypasses_the_lock(db: Store) -> None:
    """Local version bumped by a failed save; update() bypasses the lock."""
    mine = db.put(Loan(loan_id="l", reader="r"))
    db.update(mine, set={"note": "theirs"})
    before = mine.model_dump()
    for _ in range(2):
        with pytest.raises(VersionConflict):
            db.put(mine)
        with pytest.raises(VersionConflict):
            db.update(mine, set={"note": "mine"})
        with pytest.raises(VersionConflict):
            db.delete(mine)
        assert mine.model_dump() == before
    with pytest.raises(DeclarationError, match="needs version="):
        db.update(Loan, loan_id="l", set={"note": "mine"})
    assert db.require(Loan, loan_id="l").note == "theirs"


def test_transaction_reasons_in_another_order(db: Store) -> None:
    """Transaction reasons in another order."""
    db.put(Reader(reader_id="r"))
    db.put(Photo(survey_id="s", photo_id="p"))
    with pytest.raises(TransactionFailed) as failed, db.transaction() as tx:  # noqa: PT012 - the end raises
        tx.delete(Book, book_id="fine")
        tx.check(Survey, survey_id="absent")
        tx.create(Reader(reader_id="r"))
        tx.put(Reader(reader_id="fine"))
        tx.create(Photo(survey_id="s", photo_id="p"))
    failures = failed.value.failures
    assert [(each.position, type(each.error)) for each in failures] == [
        (1, NotFound),
        (2, AlreadyExists),
        (4, AlreadyExists),
    ]
    assert [" ".join(str(each).split()[:3]) for each in failures] == [
        "#2 Survey not",
        "#3 Create Reader",
        "#5 Create Photo",
    ]


def test_missing_item_is_a_key_error(db: Store) -> None:
    """Missing item → KeyError."""
    assert db.get(Reader, reader_id="nobody") is None
    assert db.get_many(Reader, [{"reader_id": "nobody"}, {"reader_id": "none"}]) == [None, None]
    assert db.delete(Reader, reader_id="nobody") is None
    assert db.first(Book.of_author("nobody")) is None
    assert db.collection(Survey, Section, survey_id="none") == (None, [])


def test_expression_injection_or_mini_language(db: Store) -> None:
    """Expression injection / mini-language."""
    evil = ["${status}", "#n0", ":v0", "status", "attribute_exists(PK)", "a = b OR 1 = 1", "{status}", "@{x}"]
    db.put(Reader(reader_id="r", name="n", status="secret"))
    for text in evil:
        assert db.update(Reader, reader_id="r", set={"name": text}).name == text
        assert (
            db.update(Reader, reader_id="r", set={"homes": {text: Address(city=text)}}).homes[text].city
            == text
        )
        db.put(Reader(reader_id=text, name=text), where=lambda r: r.name != "x")
        assert db.require(Reader, reader_id=text).name == text
        with pytest.raises(ConditionFailed):
            db.delete(Reader, reader_id="r", where=lambda r: r.status == text)  # noqa: B023 - recorded at once


def test_value_dedup_by_string_form(db: Store) -> None:
    """Value dedup by string form."""
    db.put(Reader(reader_id="r", name="1", size=1, status="true", ratio=1.0, photo=b"1"))
    found = db.update(
        Reader,
        reader_id="r",
        set={"name": "2", "size": 2, "balance": Decimal(2), "photo": b"2", "numbers": {2}, "phones": ["2"]},
        where=lambda r: (r.name == "1") & (r.size == 1) & (r.photo == b"1") & (r.status == "true"),
    )
    assert (found.name, found.size, found.photo, found.numbers, found.phones) == ("2", 2, b"2", {2}, ["2"])
    assert found.balance == Decimal(2)


def test_float_or_decimal(db: Store, opening: Opening) -> None:
    """float / Decimal."""
    exact = Decimal("12345678901234567890.123456789012345678")
    db.put(Reader(reader_id="r", balance=exact, ratio=0.1))
    found = db.require(Reader, reader_id="r")
    assert (found.balance, found.ratio) == (exact, 0.1)
    assert opening.only(Reader)["ratio"] == {"N": "0.1"}
    for value in (Decimal("NaN"), Decimal("Infinity"), Decimal("1." + "1" * 38)):
        with pytest.raises(DataError, match=r"Reader\.balance"):
            db.put(Reader.model_construct(**{**found.__dict__, "balance": value}))
    with pytest.raises(DataError, match=r"Reader\.ratio"):
        db.put(Reader(reader_id="r", ratio=float("nan")))


def test_reserved_words(opening: Opening) -> None:
    """Reserved words."""
    words = Table("Words")

    class Word(Entity, table=words):
        key = Key("WORD#{name}", "WORD")
        name: str
        status: str = "a"
        size: int = 1
        value: dict[str, int] = {}  # noqa: RUF012 - Pydantic copies it
        order: int = 1
        user: str = "u"

    store = opening(words)
    store.put(Word(name="n", value={"a-b": 1, "a.b": 2, "a b": 3, "ab": 4}))
    after = store.update(
        Word,
        name="n",
        set={"status": "b", "user": "v", "value.a-b": 10, "value.ab": 40},
        add={"size": 1, "order": 2},
        where=lambda w: (w.status == "a") & (w.value["a-b"] == 1) & (w.value["a b"] == 3) & (w.order == 1),
    )
    assert (after.status, after.size, after.order, after.user) == ("b", 2, 3, "v")
    assert after.value == {"a-b": 10, "a.b": 2, "a b": 3, "ab": 40}
    query = Word.key.query(name="n")
    assert [
        each.size for each in store.all(query, where=lambda w: (w.size == 2) & (w.value["a b"] == 3))
    ] == [2]

    class View(BaseModel):
        status: str
        size: int

    assert store.page(query.select(View)).items == [View(status="b", size=2)]


def test_400_kb_found_out_at_the_server(db: Store, opening: Opening) -> None:
    """400 KB found out at the server."""
    heavy = Reader(reader_id="r", name="n" * 200_000, photo=b"p" * 300_000)
    opening.spy.sent.clear()
    with pytest.raises(ItemTooLarge, match=r"photo \(\d+,\d+ bytes\), name \(\d+,\d+ bytes\)"):
        db.put(heavy)
    with pytest.raises(ItemTooLarge), db.transaction() as tx:
        tx.put(heavy)
    with pytest.raises(ItemTooLarge), db.batch() as batch:
        batch.put(heavy)
    assert opening.spy.sent == []
    fits = Reader(reader_id="r", name="n" * 200_000, photo=b"p" * 200_000)
    assert db.put(fits).photo == fits.photo


def test_naive_datetimes_taken_as_utc(db: Store, opening: Opening) -> None:
    """Naive datetimes taken as UTC."""
    opening.spy.sent.clear()
    naive = datetime(2030, 1, 1)
    with pytest.raises(DataError, match=r"Reader\.joined"):
        db.put(Reader.model_construct(**{**Reader(reader_id="r").__dict__, "joined": naive}))
    with pytest.raises(DataError, match="due"):
        db.put(Book(book_id="b", title="t", author="a", due=naive))
    with pytest.raises(DataError, match="due"):
        list(db.all(Book.by_due.query().since(due=naive)))
    assert opening.spy.of(PutItem) == []
    db.put(Reader(reader_id="r", joined=naive.replace(tzinfo=UTC)))
    assert opening.only(Reader)["joined"] == {"S": "2030-01-01T00:00:00.000000Z"}


def test_empty_set_null_instead_of_absent(db: Store, opening: Opening) -> None:
    """Empty set, NULL instead of absent."""
    db.put(Book(book_id="b", title="t", author="a", tags=set(), shelf=None))
    assert {"tags", "shelf"} & set(opening.only(Book)) == set()
    assert db.update(Book, book_id="b", add={"tags": {"x"}}).tags == {"x"}
    db.update(Book, book_id="b", delete={"tags": {"x"}})
    assert db.update(Book, book_id="b", add={"tags": {"y"}}).tags == {"y"}
    db.update(Book, book_id="b", set={"tags": set(), "shelf": None})
    assert {"tags", "shelf"} & set(opening.only(Book)) == set()


def test_update_under_a_missing_parent_map(db: Store) -> None:
    """Update under a missing parent map."""
    db.put(Reader(reader_id="r"))
    with pytest.raises(DataError, match=r"Reader\.address has no stored value"):
        db.update(Reader, reader_id="r", set={"address.city": "Rome"})
    assert db.require(Reader, reader_id="r").address is None


def test_save_wipes_attributes_the_model_does_not_know(db: Store, opening: Opening) -> None:
    """save() wipes attributes the model does not know."""
    db.put(Reader(reader_id="r"))
    opening.plant(library, {**opening.only(Reader), "future": {"L": [{"N": "1"}]}})
    db.update(Reader, reader_id="r", set={"name": "n"})
    read = db.require(Reader, reader_id="r")
    db.put(read)
    with db.transaction() as tx:
        tx.put(read)
    with db.batch() as batch:
        batch.put(read)
    assert opening.only(Reader)["future"] == {"L": [{"N": "1"}]}


def test_tenant_as_ambient_bypassable_context(base: Database, opening: Opening) -> None:
    """Tenant as ambient, bypassable context."""
    one, two = base.tenant("TENANT1"), base.tenant("TENANT2")
    theirs = two.put(Survey(survey_id="s", title="theirs"))
    opening.spy.sent.clear()
    with pytest.raises(TenantViolation):
        one.get(Survey, tenant_id="TENANT2", survey_id="s")
    with pytest.raises(TenantViolation):
        one.put(theirs)
    with pytest.raises(TenantViolation):
        one.delete(Survey, tenant_id="TENANT2", survey_id="s", version=ANY)
    assert opening.spy.sent == []
    assert one.get(Survey, survey_id="s") is None
    assert two.get(Survey, survey_id="s") == theirs, "a scope does not leak into another"
    assert len(opening.spy.of(TransactWriteItems)) == 0
