"""One caller of a crowd that uses each verb of the store on the same items.

Run as `python -m tests.torture.crowd URL FIRST LAST SHARE`: the callers FIRST to LAST, each in a thread.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, TypeVar

from pydantic import Field, field_validator

from solotable import Counted, Counter, Database, Entity, Key, Store, Table, Unique
from solotable.errors import ConditionFailed, NotUnique, ServiceError
from tests.killing import tell

ResultT = TypeVar("ResultT")
forum = Table("Forum")
HANDLES = 40
#: Each so many callers, one deletes the notes of all.
DELETERS = 16


class Page(Entity, table=forum):
    """A page that all callers change."""

    key = Key("PAGE#{name}", "PAGE")
    name: str
    hits: int = 0
    changes: int = 0
    first: str | None = None
    log: list[str] = Field(default_factory=list)


class Board(Entity, table=forum):
    """A board that counts its notes."""

    key = Key("BOARD#{board}", "BOARD")
    board: str
    notes: Annotated[int, Counter()] = 0


class Note(Entity, table=forum):
    """A note, which callers write and others delete with its partition."""

    key = Key("NOTES#{board}", "{number:08d}")
    counted = Counted(Board, "notes")
    board: str
    number: int


class Member(Entity, table=forum):
    """A member whose unique handle a validator fills."""

    key = Key("MEMBER#{member}", "MEMBER")
    member: str
    handle: Annotated[str, Unique()]

    @field_validator("handle")
    @classmethod
    def lower(cls, value: str) -> str:
        """Fold the case."""
        return value.lower()


def insist(verb: Callable[[], ResultT]) -> ResultT:
    """Repeat a verb whose conflicts outlast the store's own attempts; such a verb has written nothing."""
    while True:
        try:
            return verb()
        except ConditionFailed:
            continue
        except ServiceError as error:
            if not error.retryable and error.code != "TransactionCanceledException":
                raise


def call(db: Store, number: int, share: int) -> int:
    """Do the share of one caller; return how many notes it has deleted."""
    dice = random.Random(number)
    deleted = 0
    for turn in range(share):
        insist(lambda: db.upsert(Page, name="shared", add={"hits": 1}))
        insist(lambda: db.modify(Page, _changed, name="shared"))
        line = f"{number}-{turn}"
        insist(
            lambda line=line: db.update(  # type: ignore[misc] # bound now
                Page, name="shared", prepend={"log": [line]}, set_if_missing={"first": line}
            )
        )
        insist(lambda turn=turn: db.create(Note(board="b", number=number * 10_000 + turn)))  # type: ignore[misc] # bound now
        if number % DELETERS == 0:
            deleted += insist(lambda: db.delete_partition(Note.key.query(board="b"))).total
        handle = f"Handle{dice.randrange(HANDLES)}"
        spelled = dice.choice((handle.upper(), handle.lower(), handle))
        with suppress(NotUnique):
            insist(lambda spelled=spelled: db.put(Member(member=str(number), handle=spelled)))  # type: ignore[misc] # bound now
    return deleted


def _changed(page: Page) -> Page:
    return page.model_copy(update={"changes": page.changes + 1})


def call_all(db: Database, first: int, last: int, share: int) -> int:
    """Run callers in threads; return how many notes they have deleted."""
    with ThreadPoolExecutor(last - first) as threads:
        return sum(threads.map(lambda number: call(db, number, share), range(first, last)))


def check(db: Database, callers: int, share: int, deleted: int) -> None:
    """Compare the table with what the callers did."""
    total = callers * share
    page = db.require(Page, consistent=True, name="shared")
    assert (page.hits, page.changes) == (total, total)
    assert sorted(page.log) == sorted(
        f"{number}-{turn}" for number in range(callers) for turn in range(share)
    )
    assert page.first == page.log[-1], "the first line was written once, with the first update"
    notes = sum(1 for _ in db.all(Note.key.query(board="b")))
    assert deleted + notes == total, "a note was deleted twice, or lost"
    assert db.require(Board, consistent=True, board="b").notes == notes
    members = [db.get(Member, member=str(number)) for number in range(callers)]
    handles = [member.handle for member in members if member is not None]
    assert len(set(handles)) == len(handles) > 0
    # Each handle that is not in use can be taken: no lock was left behind.
    for number in range(HANDLES):
        handle = f"handle{number}"
        if handle in handles:
            try:
                db.create(Member(member="late", handle=handle))
            except NotUnique:
                continue
            raise AssertionError(f"{handle} is in use twice")
        db.create(Member(member="late", handle=handle))
        db.delete(Member, member="late")


if __name__ == "__main__":
    url, first, last, share = sys.argv[1:]
    with forum.open(url) as opened:
        tell(f"deleted {call_all(opened, int(first), int(last), int(share))}")
