"""Queries: exact ranges, filters, views, counts, pages that fill, and rows from partial indexes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from solotable import Database, Query, Store, between, one_of
from solotable._protocol import requests
from solotable._protocol.requests import BatchGetItem
from solotable.errors import DataError, DeclarationError, UnknownEntity

from .models import (
    Article,
    Book,
    Event,
    Loan,
    Notice,
    Photo,
    Score,
    Section,
    Survey,
    adopted,
    board,
    events,
    library,
)
from .opening import Opening


class Title(BaseModel):
    """A view of a book."""

    title: str
    stars: int


class Wrong(BaseModel):
    """A view of nothing."""

    nope: int


class Line(BaseModel):
    """A view that an index does not hold."""

    book_id: str
    notes: str


class CamelTitle(BaseModel):
    """A view with aliases."""

    model_config = ConfigDict(alias_generator=to_camel)
    book_id: str
    title: Annotated[str, Field(validation_alias=AliasChoices("Name", "name"))]


class NamedTitle(BaseModel):
    """A view whose aliases are for output only; one of them is the name of another field."""

    model_config = ConfigDict(validate_by_alias=False, validate_by_name=True)
    title: Annotated[str, Field(alias="author")]
    author: Annotated[str, Field(alias="title")]


def _book(book_id: str, **changes: object) -> Book:
    return Book.model_validate({"book_id": book_id, "title": "T", "author": "A", **changes})


def _fill(db: Store, count: int, **changes: object) -> None:
    with db.batch() as batch:
        for number in range(count):
            batch.put(_book(f"{number:03d}", stars=number % 5, **changes))


def test_a_prefix_ends_at_a_segment(db: Store) -> None:
    for survey_id in ("1", "10", "1#SECTION#x", "1%", "1$", "1 "):
        db.put(Survey(survey_id=survey_id, title="t"))
        db.put(Section(survey_id=survey_id, section_id="s", name="n", order=1))
    found = list(db.all(Section.key.query(survey_id="1")))
    assert [each.survey_id for each in found] == ["1"]
    survey, sections = db.collection(Survey, Section, survey_id="1")
    assert survey is not None
    assert (survey.survey_id, [each.survey_id for each in sections]) == ("1", ["1"])


def test_rows_come_in_the_order_of_the_key(db: Store) -> None:
    for order in (10, 2, 1, 999_999, 0):
        db.put(Section(survey_id="s", section_id=str(order), name="n", order=order))
    assert [each.order for each in db.all(Section.of_survey("s"))] == [0, 1, 2, 10, 999_999]
    assert [each.order for each in db.all(Section.of_survey("s").descending())] == [999_999, 10, 2, 1, 0]
    first = db.first(Section.of_survey("s").descending())
    assert first is not None
    assert first.order == 999_999
    assert db.first(Section.of_survey("none")) is None


NAMES = ["", "a", "a#b", "a$", "a%", "aa", "ab", "b", "B", "é", "\U0001f600", "~", "a\x00"]
NUMBERS = [
    Decimal(text) for text in ("-1000.5", "-3", "-2.999", "-0.001", "0", "0.001", "1", "9", "10", "999")
]
TIMES = [
    datetime(2030, 1, 1, tzinfo=UTC) + timedelta(microseconds=step) for step in (0, 1, 2, 999_999, 10**6)
]


@pytest.fixture
def log(opening: Opening) -> Database:
    """A log with a value of each kind at every sequence number."""
    store = opening(events)
    with store.batch() as batch:
        for seq, name in enumerate(NAMES):
            batch.put(
                Event(
                    seq=seq,
                    name=name,
                    number=NUMBERS[seq % len(NUMBERS)],
                    at=TIMES[seq] if seq < len(TIMES) else None,
                )
            )
    return store


def _keys(name: str) -> Any:
    return (lambda text: text.encode()) if name == "name" else (lambda value: value)


@pytest.mark.parametrize(
    ("part", "values"), [("name", NAMES), ("number", NUMBERS), ("at", TIMES)], ids=["text", "number", "time"]
)
def test_ranges_are_exact_at_their_edges(log: Database, part: str, values: list[Any]) -> None:
    """Every verb with every stored value as its edge, against a plain list."""
    by: Any = {"name": Event.by_name, "number": Event.by_number, "at": Event.by_time}[part]
    query: Query[Event] = by.query(log="l")
    order = _keys(part)
    rows = [row for row in log.all(Event.key.query(log="l")) if getattr(row, part) is not None]
    rows.sort(key=lambda row: (order(getattr(row, part)), row.seq))

    def model(*tests: tuple[Any, Any]) -> list[int]:
        values = [(order(getattr(row, part)), row.seq) for row in rows]
        return [seq for value, seq in values if all(test(value, edge) for test, edge in tests)]

    def found(asked: Query[Event]) -> list[int]:
        return [row.seq for row in log.all(asked)]

    assert found(query) == model()
    for value in values:
        edge = order(value)
        assert found(query.since(**{part: value})) == model((ge, edge)), value
        assert found(query.after(**{part: value})) == model((gt, edge)), value
        assert found(query.until(**{part: value})) == model((le, edge)), value
        assert found(query.before(**{part: value})) == model((lt, edge)), value
        for other in values[:: max(1, len(values) // 4)]:
            asked = query.between(**{part: (value, other)})
            assert found(asked) == model((ge, edge), (le, order(other))), (value, other)
        if part == "name":
            assert found(query.starts_with(name=value)) == model((bytes.startswith, edge)), value
    reverse = query.since(**{part: values[2]}).descending()
    assert found(reverse) == model((ge, order(values[2])))[::-1]


def test_a_bad_range_is_refused(db: Store, opening: Opening) -> None:
    query = Book.of_author("A")
    opening.spy.sent.clear()
    with pytest.raises(DataError, match="already has a range"):
        query.since(year=1).until(year=2)
    with pytest.raises(DataError, match="needs a part of the sort key; 'author' is not one"):
        query.since(author="x")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match="two values"):
        query.between(year=(1, 2, 3))  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(DataError, match="one part"):
        query.since(year=1, book_id="x")
    with pytest.raises(DataError, match=r"first part that is not given is 'year'"):
        list(db.all(query.since(book_id="x")))
    with pytest.raises(DataError, match=r"Book\.by_author has no part 'stars'"):
        Book.by_author.query(author="A", stars=1)  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match="year"):
        list(db.all(query.since(year="x")))  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(DeclarationError, match="consistent"):
        query.consistent()
    with pytest.raises(DataError, match=r"page\(\) takes a Query .*, got the class Book"):
        db.page(Book)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(DataError, match="limit= must be at least 1, got 0"):
        db.page(query, limit=0)
    assert opening.spy.sent == []


def test_an_empty_range_sends_no_request(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    assert list(db.all(Book.of_author("A").between(year=(3, 2)))) == []
    assert db.count(Book.of_author("A").between(year=(3, 2))) == 0
    assert db.page(Book.of_author("A").between(year=(3, 2))).items == []
    assert opening.spy.sent == []


def test_where_select_and_count(db: Store) -> None:
    for number in range(6):
        db.put(_book(str(number), title=f"T{number}", stars=number, year=2000 + number))
    query = Book.of_author("A")
    assert [each.stars for each in db.all(query, where=lambda b: b.stars > 3)] == [4, 5]
    both = query.where(lambda b: b.stars > 1).where(lambda b: b.title != "T3")
    assert [each.stars for each in db.all(both)] == [2, 4, 5]
    assert (db.count(query), db.count(both), db.count(both, where=lambda b: b.stars == 4)) == (6, 3, 1)
    rows = db.page(both.select(Title)).items
    assert rows == [Title(title=f"T{n}", stars=n) for n in (2, 4, 5)]
    with pytest.raises(DeclarationError, match="no field 'nope'"):
        query.select(Wrong)


def test_a_view_may_have_aliases(db: Store) -> None:
    db.put(_book("1", title="T1"))
    query = Book.of_author("A")
    (row,) = db.page(query.select(CamelTitle)).items
    assert (row.book_id, row.title) == ("1", "T1")
    (named,) = db.page(query.select(NamedTitle)).items
    assert (named.title, named.author) == ("T1", "A")


def test_a_page_fills_to_its_limit_under_a_filter(db: Store, opening: Opening) -> None:
    _fill(db, 60)
    page = db.page(Book.of_author("A"), limit=5, where=lambda b: b.stars == 4)
    assert [each.book_id for each in page] == ["004", "009", "014", "019", "024"]
    assert page.cursor is not None
    assert page.scanned >= 25
    rest = db.page(Book.of_author("A"), limit=50, where=lambda b: b.stars == 4, cursor=page.cursor)
    assert [each.book_id for each in rest] == ["029", "034", "039", "044", "049", "054", "059"]
    assert rest.cursor is None


def test_a_page_gives_up_at_its_work_and_goes_on_from_there(db: Store) -> None:
    _fill(db, 60)
    query, found, cursor, calls = Book.of_author("A"), [], None, 0
    while True:
        page = db.page(query, limit=5, where=lambda b: b.book_id > "057", work=20, cursor=cursor)
        assert page.scanned <= 20
        found += [each.book_id for each in page]
        cursor, calls = page.cursor, calls + 1
        if cursor is None:
            break
    assert found == ["058", "059"]
    assert 3 <= calls <= 5


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 7, 30])
@pytest.mark.parametrize("kind", ["plain", "filter", "keys only", "include", "view"])
def test_pages_are_the_list_exactly_once(db: Store, descending: bool, limit: int, kind: str) -> None:
    _fill(db, 23)
    queries: dict[str, Any] = {
        "plain": Book.of_author("A"),
        "filter": Book.of_author("A").where(lambda b: b.stars != 2),
        "keys only": Book.by_year.query(year=2000),
        "include": Book.by_title.query(title="T").where(lambda b: b.stars < 3),
        "view": Book.of_author("A").select(Line),
    }
    query = queries[kind].descending() if descending else queries[kind]
    whole = list(db.all(query))
    assert len(whole) == {"filter": 18, "include": 15}.get(kind, 23)
    assert [row.book_id for row in whole] == sorted((row.book_id for row in whole), reverse=descending)
    found: list[Any] = []
    cursor = None
    for _ in range(40):
        page = db.page(query, limit=limit, cursor=cursor)
        assert len(page) <= limit
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
        assert len(page) == limit, "only the last page is short"
    assert found == whole


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_pages_over_rows_that_only_the_store_can_drop(db: Store, opening: Opening, limit: int) -> None:
    """Expired rows of an index of keys, other entities in the range: a page still ends at its last row."""
    for number in range(20):
        lives = number % 3 == 0
        db.put(Notice(notice_id=f"{number:02d}", expires_at=None if lives else opening.clock.at(100)))
    for number in range(8):
        db.put(Survey(survey_id=str(number), title="t"))
        for order in range(3):
            db.put(Section(survey_id=str(number), section_id=str(order), name="n", order=order))
    opening.clock.seconds += 100
    expected: list[tuple[Query[Any], list[str]]] = [
        (Notice.by_kind.query(kind="note"), [f"{number:02d}" for number in range(0, 20, 3)]),
        (Survey.key.query(), [str(number) for number in range(8)]),
    ]
    for query, names in expected:
        for asked, wanted in ((query, names), (query.descending(), names[::-1])):
            found: list[str] = []
            cursor = None
            while True:
                page = db.page(asked, limit=limit, cursor=cursor)
                assert len(page) <= limit
                found += [row.notice_id if isinstance(row, Notice) else row.survey_id for row in page]
                cursor = page.cursor
                if cursor is None:
                    break
            assert found == wanted


def test_pages_of_a_megabyte_are_read_through(opening: Opening) -> None:
    store = opening(events)
    with store.batch() as batch:
        for seq in range(12):
            batch.put(Event(seq=seq, name="n", text="x" * 200_000))
    opening.spy.sent.clear()
    assert [each.seq for each in store.all(Event.key.query(log="l"))] == list(range(12))
    assert len(opening.spy.of(requests.Query)) >= 2
    opening.spy.sent.clear()
    assert next(iter(store.all(Event.key.query(log="l")))).seq == 0
    assert len(opening.spy.of(requests.Query)) == 1, "pages are read as they are needed"
    assert store.count(Event.key.query(log="l")) == 12
    assert [each.seq for each in store.page(Event.key.query(log="l"), limit=12)] == list(range(12))
    last = store.page(Event.key.query(log="l"), limit=1, where=lambda e: e.seq == 11)
    assert [each.seq for each in last] == [11]


def test_keys_only_rows_are_fetched_whole(db: Store, opening: Opening) -> None:
    _fill(db, 3, notes="whole")
    opening.spy.sent.clear()
    rows = list(db.all(Book.by_year.query(year=2000)))
    assert [row.notes for row in rows] == ["whole"] * 3
    assert [type(each) for each in opening.spy.sent] == [requests.Query, BatchGetItem]
    assert db.count(Book.by_year.query()) == 3
    with pytest.raises(DeclarationError, match=r"index 'GSI3' does not project 'stars'"):
        db.page(Book.by_year.query(), where=lambda b: b.stars > 1)


def test_an_index_that_holds_all_that_is_asked_is_not_hydrated(db: Store, opening: Opening) -> None:
    _fill(db, 3, notes="whole")
    opening.spy.sent.clear()
    query = Book.by_title.query(title="T")
    assert [row.stars for row in db.all(query.select(Title))] == [0, 1, 2]
    assert [type(each) for each in opening.spy.sent] == [requests.Query] * 3  # the index has three shards
    assert [row.notes for row in db.all(query)] == ["whole"] * 3
    assert len(opening.spy.of(BatchGetItem)) == 1
    assert db.count(query, where=lambda b: b.stars > 0) == 2
    assert [row.notes for row in db.all(query.select(Line))] == ["whole"] * 3


def test_other_entities_in_the_range_are_left_out(db: Store) -> None:
    db.put(_book("a"))
    db.put(Loan(loan_id="a", reader="A"))
    db.put(Notice(notice_id="a", kind="A"))
    whole: Query[Book] = Book.key.query()
    assert [type(each) for each in db.all(whole)] == [Book]
    survey = Survey.key.query()
    db.put(Survey(survey_id="s", title="t"))
    db.put(Section(survey_id="s", section_id="x", name="n", order=1))
    assert [type(each) for each in db.all(survey)] == [Survey]
    assert db.count(survey) == 1
    assert [type(each) for each in db.page(survey, limit=5)] == [Survey]


def test_an_unknown_tag_is_an_error(db: Store, opening: Opening) -> None:
    db.put(_book("a"))
    opening.plant(library, {**opening.only(Book), "_type": {"S": "Ghost"}})
    reads: list[Callable[[], object]] = [
        lambda: db.get(Book, book_id="a"),
        lambda: db.get_many(Book, [{"book_id": "a"}]),
        lambda: list(db.all(Book.of_author("A"))),
        lambda: db.page(Book.of_author("A")),
    ]
    for read in reads:
        with pytest.raises(UnknownEntity, match=r"'Library' has the type tag 'Ghost'") as failed:
            read()
        assert failed.value.tag == "Ghost"


def test_a_stored_item_that_does_not_fit_is_named(db: Store, opening: Opening) -> None:
    db.put(_book("a"))
    opening.plant(library, {**opening.only(Book), "stars": {"S": "many"}})
    with pytest.raises(DataError, match=r"Book.*stars"):
        db.get(Book, book_id="a")


def test_collections_of_three(db: Store, opening: Opening) -> None:
    db.put(Survey(survey_id="s", title="t"))
    for number in (2, 1):
        db.put(Section(survey_id="s", section_id=str(number), name="n", order=number))
        db.put(Photo(survey_id="s", photo_id=str(number)))
    db.put(Photo(survey_id="s2", photo_id="other"))
    survey, sections, photos = db.collection(Survey, Section, Photo, survey_id="s")
    assert survey is not None
    assert ([each.section_id for each in sections], [each.photo_id for each in photos]) == (["1", "2"],) * 2
    nothing, none = db.collection(Survey, Section, survey_id="x")
    assert (nothing, none) == (None, [])
    with pytest.raises(DataError, match="more than 1 items"):
        db.collection(Survey, Section, survey_id="s", most=1)
    with pytest.raises(DataError, match="key part section"):
        db.collection(Survey, Section, survey_id="s", section="x")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DeclarationError, match="one table"):
        db.collection(Survey, Section.by_order, survey_id="s")
    with pytest.raises(DataError, match="one item"):
        db.collection(Section, Photo, survey_id="s")


def test_native_keys_of_several_attributes(opening: Opening) -> None:
    store = opening(board)
    for player, points in (("a", 5), ("b", 50), ("c", -7), ("d", 6)):
        store.put(Score(game="g", player=player, region="eu", points=points))
    store.put(Score(game="g", player="x", region="eu", season="s2", points=1))
    store.put(Score(game="g", player="nowhere"))
    query = Score.by_board.query(region="eu", season="s1")
    assert [each.player for each in store.all(query)] == ["c", "a", "d", "b"]
    assert [each.player for each in store.all(query.descending())] == ["b", "d", "a", "c"]
    assert [each.player for each in store.all(query.since(points=6))] == ["d", "b"]
    assert [each.player for each in store.all(query.after(points=6))] == ["b"]
    assert [each.player for each in store.all(query.between(points=(-7, 5)))] == ["c", "a"]
    assert list(store.all(query.between(points=(5, -7)))) == []
    five = Score.by_board.query(region="eu", season="s1", points=5)
    assert [each.player for each in store.all(five)] == ["a"]
    with pytest.raises(DeclarationError, match="key attribute 'player'"):
        list(store.all(query, where=lambda s: s.player == "a"))
    assert store.update(Score, game="g", player="a", add={"points": 100}).points == 105
    assert [each.player for each in store.all(query)] == ["c", "d", "b", "a"]
    assert store.update(Score, game="g", player="a", remove=["region"]).region is None
    page = store.page(query, limit=2)
    assert [each.player for each in page] == ["c", "d"]
    assert [each.player for each in store.page(query, limit=2, cursor=page.cursor)] == ["b"]
    with pytest.raises(DataError, match="season"):
        list(store.all(Score.by_board.query(region="eu")))  # type: ignore[call-arg]  # what the test is about


def test_a_table_that_was_there_before(opening: Opening) -> None:
    store = opening(adopted)
    store.put(Article(content_id="c#1", language="en", author="Ann", title="Hello"))
    item = opening.only(Article)
    assert item["content_id"] == {"S": "c#1"}, "a field that is the key attribute is not escaped"
    assert item["meta"] == {"S": "META#en"}
    assert (item["entity"], item["Title"]) == ({"S": "article"}, {"S": "Hello"})
    assert [each.title for each in store.all(Article.by_author.query(author="Ann"))] == ["Hello"]
    assert [each.language for each in store.all(Article.key.query(content_id="c#1"))] == ["en"]
    after = store.update(Article, content_id="c#1", language="en", set={"author": "Bob", "title": "Hi"})
    assert list(store.all(Article.by_author.query(author="Bob"))) == [after]
    assert store.delete(after) == after


def test_scan_is_the_admins_and_has_a_budget(base: Database) -> None:
    for tenant in ("a", "b"):
        for number in range(3):
            base.tenant(tenant).put(Photo(survey_id="s", photo_id=str(number)))
            base.tenant(tenant).put(Survey(survey_id=str(number), title="t"))
    admin = base.admin()
    found = list(admin.scan(Photo, budget=100))
    assert sorted((each.tenant_id, each.photo_id) for each in found) == [
        (tenant, str(number)) for tenant in "ab" for number in range(3)
    ]
    assert len(list(admin.scan(Photo, budget=100, segments=3))) == 6
    assert len(list(admin.scan(Photo, budget=100, where=lambda p: p.photo_id > "0"))) == 4
    with pytest.raises(DataError, match="budget"):
        list(admin.scan(Photo, budget=5))
    assert not hasattr(base.tenant("a"), "scan")


def test_an_explained_query_reads_as_the_request(db: Store) -> None:
    asked = Section.by_order.query(survey_id="s").since(order=2)
    assert repr(asked) == "<Query Section.by_order(survey_id='s').since(order=2)>"
    told = str(db.explain(asked))
    assert told.startswith("Query {\n")
    assert '"S": "TENANT#acme#SURVEY#s"' in told


UNTAKEN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an end before the beginning": (lambda book: between(book.year, 5, 1), "requires upper bound"),
    "a field and itself": (lambda book: book.year == book.year, "must be distinct"),
    "an order of sets": (lambda book: book.tags > {"a"}, "Incorrect operand type"),
    "too many comparisons": (
        lambda book: functools.reduce(operator.or_, [book.year == year for year in range(200)]),
        "too many operators",
    ),
    "too long": (
        lambda book: functools.reduce(
            operator.and_, [one_of(book.year, range(year, year + 100)) for year in range(0, 1000, 100)]
        ),
        "Expression size",
    ),
}


@pytest.mark.parametrize("way", UNTAKEN)
def test_a_condition_that_dynamodb_does_not_take_is_refused_everywhere(
    db: Store, opening: Opening, way: str
) -> None:
    written, told = UNTAKEN[way]
    with pytest.raises(DataError, match=f"DynamoDB rejects the condition on Book: .*{told}"):
        db.count(Book.key.query(), where=written)
    assert opening.spy.sent == []


def _years(book: Any, count: int = 150) -> Any:
    """Return a condition with 299 operators, which DynamoDB accepts alone."""
    return functools.reduce(operator.or_, [book.year == year for year in range(count)])


def _fewer_years(book: Any) -> Any:
    """Return a condition that leaves space for the terms of the store."""
    return _years(book, 145)


def _titles(survey: Any) -> Any:
    return functools.reduce(operator.or_, [survey.title == str(number) for number in range(150)])


def _check(db: Store) -> None:
    with db.transaction() as tx:
        tx.check(Book, book_id="b1", where=_years)


def _update(db: Store) -> None:
    with db.transaction() as tx:
        tx.update(Book, book_id="b1", set={"notes": "n"}, where=_years)


JOINED: dict[str, Callable[[Store], object]] = {
    "put": lambda db: db.put(db.require(Survey, survey_id="s1"), where=_titles),
    "update": lambda db: db.update(Book, book_id="b1", set={"notes": "n"}, where=_years),
    "delete": lambda db: db.delete(Book, book_id="b1", where=_years),
    "check in a transaction": _check,
    "update in a transaction": _update,
    "count": lambda db: db.count(Book.key.query(), where=_years),
    "two filters": lambda db: db.page(Book.key.query().where(_years), where=_years),
}


@pytest.mark.parametrize("verb", JOINED)
def test_a_condition_must_fit_with_the_terms_of_the_store(db: Store, opening: Opening, verb: str) -> None:
    db.create(Book(book_id="b1", title="T", author="A", year=1))
    db.create(Survey(survey_id="s1", title="1"))
    opening.spy.sent.clear()
    with pytest.raises(DataError, match=r"rejects the condition on \w+ with the terms .*too many operators"):
        JOINED[verb](db)
    assert [each for each in opening.spy.sent if not isinstance(each, requests.GetItem)] == []


def test_a_large_condition_that_fits_is_sent(db: Store) -> None:
    db.create(Book(book_id="b1", title="T", author="A", year=1))
    assert len(db.page(Book.key.query(), where=_years)) == 1
    db.put(Book(book_id="b1", title="T", author="B", year=1), where=_fewer_years)
    assert db.require(Book, book_id="b1").author == "B"
