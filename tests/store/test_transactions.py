"""Transactions: limits first, all or nothing, failures named in the caller's order, done once per token."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import ANY, Database, Store
from solotable._protocol.requests import GetItem, TransactWriteItems
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    DataError,
    DeclarationError,
    NotFound,
    OutcomeUnknown,
    ServiceError,
    Throttled,
    TransactionFailed,
)

from .models import ALL, Book, Event, Loan, Photo, Reader, Section, Survey, events, library, surveyor
from .opening import Opening, stale_keys


def test_all_verbs_at_once(db: Store, opening: Opening) -> None:
    db.put(Section(survey_id="s", section_id="old", name="n", order=1))
    db.put(Section(survey_id="s", section_id="gone", name="n", order=2))
    survey = db.put(Survey(survey_id="s", title="t"))
    opening.spy.sent.clear()
    with db.transaction() as tx:
        made = tx.put(Section(survey_id="s", section_id="new", name="n", order=3))
        tx.create(Section(survey_id="s", section_id="first", name="n", order=4))
        tx.update(Section, survey_id="s", section_id="old", set={"order": 9}, add={})
        tx.delete(Section, survey_id="s", section_id="gone")
        tx.check(Survey, survey_id="s", version=survey.version, where=lambda s: s.status == "draft")
        assert opening.spy.sent == [], "nothing is sent before the block ends"
    assert made.tenant_id == "acme"
    assert [each.section_id for each in db.page(Section.of_survey("s"))] == ["new", "first", "old"]
    assert len(opening.spy.of(TransactWriteItems)) == 1
    assert stale_keys(opening, surveyor) == []


def test_nothing_is_sent_when_the_block_raised(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with pytest.raises(RuntimeError, match="mine"), db.transaction() as tx:  # noqa: PT012 - the block is the test
        tx.put(Photo(survey_id="s", photo_id="1"))
        raise RuntimeError("mine")
    assert opening.spy.sent == []
    assert opening.raw(surveyor) == []


def test_an_empty_transaction_sends_nothing(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with db.transaction():
        pass
    assert opening.spy.sent == []


def test_a_transaction_is_sent_once(db: Store) -> None:
    with db.transaction() as tx:
        tx.put(Photo(survey_id="s", photo_id="1"))
    with pytest.raises(DeclarationError, match="was sent"):
        tx.put(Photo(survey_id="s", photo_id="2"))


def test_a_hundred_actions_and_no_more(db: Store, opening: Opening) -> None:
    with db.transaction() as tx:
        for number in range(100):
            tx.put(Photo(survey_id="s", photo_id=str(number)))
    assert len(opening.raw(surveyor)) == 100
    opening.spy.sent.clear()
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(DataError, match="at most 100 actions, got 101"),
        db.transaction() as tx,
    ):
        for number in range(101):
            tx.put(Photo(survey_id="t", photo_id=str(number)))
    assert opening.spy.sent == []


def test_four_megabytes_and_no_more(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(DataError, match=r"4,194,304 bytes, .*largest action is .*put Reader reader_id='5'"),
        db.transaction() as tx,
    ):
        for number in range(12):
            tx.put(Reader(reader_id=str(number), name="x" * (399_000 if number == 5 else 370_000)))
    assert opening.spy.sent == []


@pytest.mark.parametrize("second", ["put", "update", "delete", "check"])
def test_one_item_twice_is_refused_by_name(db: Store, opening: Opening, second: str) -> None:
    opening.spy.sent.clear()
    with (  # noqa: PT012 - the end of the block raises
        pytest.raises(
            DataError, match=rf"#1 put Photo survey_id='s', photo_id='1' and #3 {second} Photo .* same key"
        ),
        db.transaction() as tx,
    ):
        tx.put(Photo(survey_id="s", photo_id="1"))
        tx.put(Photo(survey_id="s", photo_id="2"))
        if second == "put":
            tx.put(Photo(survey_id="s", photo_id="1"))
        elif second == "update":
            tx.update(Photo, survey_id="s", photo_id="1", set={"caption": "c"})
        else:
            getattr(tx, second)(Photo, survey_id="s", photo_id="1")
    assert opening.spy.of(TransactWriteItems) == []


def test_failures_come_in_the_callers_order_with_entity_and_condition(db: Store, opening: Opening) -> None:
    db.put(Survey(survey_id="s", title="t", status="archived"))
    there = db.put(Photo(survey_id="s", photo_id="there"))
    loan = db.put(Loan(loan_id="l", reader="r"))
    stale = db.update(loan, set={"note": "n"})
    before = opening.raw(surveyor)
    with pytest.raises(TransactionFailed) as failed, db.transaction() as tx:  # noqa: PT012 - the end raises
        tx.put(Photo(survey_id="s", photo_id="fine"))
        tx.create(Photo(survey_id="s", photo_id="there"))
        tx.check(Survey, survey_id="s", where=lambda s: s.status != "archived")
        tx.put(Photo(survey_id="s", photo_id="fine too"))
        tx.update(loan, set={"note": "mine"})
        tx.update(Reader, reader_id="nobody", set={"name": "n"})
    error = failed.value
    assert [failure.position for failure in error.failures] == [1, 2, 4, 5]
    causes = [failure.error for failure in error.failures]
    assert isinstance(causes[0], AlreadyExists)
    assert causes[0].found == there
    assert isinstance(causes[1], ConditionFailed)
    assert causes[1].found.status == "archived"
    assert getattr(causes[2], "theirs", None) == stale
    assert isinstance(causes[3], NotFound)
    text = str(error)
    places = [
        text.index(part)
        for part in ("#2 ", "Photo survey_id='s', photo_id='there'", "#3 ", "Survey survey_id='s'", "status")
    ]
    assert places == sorted(places)
    assert text.index("#5 ") < text.index("Loan loan_id='l'") < text.index("#6 ")
    assert "Nothing was written" in text
    assert opening.raw(surveyor) == before
    assert [reason["Code"] for reason in error.reasons][:2] == ["None", "ConditionalCheckFailed"]


@pytest.mark.parametrize("verb", ["put", "update", "delete", "check"])
def test_a_condition_on_every_kind_of_action(db: Store, opening: Opening, verb: str) -> None:
    there = db.put(Reader(reader_id="r", size=1))

    def send(wanted: int) -> None:
        with db.transaction() as tx:
            tx.put(Photo(survey_id="s", photo_id=str(wanted)))
            if verb == "put":
                tx.put(Reader(reader_id="r", size=1, name="n"), where=lambda r: r.size == wanted)
            elif verb == "update":
                tx.update(Reader, reader_id="r", set={"name": "n"}, where=lambda r: r.size == wanted)
            elif verb == "delete":
                tx.delete(Reader, reader_id="r", where=lambda r: r.size == wanted)
            else:
                tx.check(Reader, reader_id="r", where=lambda r: r.size == wanted)

    with pytest.raises(TransactionFailed, match=r"#2 .*Reader reader_id='r'.*size") as failed:
        send(2)
    (failure,) = failed.value.failures
    assert isinstance(failure.error, ConditionFailed)
    assert failure.error.found == there
    assert db.get(Reader, reader_id="r") == there
    assert opening.raw(surveyor) == []
    send(1)
    after = db.get(Reader, reader_id="r")
    assert (after and after.name) == {"put": "n", "update": "n", "delete": None, "check": ""}[verb]
    assert len(opening.raw(surveyor)) == 1


def test_a_token_makes_it_happen_once(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    for _ in range(3):
        with db.transaction(token=f"once {opening.prefix}") as tx:
            tx.update(Book, book_id="b", add={"stars": 1})
    assert db.require(Book, book_id="b").stars == 1
    with db.transaction(token=f"more {opening.prefix}") as tx:
        tx.update(Book, book_id="b", add={"stars": 1})
    assert db.require(Book, book_id="b").stars == 2
    for token in ("", "x" * 1001):
        with pytest.raises(DataError, match="1 to 1,000"), db.transaction(token=token) as tx:
            tx.update(Book, book_id="b", add={"stars": 1})


def test_a_token_stands_though_stamps_versions_and_locks_have_moved_on(db: Store, opening: Opening) -> None:
    first = db.put(Loan(loan_id="old", reader="r"))
    for hour in range(3):
        opening.clock.seconds += 3600 * hour
        with db.transaction(token="import 7") as tx:
            tx.put(first.model_copy(update={"note": "imported"}))
            tx.create(Loan(loan_id="new", reader="r"))
    assert db.require(Loan, loan_id="old").version == 2
    assert db.require(Loan, loan_id="new").created == opening.clock.at(0)


def test_a_token_for_another_transaction_is_refused(db: Store, base: Database) -> None:
    with db.transaction(token="t") as tx:
        tx.create(Book(book_id="b", title="t", author="a"))
    with pytest.raises(DataError, match="was used for another transaction"), db.transaction(token="t") as tx:
        tx.create(Book(book_id="b", title="other", author="a"))
    with base.tenant("other").transaction(token="t") as tx:
        tx.create(Book(book_id="b", title="other", author="a"))
    assert base.tenant("other").require(Book, book_id="b").title == "other"


def test_a_token_is_forgotten_after_a_day(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    for _ in range(2):
        with db.transaction(token="daily") as tx:
            tx.update(Book, book_id="b", add={"stars": 1})
        opening.clock.seconds += 24 * 3600 + 1
    assert db.require(Book, book_id="b").stars == 2


def test_of_two_callers_with_one_token_one_does_it(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    beside = opening.beside(*ALL).tenant("acme")

    def theirs() -> None:
        with beside.transaction(token="race") as tx:
            tx.update(Book, book_id="b", add={"stars": 1})

    opening.spy.once(TransactWriteItems, theirs)
    with db.transaction(token="race") as tx:
        tx.update(Book, book_id="b", add={"stars": 1})
    assert db.require(Book, book_id="b").stars == 1


def test_an_answer_that_is_lost_is_asked_for_again_under_the_same_token(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))
    lost: list[Any] = []

    def lose(request: Any) -> None:
        if isinstance(request, TransactWriteItems) and not lost:
            lost.append(request)
            opening.engine.handle(request)
            raise OutcomeUnknown("the answer was lost")

    opening.spy.before = lose
    opening.spy.sent.clear()
    with db.transaction() as tx:
        tx.update(Book, book_id="b", add={"stars": 1})
    first, second = opening.spy.of(TransactWriteItems)
    assert first.token == second.token
    assert db.require(Book, book_id="b").stars == 1


def test_a_write_whose_answer_is_lost_is_not_repeated(db: Store, opening: Opening) -> None:
    db.put(Book(book_id="b", title="t", author="a"))

    def lose(request: Any) -> None:
        if not isinstance(request, GetItem):
            opening.engine.handle(request)
            raise OutcomeUnknown("the answer was lost")

    opening.spy.before = lose
    with pytest.raises(OutcomeUnknown):
        db.update(Book, book_id="b", add={"stars": 1})
    opening.spy.before = None
    assert db.require(Book, book_id="b").stars == 1


def test_throttling_is_waited_out(db: Store, opening: Opening) -> None:
    left = 3

    def throttle(request: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            raise Throttled("ProvisionedThroughputExceededException", "slow down")

    opening.spy.before = throttle
    db.put(Photo(survey_id="s", photo_id="1"))
    left = 3
    assert db.get(Photo, survey_id="s", photo_id="1") is not None
    left = 1000
    with pytest.raises(Throttled):
        db.get(Photo, survey_id="s", photo_id="1")


def test_several_tables_in_one_transaction(opening: Opening) -> None:
    base = opening(*ALL, events)
    db = base.tenant("acme")
    with db.transaction() as tx:
        tx.put(Survey(survey_id="s", title="t"))
        tx.put(Reader(reader_id="r"))
        tx.delete(Loan, loan_id="l", version=ANY)
    assert db.get(Survey, survey_id="s") is not None
    assert db.get(Reader, reader_id="r") is not None
    with pytest.raises(TransactionFailed), db.transaction() as tx:  # noqa: PT012 - the end raises
        tx.put(Photo(survey_id="s", photo_id="1"))
        tx.create(Reader(reader_id="r"))
    assert db.get(Photo, survey_id="s", photo_id="1") is None
    with base.transaction() as tx:
        tx.put(Event(seq=1))
    assert len(opening.raw(events)) == 1
    assert len(opening.raw(library)) == 1


def test_a_table_that_was_not_opened_is_named(opening: Opening) -> None:
    db = opening(surveyor).tenant("acme")
    with pytest.raises(DeclarationError, match="'Library' is not open in this store"):
        db.get(Reader, reader_id="r")


def test_a_bad_path_in_a_transaction_names_the_entity(db: Store, opening: Opening) -> None:
    db.put(Reader(reader_id="r"))
    # DynamoDB Local refuses the whole request, and does not say for which action.
    kinds = (TransactionFailed, DataError) if opening.place != "local" else (ServiceError,)
    with pytest.raises(kinds, match=r"Reader|document path"), db.transaction() as tx:
        tx.update(Reader, reader_id="r", set={"address.city": "x"})
    assert db.require(Reader, reader_id="r").address is None
