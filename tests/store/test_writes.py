"""Writes: put, create, update and delete, their conditions, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from solotable import (
    ANY,
    TTL,
    Created,
    Database,
    Entity,
    Index,
    Key,
    Store,
    Table,
    Updated,
    Version,
    contains,
    exists,
    missing,
    one_of,
    size,
)
from solotable._protocol.requests import UpdateItem
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    ItemTooLarge,
    NotFound,
    TransactionFailed,
)

from .models import (
    Address,
    Book,
    Genre,
    Loan,
    Photo,
    Reader,
    Section,
    Single,
    Survey,
    library,
    singles,
    surveyor,
)
from .opening import Opening, stale_keys


def test_put_makes_and_replaces_and_returns_what_is_stored(db: Store) -> None:
    given = Reader(reader_id="r", name="Ann", size=3)
    stored = db.put(given)
    assert given.tenant_id == "", "the caller's object stays as it was"
    assert stored == Reader(tenant_id="acme", reader_id="r", name="Ann", size=3)
    assert db.get(Reader, reader_id="r") == stored
    db.put(Reader(reader_id="r", name="Bob"))
    assert db.require(Reader, reader_id="r") == Reader(tenant_id="acme", reader_id="r", name="Bob")


def test_what_could_not_be_read_back_is_not_stored(db: Store, opening: Opening) -> None:
    survey = Survey(survey_id="s1", title="Roof").model_copy(update={"title": ""})
    with pytest.raises(DataError, match=r"Survey\.title = '' does not fit its model: String should have"):
        db.put(survey)
    with pytest.raises(DataError, match="String should have"), db.transaction() as tx:
        tx.create(survey)
    assert opening.raw(surveyor) == []


def test_put_under_a_condition(db: Store) -> None:
    db.put(Reader(reader_id="r", size=3))
    with pytest.raises(ConditionFailed) as failed:
        db.put(Reader(reader_id="r", size=9), where=lambda r: r.size > 3)
    assert failed.value.found == Reader(tenant_id="acme", reader_id="r", size=3)
    assert "Reader reader_id='r'" in str(failed.value)
    assert "size" in str(failed.value)
    assert db.put(Reader(reader_id="r", size=9), where=lambda r: r.size == 3).size == 9


def test_create_refuses_what_is_there(db: Store) -> None:
    first = db.create(Reader(reader_id="r", name="Ann"))
    with pytest.raises(AlreadyExists) as failed:
        db.create(Reader(reader_id="r", name="Bob"))
    assert failed.value.found == first
    assert "Reader reader_id='r'" in str(failed.value)
    assert db.require(Reader, reader_id="r").name == "Ann"


def test_delete_returns_what_was_there(db: Store) -> None:
    stored = db.put(Reader(reader_id="r", name="Ann"))
    assert db.delete(Reader, reader_id="r") == stored
    assert db.delete(Reader, reader_id="r") is None
    assert db.delete(stored) is None


def test_delete_under_a_condition(db: Store) -> None:
    stored = db.put(Reader(reader_id="r", name="Ann"))
    with pytest.raises(ConditionFailed) as failed:
        db.delete(Reader, reader_id="r", where=lambda r: r.name == "Bob")
    assert failed.value.found == stored
    assert db.get(Reader, reader_id="r") == stored
    assert db.delete(stored, where=lambda r: r.name == "Ann") == stored


def test_require_and_update_of_nothing_name_what_is_missing(db: Store, opening: Opening) -> None:
    calls: list[Callable[[], object]] = [
        lambda: db.require(Section, survey_id="s1", section_id="x"),
        lambda: db.update(Section, survey_id="s1", section_id="x", set={"notes": "n"}),
        lambda: db.update(Section, survey_id="s1", section_id="x", set={"order": 2}),
    ]
    for call in calls:
        with pytest.raises(NotFound, match=r"Section not found: .*survey_id='s1', section_id='x'"):
            call()
    assert opening.raw(surveyor) == [], "an update never makes an item"


def test_update_changes_only_what_it_names(db: Store) -> None:
    before = db.put(Reader(reader_id="r", name="Ann", size=3, phones=["1"]))
    after = db.update(Reader, reader_id="r", set={"name": "Bob"}, add={"size": 2}, append={"phones": ["2"]})
    assert after == before.model_copy(update={"name": "Bob", "size": 5, "phones": ["1", "2"]})
    assert db.get(Reader, reader_id="r", consistent=True) == after
    assert before.name == "Ann"


def test_update_by_entity_and_under_a_condition(db: Store) -> None:
    stored = db.put(Reader(reader_id="r", name="Ann", size=3))
    assert db.update(stored, add={"size": -4}, where=lambda r: r.name == "Ann").size == -1
    with pytest.raises(ConditionFailed) as failed:
        db.update(stored, add={"size": 1}, where=lambda r: r.size >= 0)
    assert failed.value.found.size == -1
    with pytest.raises(DataError, match="not both"):
        db.update(stored, reader_id="q", set={"name": "x"})  # type: ignore[call-arg]  # what the test is about


@pytest.mark.parametrize(
    "where",
    [
        lambda r: (r.size > 1) & (r.name == "Ann"),
        lambda r: (r.size > 9) | r.name.startswith("A"),
        lambda r: ~(r.name == "Bob"),
        lambda r: contains(r.phones, "1") & contains(r.numbers, 7),
        lambda r: exists(r.address) & missing(r.joined),
        lambda r: one_of(r.status, ["new", "old"]) & (size(r.name) == 3),
        lambda r: (r.address.city == "Rome") & (r.address.floors[0] == 1) & (r.address.code == "00100"),
        lambda r: r.homes["sea"].city == "Ostia",
        lambda r: (r.joined == None) & (r.address != None),  # noqa: E711 - recorded, not judged
        lambda r: (r.genre == Genre.POETRY) & (r.balance == Decimal("1.10")) & (r.photo == b"\x00\xff"),
        lambda r: r.limit == None,  # noqa: E711 - kept as NULL, as its default is another
        lambda r: r.size > r.balance,
    ],
)
def test_conditions_of_every_kind(db: Store, where: Any) -> None:
    db.put(
        Reader(
            reader_id="r",
            name="Ann",
            size=3,
            phones=["1"],
            numbers={7, 8},
            address=Address(city="Rome", floors=[1, 2], code="00100"),
            homes={"sea": Address(city="Ostia")},
            genre=Genre.POETRY,
            balance=Decimal("1.1"),
            photo=b"\x00\xff",
            limit=None,
        )
    )
    assert db.update(Reader, reader_id="r", set={"status": "old"}, where=where).status == "old"
    with pytest.raises(ConditionFailed):
        db.update(Reader, reader_id="r", set={"status": "bad"}, where=lambda r: ~where(r))
    assert db.require(Reader, reader_id="r").status == "old"


def test_python_logic_in_a_condition_is_refused(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r"))
    opening.spy.sent.clear()
    wrong: list[Any] = [
        lambda r: r.name == "a" and r.size == 1,
        lambda r: not r.name,
        lambda r: "1" in r.phones,
        lambda r: r.name is None,
        lambda r: True,
        lambda r: r.nope == 1,
        lambda r: r.address.nope == 1,
        lambda r: 1 < r.size < 3,
    ]
    for where in wrong:
        with pytest.raises(DeclarationError):
            db.delete(Reader, reader_id="r", where=where)
    with pytest.raises(DataError, match=r"Reader\.size"):
        db.delete(Reader, reader_id="r", where=lambda r: r.size == "x")  # type: ignore[comparison-overlap]
    assert opening.spy.sent == []


def test_an_empty_update_is_refused(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r"))
    opening.spy.sent.clear()
    with pytest.raises(DataError, match=r"Reader has no changes.*set=") as caught:
        db.update(Reader, reader_id="r")
    assert caught.value.public_message == "The update has no changes."
    assert opening.spy.sent == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"set": {"name": "a"}, "remove": ["name"]}, r"Reader\.name is changed twice"),
        ({"set": {"address": None, "address.city": "x"}}, r"Reader\.address"),
        ({"set": {"phones[0]": "1"}, "append": {"phones": ["2"]}}, r"Reader\.phones"),
        ({"set": {"nope": 1}}, r"Reader has no field 'nope'"),
        ({"set": {"address.nope": 1}}, r"address has no field 'nope'"),
        ({"set": {"size": "x"}}, r"Reader\.size = 'x'"),
        ({"set": {"reader_id": "q"}}, r"Reader\.reader_id is part of the primary key"),
        ({"set": {"tenant_id": "q"}}, r"Reader\.tenant_id is part of the primary key"),
        ({"remove": ["reader_id"]}, r"Reader\.reader_id is part of the primary key"),
        ({"append": {"name": ["x"]}}, r"Reader\.name is not a list"),
        ({"delete": {"phones": ["x"]}}, r"Reader\.phones is not a set"),
        ({"add": {"size": "x"}}, r"Reader\.size"),
        ({"set": {"": 1}}, r"Reader"),
        ({"set": {"name": "\ud800"}}, r"Reader\.name"),
        ({"set": {"a..b": 1}}, r"Reader"),
        ({"set": {"joined": datetime(2030, 1, 1)}}, r"Reader\.joined"),
    ],
)
def test_bad_changes_are_refused_before_sending(
    db: Store, opening: Opening, changes: dict[str, Any], words: str
) -> None:
    before = db.put(Reader(reader_id="r", phones=["0"], address=Address(city="x")))
    opening.spy.sent.clear()
    with pytest.raises((DataError, DeclarationError), match=words):
        db.update(Reader, reader_id="r", **changes)
    assert opening.spy.sent == []
    assert db.get(Reader, reader_id="r") == before


def test_fields_of_the_store_are_not_set_by_hand(db: Store) -> None:
    loan = db.put(Loan(loan_id="l", reader="r"))
    for name in ("version", "created", "updated"):
        with pytest.raises(DataError, match=rf"Loan\.{name} is maintained by the store"):
            db.update(loan, set={name: None if name != "version" else 7})


def test_a_required_field_cannot_be_removed(db: Store) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    with pytest.raises(DataError, match=r"Book\.title is required"):
        db.update(Book, book_id="b", remove=["title"])  # type: ignore[arg-type]  # what the test is about


def test_nested_paths(db: Store) -> None:
    db.put(
        Reader(
            reader_id="r",
            address=Address(city="Rome", floors=[1, 2, 3]),
            homes={"a.b[0]#x": Address(city="Pisa"), "sea": Address(city="Ostia")},
        )
    )
    after = db.update(
        Reader,
        reader_id="r",
        set={
            "address.city": "Bari",
            "address.code": "70100",
            "address.floors[1]": 9,
            "homes.sea.city": "Nice",
        },
        append={"homes.sea.floors": [4]},
    )
    assert after.address == Address(city="Bari", floors=[1, 9, 3], code="70100")
    assert after.homes["sea"] == Address(city="Nice", floors=[4])
    assert db.update(Reader, reader_id="r", remove=["address.floors[0]", "homes.sea"]).address == Address(
        city="Bari", floors=[9, 3], code="70100"
    )
    assert set(db.require(Reader, reader_id="r").homes) == {"a.b[0]#x"}


gaps = Table("Gaps", ttl="until")


class Gap(Entity, table=gaps):
    """None among members, and a lifetime whose None is kept as NULL."""

    key = Key("GAP#{gap}", "GAP")
    gap: str
    row: list[str | None] = Field(default_factory=list)
    named: dict[str, int | None] = Field(default_factory=dict)
    until: Annotated[datetime | None, TTL()] = datetime(2035, 1, 2, tzinfo=UTC)


def test_none_among_members_keeps_its_place(opening: Opening) -> None:
    store = opening(gaps)
    store.put(Gap(gap="g", row=["a", None, "c"], named={"x": None, "y": 1}))
    after = store.update(Gap, gap="g", set={"row[0]": None, "named.y": None})
    assert (after.row, after.named) == ([None, None, "c"], {"x": None, "y": None})
    assert store.count(Gap.key.query(gap="g"), where=lambda g: (g.row[0] == None) & (g.row[2] != None)) == 1  # noqa: E711


def test_a_lifetime_of_null_never_ends(opening: Opening) -> None:
    store = opening(gaps)
    store.put(Gap(gap="g", until=None))
    assert opening.only(Gap)["until"] == {"NULL": True}
    opening.clock.seconds += 10**6
    assert store.require(Gap, gap="g").until is None
    assert [each.gap for each in store.all(Gap.key.query(gap="g"))] == ["g"]
    assert store.update(Gap, gap="g", set={"row": ["z"]}).row == ["z"]
    store.put(Gap(gap="h"))
    assert store.get(Gap, gap="h") is None


def test_another_entitys_item_under_the_same_key_is_left_alone(db: Store, opening: Opening) -> None:
    db.put(Photo(survey_id="s", photo_id="p"))
    opening.plant(surveyor, {**opening.only(Photo), "_type": {"S": "Section"}})
    before = opening.raw(surveyor)
    with pytest.raises(NotFound, match="Photo not found"):
        db.update(Photo, survey_id="s", photo_id="p", set={"caption": "c"})
    with pytest.raises(TransactionFailed, match="Photo not found"), db.transaction() as tx:
        tx.check(Photo, survey_id="s", photo_id="p")
    assert db.get(Photo, survey_id="s", photo_id="p") is None
    assert opening.raw(surveyor) == before


def test_a_missing_parent_is_a_clear_error(db: Store) -> None:
    db.put(Reader(reader_id="r"))
    with pytest.raises(DataError, match=r"Reader reader_id='r': Reader\.address has no stored value.*whole"):
        db.update(Reader, reader_id="r", set={"address.city": "Rome"})
    after = db.update(Reader, reader_id="r", set={"address": Address(city="Rome")})
    assert after.address == Address(city="Rome")


def test_add_append_and_delete(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    after = db.update(Book, book_id="b", add={"stars": 4, "tags": {"x", "y"}}, append={"lines": ["1", "2"]})
    assert (after.stars, after.tags, after.lines) == (4, {"x", "y"}, ["1", "2"])
    after = db.update(Book, book_id="b", add={"tags": {"y", "z"}}, append={"lines": ["3"]})
    assert (after.tags, after.lines) == ({"x", "y", "z"}, ["1", "2", "3"])
    after = db.update(Book, book_id="b", delete={"tags": {"x", "nope"}})
    assert after.tags == {"y", "z"}
    after = db.update(Book, book_id="b", delete={"tags": {"y", "z"}})
    assert after.tags == set()
    assert "tags" not in opening.only(Book), "an empty set is absent"
    assert db.update(Book, book_id="b", add={"tags": {"again"}}).tags == {"again"}
    assert db.update(Book, book_id="b", set={"tags": set()}).tags == set()
    assert "tags" not in opening.only(Book)


def test_none_is_absent_unless_the_default_is_another_value(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r", joined=None, limit=None))
    item = opening.only(Reader)
    assert "joined" not in item
    assert item["limit"] == {"NULL": True}
    assert db.require(Reader, reader_id="r").limit is None
    assert db.update(Reader, reader_id="r", set={"limit": 5}).limit == 5
    assert db.update(Reader, reader_id="r", set={"limit": None}).limit is None
    assert db.require(Reader, reader_id="r").limit is None
    assert db.update(Reader, reader_id="r", remove=["limit"]).limit == 3


def test_values_come_back_as_they_were(db: Store) -> None:
    offset = timezone(timedelta(hours=5, minutes=30))
    given = Reader(
        reader_id="r/é#%$\x00 \U0001f600",
        name="quote ' \" \\ ${status} :v0 #n0",
        size=-(10**37),
        balance=Decimal(-12345678901234567890123456789012345678),
        ratio=0.1,
        photo=bytes(range(256)),
        joined=datetime(2030, 1, 2, 3, 4, 5, 6789, tzinfo=offset),
        genre=Genre.NOVEL,
        numbers={-1, 0, 10**20},
        preferences={"deep": [1, {"x": None}], "é": "#"},
        homes={" ": Address(city="")},
    )
    stored = db.put(given)
    found = db.require(Reader, reader_id=given.reader_id)
    assert found == stored == given.model_copy(update={"tenant_id": "acme"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("balance", Decimal("1.2345678901234567890123456789012345678901")),
        ("balance", Decimal("NaN")),
        ("balance", Decimal("Infinity")),
        ("balance", Decimal("1E+126")),
        ("size", 10**39 + 1),
        ("ratio", float("nan")),
        ("ratio", float("inf")),
        ("joined", datetime(2030, 1, 1)),
    ],
)
def test_what_dynamodb_cannot_keep_exactly_is_refused(
    db: Store, opening: Opening, name: str, value: Any
) -> None:
    reader = Reader.model_construct(**{**Reader(reader_id="r").__dict__, name: value})
    with pytest.raises(DataError, match=rf"Reader\.{name}"):
        db.put(reader)
    db.put(Reader(reader_id="r"))
    opening.spy.sent.clear()
    with pytest.raises(DataError, match=rf"Reader\.{name}"):
        db.update(Reader, reader_id="r", set={name: value})
    assert opening.spy.of(UpdateItem) == []


def test_names_on_the_wire(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r", status="old", address=Address(city="x", code="1"), preferences={"a": 1}))
    item = opening.only(Reader)
    assert item["st-atus.x"] == {"S": "old"}
    assert "status" not in item
    assert item["address"]["M"]["zip"] == {"S": "1"}
    assert item["preferences"] == {"S": '{"a":1}'}
    after = db.update(
        Reader,
        reader_id="r",
        set={"status": "new", "preferences": {"b": [2]}},
        where=lambda r: r.status == "old",
    )
    assert (after.status, after.preferences) == ("new", {"b": [2]})
    assert db.require(Reader, reader_id="r").status == "new"


def test_unknown_attributes_survive(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r", name="Ann"))
    item = {**opening.only(Reader), "later": {"M": {"x": {"N": "1"}}}, "GSI9PK": {"S": "k"}}
    opening.plant(library, item)
    db.update(Reader, reader_id="r", set={"name": "Bob"})
    kept = opening.only(Reader)
    assert (kept["later"], kept["GSI9PK"], kept["name"]) == (item["later"], item["GSI9PK"], {"S": "Bob"})
    read = db.require(Reader, reader_id="r")
    assert read.unknown_attributes == {"later": item["later"], "GSI9PK": item["GSI9PK"]}
    db.put(read.model_copy(update={"name": "Cyd"}))
    read.name = "Dan"
    db.put(read)
    kept = opening.only(Reader)
    assert (kept["later"], kept["name"]) == (item["later"], {"S": "Dan"})
    assert db.delete(read) == read


def test_too_large_names_the_heaviest_fields(db: Store, opening: Opening) -> None:
    heavy = Reader(reader_id="r", name="n" * 150_000, photo=b"p" * 260_000, status="s" * 30)
    opening.spy.sent.clear()
    with pytest.raises(
        ItemTooLarge, match=r"Reader has 41\d,\d+ bytes.*photo \(260,005 bytes\), name \(150,004"
    ):
        db.put(heavy)
    assert opening.spy.sent == []
    with pytest.raises(ItemTooLarge) as failed:
        db.create(heavy)
    assert [name for name, _ in failed.value.largest[:2]] == ["photo", "name"]
    db.put(Reader(reader_id="r", name="n" * 150_000))
    with pytest.raises(ItemTooLarge, match=r"Reader reader_id='r'.*400 KB"):
        db.update(Reader, reader_id="r", set={"photo": b"p" * 260_000})
    with pytest.raises(ItemTooLarge, match="Reader"), db.batch() as batch:
        batch.put(heavy)
    with pytest.raises(ItemTooLarge, match="Reader"), db.transaction() as tx:
        tx.put(heavy)


def test_a_key_that_is_too_long_or_incomplete_is_refused(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with pytest.raises(DataError, match=r"SK = 'READER#\{reader_id\}' has .* bytes; .*1024"):
        db.put(Reader(reader_id="x" * 1_100))
    with pytest.raises(DataError, match="1024"):
        db.get(Reader, reader_id="é" * 600)
    with pytest.raises(DataError, match=r"Section needs .*section_id is missing"):
        db.get(Section, survey_id="s1")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match=r"Section\.key has no part 'sectionid'; did you mean 'section_id'"):
        db.get(Section, survey_id="s1", sectionid="x")  # type: ignore[call-arg]  # what the test is about
    with pytest.raises(DataError, match="section_id"):
        db.get(Section, survey_id="s1", section_id=None)  # type: ignore[arg-type]  # what the test is about
    assert opening.spy.sent == []


def test_get_many_keeps_the_order_and_says_none(db: Store, opening: Opening) -> None:
    for number in range(3):
        db.put(Photo(survey_id="s", photo_id=str(number)))
    keys = [{"survey_id": "s", "photo_id": each} for each in ("2", "x", "0", "2")]
    found = db.get_many(Photo, keys)
    assert [each and each.photo_id for each in found] == ["2", None, "0", "2"]
    assert db.get_many(Photo, []) == []


def test_a_table_without_a_sort_key(opening: Opening) -> None:
    store: Database = opening(singles)
    assert store.put(Single(one="1", value=3)).value == 3
    assert store.update(Single, one="1", add={"value": 2}).value == 5
    assert [each.value for each in store.all(Single.key.query(one="1"))] == [5]
    assert store.delete(Single, one="1") is not None
    assert store.get(Single, one="1") is None


def test_stamps(db: Store, opening: Opening) -> None:
    first = db.put(Loan(loan_id="l", reader="r"))
    assert (first.created, first.updated) == (opening.clock.at(0), opening.clock.at(0))
    opening.clock.seconds += 10.25
    second = db.update(first, set={"note": "n"})
    assert (second.created, second.updated) == (opening.clock.at(0), opening.clock.at(10.25))
    opening.clock.seconds += 10
    third = db.put(second)
    assert (third.created, third.updated) == (opening.clock.at(0), opening.clock.at(20.25))
    with db.transaction() as tx:
        tx.update(third, set={"note": "m"})
    assert db.require(Loan, loan_id="l").updated == opening.clock.at(20.25)
    assert stale_keys(opening, library) == []


stamped = Table("Stamped", indexes=[Index("GSI1"), Index("GSI2"), Index("GSI3")])


class Post(Entity, table=stamped):
    key = Key("POST#{post_id}", "POST")
    newest = Key("POSTS", "{created:s}#{post_id}", index="GSI1")
    changed = Key("POSTS", "{updated:ms}#{post_id}", index="GSI2")
    versions = Key("POSTS#{created:s}", "{version:06d}#{post_id}", index="GSI3")
    post_id: str
    note: str = ""
    version: Annotated[int, Version()] = 0
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None


def test_stamps_are_as_precise_as_the_keys_they_are_in(opening: Opening) -> None:
    store: Database = opening(stamped)
    opening.clock.seconds = 1_700_000_000.654321
    first = store.put(Post(post_id="p"))
    assert first.created == datetime.fromtimestamp(1_700_000_000, UTC)
    assert first.updated == datetime(2023, 11, 14, 22, 13, 20, 654000, UTC)
    assert store.require(Post, post_id="p") == first
    assert [post.post_id for post in store.all(Post.newest.query().since(created=first.created))] == ["p"]
    assert stale_keys(opening, stamped) == []


def test_update_derives_the_index_keys_of_what_the_store_writes(opening: Opening) -> None:
    store: Database = opening(stamped)
    opening.clock.seconds = 1_700_000_000.654321
    first = store.put(Post(post_id="p"))
    opening.clock.seconds += 10
    second = store.update(first, set={"note": "n"})
    assert second.updated == datetime(2023, 11, 14, 22, 13, 30, 654000, UTC)
    assert stale_keys(opening, stamped) == []
    opening.clock.seconds += 10
    with store.transaction() as tx:
        tx.update(second, set={"note": "m"})
    assert store.require(Post, post_id="p").version == 3
    assert stale_keys(opening, stamped) == []
    store.update(Post, post_id="p", set={"note": "k"}, version=ANY)
    assert stale_keys(opening, stamped) == []


def test_a_put_keeps_an_item_in_an_index_that_its_entity_does_not_use(opening: Opening) -> None:
    from solotable import Entity, Index, Key, Table

    before = Table("Shelf", indexes=[Index("GSI1")])
    after = Table("Shelf", indexes=[Index("GSI1")])

    class Old(Entity, table=before, tag="Thing"):
        key = Key("THING#{name}", "THING")
        by_colour = Key("COLOUR#{colour}", "THING#{name}", index="GSI1")
        name: str
        colour: str = "red"

    class New(Entity, table=after, tag="Thing"):
        key = Key("THING#{name}", "THING")
        name: str
        colour: str = "red"

    opening(before).put(Old(name="a"))
    db = opening(after)
    found = db.require(New, name="a")
    assert found.unknown_attributes == {}
    db.put(found)
    (item,) = opening.raw(after)
    # A newer release may have written the keys; a put of a new entity leaves them out.
    assert "GSI1PK" in item
    db.put(New(name="a"))
    (item,) = opening.raw(after)
    assert "GSI1PK" not in item


def test_a_delete_does_not_reach_another_entity_under_the_same_key(opening: Opening) -> None:
    from solotable import Entity, Key, Table

    shelf = Table("Shelf")

    class Box(Entity, table=shelf):
        key = Key("SHELF#{name}", "IT")
        name: str

    class Bag(Entity, table=shelf):
        key = Key("SHELF#{name}", "IT")
        name: str

    db = opening(shelf)
    db.create(Box(name="a"))
    with pytest.raises(ConditionFailed, match="Box"):
        db.delete(Bag, name="a")
    assert db.get(Box, name="a") is not None
    assert db.delete(Bag, name="nothing") is None
