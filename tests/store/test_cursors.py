"""Signed cursors: valid only for their query, tenant, table, direction and time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from solotable import Database, Store
from solotable.errors import CursorRejected, DeclarationError

from .models import Book, Photo, Section, library, surveyor
from .opening import SECRET, Opening

SECOND = b"the second secret of the suite"


def _put(db: Store, count: int = 5) -> None:
    for number in range(count):
        db.put(Section(survey_id="s", section_id=str(number), name="n", order=number))
        db.put(Section(survey_id="t", section_id=str(number), name="n", order=number))


def _cursor(db: Store) -> str:
    cursor = db.page(Section.of_survey("s"), limit=2).cursor
    assert cursor is not None
    return cursor


def test_a_cursor_goes_on_where_its_page_ended(db: Store) -> None:
    _put(db)
    page = db.page(Section.of_survey("s"), limit=2, cursor=_cursor(db))
    assert [each.order for each in page] == [2, 3]
    # The last row of a page may go before the next page is asked for.
    db.delete(page.items[-1])
    assert [each.order for each in db.page(Section.of_survey("s"), cursor=page.cursor)] == [4]


def test_every_single_flipped_bit_is_rejected(db: Store, opening: Opening) -> None:
    _put(db)
    cursor = _cursor(db)
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    opening.spy.sent.clear()
    for position in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[position // 8] ^= 1 << position % 8
        forged = base64.urlsafe_b64encode(bytes(flipped)).rstrip(b"=").decode()
        with pytest.raises(CursorRejected):
            db.page(Section.of_survey("s"), limit=2, cursor=forged)
    assert opening.spy.sent == []


def test_every_changed_character_is_rejected(db: Store) -> None:
    _put(db)
    cursor = _cursor(db)
    for position, letter in enumerate(cursor):
        for other in {"A", "b", "-", "_", "=", "+", "/", " ", "\n", "é"} - {letter}:
            with pytest.raises(CursorRejected):
                db.page(
                    Section.of_survey("s"), limit=2, cursor=cursor[:position] + other + cursor[position + 1 :]
                )
    for forged in ("", "A", cursor[:-1], cursor + "A", cursor + "=", " " + cursor, cursor * 2, "x" * 100_000):
        with pytest.raises(CursorRejected):
            db.page(Section.of_survey("s"), limit=2, cursor=forged)


ELSEWHERE: dict[str, Callable[[Database, Opening, str], Any]] = {
    "other arguments": lambda base, _, cursor: base.tenant("acme").page(
        Section.of_survey("t"), limit=2, cursor=cursor
    ),
    "other range": lambda base, _, cursor: base.tenant("acme").page(
        Section.of_survey("s").since(order=0), limit=2, cursor=cursor
    ),
    "other key": lambda base, _, cursor: base.tenant("acme").page(
        Section.key.query(survey_id="s"), limit=2, cursor=cursor
    ),
    "other entity": lambda base, _, cursor: base.tenant("acme").page(
        Photo.key.query(survey_id="s"), limit=2, cursor=cursor
    ),
    "other direction": lambda base, _, cursor: base.tenant("acme").page(
        Section.of_survey("s").descending(), limit=2, cursor=cursor
    ),
    "other filter": lambda base, _, cursor: base.tenant("acme").page(
        Section.of_survey("s"), limit=2, cursor=cursor, where=lambda s: s.name == "n"
    ),
    "other tenant": lambda base, _, cursor: base.tenant("acme2").page(
        Section.of_survey("s"), limit=2, cursor=cursor
    ),
    "admin": lambda base, _, cursor: base.admin().page(
        Section.by_order.query(tenant_id="acme", survey_id="s"), limit=2, cursor=cursor
    ),
    "other table": lambda _, opening, cursor: (
        opening(surveyor, library, prefix="x.")
        .tenant("acme")
        .page(Section.of_survey("s"), limit=2, cursor=cursor)
    ),
    "other secret": lambda _, opening, cursor: (
        opening(surveyor, library, secrets=[SECOND])
        .tenant("acme")
        .page(Section.of_survey("s"), limit=2, cursor=cursor)
    ),
    "nothing to ask": lambda base, _, cursor: base.tenant("acme").page(
        Section.of_survey("s").between(order=(3, 2)), limit=2, cursor=cursor
    ),
}


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_a_cursor_is_rejected_elsewhere(base: Database, opening: Opening, elsewhere: str) -> None:
    db = base.tenant("acme")
    _put(db)
    _put(base.tenant("acme2"))
    cursor = _cursor(db)
    with pytest.raises(CursorRejected) as refused:
        ELSEWHERE[elsewhere](base, opening, cursor)
    assert "acme" not in str(refused.value)
    assert [each.order for each in db.page(Section.of_survey("s"), limit=2, cursor=cursor)] == [2, 3]


def test_another_limit_may_be_asked_for(db: Store) -> None:
    _put(db)
    assert [each.order for each in db.page(Section.of_survey("s"), limit=9, cursor=_cursor(db))] == [2, 3, 4]


def test_a_cursor_expires(db: Store, opening: Opening) -> None:
    _put(db)
    cursor = _cursor(db)
    opening.clock.seconds += 7 * 24 * 3600 - 1
    assert len(db.page(Section.of_survey("s"), cursor=cursor)) == 3
    opening.clock.seconds += 2
    with pytest.raises(CursorRejected):
        db.page(Section.of_survey("s"), cursor=cursor)


def test_secrets_rotate(opening: Opening) -> None:
    old = opening(surveyor).tenant("acme")
    _put(old)
    cursor = _cursor(old)
    both = opening(surveyor, secrets=[SECOND, SECRET]).tenant("acme")
    assert len(both.page(Section.of_survey("s"), cursor=cursor)) == 3
    newer = _cursor(both)
    only_new = opening(surveyor, secrets=[SECOND]).tenant("acme")
    assert len(only_new.page(Section.of_survey("s"), cursor=newer)) == 3
    for store, foreign in ((old, newer), (only_new, cursor)):
        with pytest.raises(CursorRejected):
            store.page(Section.of_survey("s"), cursor=foreign)
    with pytest.raises(DeclarationError, match="16 bytes"):
        opening(surveyor, secrets=[b"short"])


def test_a_page_under_a_filter_ends_at_its_last_row(db: Store) -> None:
    """The cursor is of the last row returned, not of the last item read."""
    for number in range(40):
        db.put(Book(book_id=f"{number:02d}", title="t", author="A", stars=number % 4))
    query = Book.of_author("A").where(lambda b: b.stars == 3)
    found: list[str] = []
    cursor = None
    while True:
        page = db.page(query, limit=3, cursor=cursor)
        found += [each.book_id for each in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [f"{number:02d}" for number in range(3, 40, 4)]
