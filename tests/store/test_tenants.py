"""Tenants: nothing of another is read, written, counted or named; global entities; the admin's store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from solotable import ANY, AdminStore, AsyncAdminStore, AsyncStore, Database, Store
from solotable._protocol.requests import PutItem
from solotable.errors import (
    DataError,
    NotFound,
    SolotableError,
    TenantViolation,
    TransactionFailed,
    VersionConflict,
)

from .models import Book, Loan, Photo, Score, Section, Setting, Survey, board, library, surveyor
from .opening import Opening

SECRET = "the other tenant's own"


def _transaction(db: Store, verb: str, *arguments: Any, **named: Any) -> None:
    with db.transaction() as tx:
        getattr(tx, verb)(*arguments, **named)


def _batch(db: Store, verb: str, *arguments: Any, **named: Any) -> None:
    with db.batch(overwrite=True) as batch:
        getattr(batch, verb)(*arguments, **named)


@pytest.fixture
def theirs(base: Database) -> dict[str, Any]:
    """What another tenant has."""
    other = base.tenant("other")
    return {
        "survey": other.put(Survey(survey_id="s", title=SECRET)),
        "section": other.put(Section(survey_id="s", section_id="x", name=SECRET, order=1)),
        "book": other.put(Book(book_id="b", title=SECRET, author="A", shelf="q", position=1)),
        "loan": other.put(Loan(loan_id="l", reader="r", note=SECRET)),
    }


#: What names the other tenant outright, by key or by an entity of it.
NAMED: dict[str, Callable[[Store, dict[str, Any]], Any]] = {
    "get": lambda db, its: db.get(Survey, tenant_id="other", survey_id="s"),
    "require": lambda db, its: db.require(Survey, tenant_id="other", survey_id="s"),
    "get_many": lambda db, its: db.get_many(
        Survey, [{"survey_id": "s"}, {"tenant_id": "other", "survey_id": "s"}]
    ),
    "put": lambda db, its: db.put(its["section"]),
    "put of a copy": lambda db, its: db.put(its["section"].model_copy(update={"name": "mine"})),
    "create": lambda db, its: db.create(
        Section(tenant_id="other", survey_id="s", section_id="y", name="n", order=1)
    ),
    "update": lambda db, its: db.update(
        Section, tenant_id="other", survey_id="s", section_id="x", set={"name": "mine"}
    ),
    "update of an entity": lambda db, its: db.update(its["loan"], set={"note": "mine"}),
    "delete": lambda db, its: db.delete(Section, tenant_id="other", survey_id="s", section_id="x"),
    "delete of an entity": lambda db, its: db.delete(its["loan"]),
    "page": lambda db, its: db.page(Section.by_order.query(tenant_id="other", survey_id="s")),
    "all": lambda db, its: list(db.all(Section.key.query(tenant_id="other", survey_id="s"))),
    "first": lambda db, its: db.first(Book.by_author.query(tenant_id="other", author="A")),
    "count": lambda db, its: db.count(Book.by_year.query(tenant_id="other")),
    "explain": lambda db, its: db.explain(Book.by_year.query(tenant_id="other")),
    "collection": lambda db, its: db.collection(Survey, Section, tenant_id="other", survey_id="s"),
    "transaction put": lambda db, its: _transaction(db, "put", its["section"]),
    "transaction create": lambda db, its: _transaction(db, "create", its["section"]),
    "transaction update": lambda db, its: _transaction(db, "update", its["loan"], set={"note": "mine"}),
    "transaction delete": lambda db, its: _transaction(db, "delete", its["loan"]),
    "transaction check": lambda db, its: _transaction(db, "check", Survey, tenant_id="other", survey_id="s"),
    "batch put": lambda db, its: _batch(db, "put", its["section"]),
    "batch delete": lambda db, its: _batch(db, "delete", its["loan"]),
    "batch delete by key": lambda db, its: _batch(db, "delete", Book, tenant_id="other", book_id="b"),
    "an empty tenant": lambda db, its: db.get(Survey, tenant_id="", survey_id="s"),
}


@pytest.mark.parametrize("way", NAMED)
def test_another_tenant_is_refused_before_sending(
    db: Store, opening: Opening, theirs: dict[str, Any], way: str
) -> None:
    before = (opening.raw(surveyor), opening.raw(library))
    opening.spy.sent.clear()
    with pytest.raises(TenantViolation) as refused:
        NAMED[way](db, theirs)
    assert opening.spy.sent == []
    assert SECRET not in str(refused.value)
    assert (opening.raw(surveyor), opening.raw(library)) == before


#: The same ids under our own tenant, and ids that look like a way out of it.
UNNAMED: dict[str, Callable[[Store, str], Any]] = {
    "get": lambda db, odd: db.get(Section, survey_id=odd, section_id="x"),
    "get_many": lambda db, odd: db.get_many(Book, [{"book_id": "b"}, {"book_id": odd}]),
    "update": lambda db, odd: db.update(Section, survey_id=odd, section_id="x", set={"name": "mine"}),
    "update of an index key": lambda db, odd: db.update(Book, book_id=odd, set={"author": "mine"}),
    "update with a version": lambda db, odd: db.update(Loan, loan_id=odd, version=1, set={"note": "mine"}),
    "delete": lambda db, odd: db.delete(Book, book_id=odd),
    "delete with a version": lambda db, odd: db.delete(Loan, loan_id=odd, version=1),
    "delete of any": lambda db, odd: db.delete(Loan, loan_id=odd, version=ANY),
    "page": lambda db, odd: db.page(Section.of_survey(odd)).items,
    "all": lambda db, odd: list(db.all(Book.of_author(odd))),
    "keys only": lambda db, odd: list(db.all(Book.by_year.query())),
    "partial index": lambda db, odd: list(db.all(Book.by_title.query().starts_with(title=""))),
    "count": lambda db, odd: db.count(Book.of_author(odd)),
    "collection": lambda db, odd: db.collection(Survey, Section, survey_id=odd),
    "transaction check": lambda db, odd: _transaction(
        db, "check", Survey, survey_id=odd, where=lambda s: s.title == "x"
    ),
    "transaction delete": lambda db, odd: _transaction(db, "delete", Book, book_id=odd),
    "batch delete": lambda db, odd: _batch(db, "delete", Book, book_id=odd),
}


LOOKALIKES = ("acme", "other2", "oth", "other#SURVEY#s", "TENANT#other", "other%23", "other$")
ODD = ("s", "b", "l", "A", "", "#other", "s#SECTION#x", "../other", "TENANT#other", "x#TENANT#other#SURVEY#s")


@pytest.mark.parametrize("way", UNNAMED)
def test_no_id_leads_to_another_tenant(
    base: Database, opening: Opening, theirs: dict[str, Any], way: str
) -> None:
    before = (opening.raw(surveyor), opening.raw(library))
    for tenant, odd in itertools.product(LOOKALIKES, ODD):
        try:
            result = UNNAMED[way](base.tenant(tenant), odd)
        except SolotableError as error:
            told = f"{error} {vars(error)} {getattr(error, 'failures', '')}"
            assert isinstance(error, (NotFound, VersionConflict, TransactionFailed, DataError)), error
            assert getattr(error, "found", None) is None
            assert getattr(error, "theirs", None) is None
        else:
            told = repr(result)
            assert result in (None, [], [None, None], 0, (None, []))
        assert SECRET not in told
    assert (opening.raw(surveyor), opening.raw(library)) == before


def test_two_tenants_with_the_same_ids(base: Database) -> None:
    stores = [base.tenant(tenant) for tenant in ("a", "b", "a#b", "a%23b", "A")]
    for store in stores:
        store.put(Survey(survey_id="s", title=f"of {store.tenant_id}"))
        for order in range(3):
            store.put(
                Section(survey_id="s", section_id=str(order), name=f"of {store.tenant_id}", order=order)
            )
    for store in stores:
        survey, sections = store.collection(Survey, Section, survey_id="s")
        assert survey is not None
        assert survey.tenant_id == store.tenant_id
        assert [each.name for each in sections] == [f"of {store.tenant_id}"] * 3
        assert store.count(Section.of_survey("s")) == 3
        assert [each.tenant_id for each in store.page(Section.of_survey("s"), limit=2)] == [
            store.tenant_id
        ] * 2
    stores[0].delete(Section, survey_id="s", section_id="0")
    assert [store.count(Section.of_survey("s")) for store in stores] == [2, 3, 3, 3, 3]


def test_an_item_that_lies_about_its_tenant_is_not_handed_out(db: Store, opening: Opening) -> None:
    db.put(Survey(survey_id="s", title="t"))
    opening.plant(surveyor, {**opening.only(Survey), "tenant_id": {"S": "other"}, "title": {"S": SECRET}})
    reads: list[Callable[[], Any]] = [
        lambda: db.get(Survey, survey_id="s"),
        lambda: db.get_many(Survey, [{"survey_id": "s"}]),
        lambda: list(db.all(Survey.key.query())),
        lambda: db.collection(Survey, Section, survey_id="s"),
        lambda: db.create(Survey(survey_id="s", title="mine")),
        lambda: db.update(Survey, survey_id="s", version=9, set={"title": "mine"}),
        lambda: db.delete(Survey, survey_id="s", version=9),
    ]
    for read in reads:
        with pytest.raises(TenantViolation) as refused:
            read()
        assert SECRET not in str(refused.value)


def test_a_tenant_has_a_name(base: Database) -> None:
    with pytest.raises(TenantViolation, match="non-empty"):
        base.tenant("")
    assert base.tenant("a").tenant_id == "a"
    assert base.tenant_id is None


def test_tenants_entities_need_a_tenant(base: Database, opening: Opening) -> None:
    opening.spy.sent.clear()
    calls: list[Callable[[], Any]] = [
        lambda: base.get(Survey, survey_id="s"),
        lambda: base.get(Survey, tenant_id="acme", survey_id="s"),
        lambda: base.put(Survey(tenant_id="acme", survey_id="s", title="t")),
        lambda: base.page(Section.of_survey("s")),
        lambda: base.collection(Survey, Section, survey_id="s"),
        lambda: _transaction(base, "delete", Photo, survey_id="s", photo_id="p"),
        lambda: _batch(base, "put", Photo(survey_id="s", photo_id="p")),
    ]
    for call in calls:
        with pytest.raises(TenantViolation, match=r"db\.tenant\(\.\.\.\)"):
            call()
    assert opening.spy.sent == []


def test_global_entities_lie_outside_of_tenants(base: Database, db: Store, opening: Opening) -> None:
    base.put(Setting(name="colour", value="red"))
    assert base.require(Setting, name="colour").value == "red"
    assert [each.name for each in base.all(Setting.key.query())] == ["colour"]
    opening.spy.sent.clear()
    calls: list[Callable[[], Any]] = [
        lambda: db.get(Setting, name="colour"),
        lambda: db.put(Setting(name="colour", value="blue")),
        lambda: db.update(Setting, name="colour", set={"value": "blue"}),
        lambda: db.delete(Setting, name="colour"),
        lambda: list(db.all(Setting.key.query())),
        lambda: _transaction(db, "check", Setting, name="colour"),
        lambda: _batch(db, "delete", Setting, name="colour"),
    ]
    for call in calls:
        with pytest.raises(TenantViolation, match="Setting is global"):
            call()
    assert opening.spy.sent == []
    assert base.admin().require(Setting, name="colour").value == "red"


def test_a_table_without_tenants(opening: Opening) -> None:
    base = opening(board)
    base.put(Score(game="g", player="p"))
    with pytest.raises(TenantViolation, match="Score is global"):
        base.tenant("acme").get(Score, game="g", player="p")


def test_the_admin_sees_all_and_names_the_tenant(base: Database) -> None:
    for tenant in ("a", "b"):
        base.tenant(tenant).put(Photo(survey_id="s", photo_id=tenant))
    admin = base.admin()
    assert admin.require(Photo, tenant_id="b", survey_id="s", photo_id="b").tenant_id == "b"
    assert [each.photo_id for each in admin.all(Photo.key.query(tenant_id="a", survey_id="s"))] == ["a"]
    assert admin.put(Photo(tenant_id="c", survey_id="s", photo_id="c")).tenant_id == "c"
    for call in (
        lambda: admin.get(Photo, survey_id="s", photo_id="a"),
        lambda: admin.put(Photo(survey_id="s", photo_id="a")),
        lambda: list(admin.all(Photo.key.query(survey_id="s"))),
    ):
        with pytest.raises(DataError, match="Photo needs tenant_id in the admin scope"):
            call()
    assert base.tenant("c").get(Photo, survey_id="s", photo_id="c") is not None


def test_the_admin_store_is_a_separate_type() -> None:
    assert not issubclass(AdminStore, Store)
    assert not issubclass(Store, AdminStore)
    assert not issubclass(AsyncAdminStore, AsyncStore)
    assert not hasattr(Store, "admin")
    assert not hasattr(Store, "scan")
    assert not hasattr(AdminStore, "tenant_id")
    assert not hasattr(Store, "tenant"), "a tenant's store leads to no other"


@pytest.mark.parametrize("store", [Store, AdminStore, AsyncStore, AsyncAdminStore])
def test_only_the_database_is_closed(store: type) -> None:
    assert not {"close", "__enter__", "__aenter__"} & set(dir(store))


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_a_planted_item_that_names_another_tenant_is_not_written(
    db: Store, opening: Opening, verb: str
) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    planted = {**opening.only(Book), "tenant_id": {"S": "other"}}
    opening.engine.handle(PutItem(table=opening.prefix + library.name, item=planted))
    change = {"set": {"title": "mine"}} if verb == "update" else {}
    with pytest.raises(TenantViolation):
        getattr(db, verb)(Book, book_id="b", **change)
    assert opening.only(Book) == planted
