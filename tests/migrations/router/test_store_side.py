"""A store over the old tables, with classes of its own, as a side of a router."""

from __future__ import annotations

from typing import Annotated

import pytest

from solotable import ANY, Database, Entity, Key, Query, Table, Version, flow, pattern
from solotable.errors import AlreadyExists, DataError, VersionConflict
from solotable.migrations.router import StoreSide
from solotable.migrations.router.sides import Call

old_table = Table("OldNotes")
new_table = Table("NewNotes")


class OldNote(Entity, table=old_table):
    key = Key("NOTES#{author}", "{note_id}")

    author: str
    note_id: str
    text: str = ""
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_author(cls, author: str) -> Query[OldNote]:
        """The notes of an author."""
        return cls.key.query(author=author)


class Note(Entity, table=new_table):
    key = Key("AUTHOR#{author}", "NOTE#{note_id}")

    author: str
    note_id: str
    text: str = ""
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_author(cls, author: str) -> Query[Note]:
        """The notes of an author."""
        return cls.key.query(author=author)


@pytest.fixture(params=["old", "new"])
def side(request: pytest.FixtureRequest) -> tuple[StoreSide, Database]:
    """One side, and its database."""
    if request.param == "old":
        database = old_table.open("sqlite://")
        return StoreSide.over({Note: OldNote})(database.scope), database
    database = new_table.open("sqlite://")
    return StoreSide(database.scope), database


def test_both_sides_answer_in_terms_of_the_new_class(side: tuple[StoreSide, Database]) -> None:
    verbs, db = side
    note = Note(author="ada", note_id="1", text="one")
    stored = flow.run(verbs.create(note), db)
    assert stored == note.model_copy(update={"version": 1})
    with pytest.raises(AlreadyExists):
        flow.run(verbs.create(note), db)
    assert flow.run(verbs.get(Note, author="ada", note_id="1"), db) == stored
    changed = flow.run(verbs.update(Note, author="ada", note_id="1", set={"text": "two"}, version=ANY), db)
    assert (type(changed), changed.text, changed.version) == (Note, "two", 2)
    with pytest.raises(VersionConflict):
        flow.run(verbs.put(stored.model_copy(update={"text": "late"})), db)
    with pytest.raises(VersionConflict):
        flow.run(verbs.update(Note, author="ada", note_id="1", set={"text": "x"}, version=1), db)
    longer = flow.run(
        verbs.modify(Note, lambda n: n.model_copy(update={"text": n.text + "!"}), author="ada", note_id="1"),
        db,
    )
    assert (longer.text, longer.version) == ("two!", 3)
    calls: list[Call] = [("put", (Note(author="ada", note_id=str(number)),), {}) for number in range(2, 5)]
    flow.run(verbs.transact(calls), db)
    page = flow.run(verbs.page(Note.of_author(author="ada"), limit=3), db)
    rest = flow.run(verbs.page(Note.of_author(author="ada"), limit=3, cursor=page.cursor), db)
    assert [each.note_id for each in (*page, *rest)] == ["1", "2", "3", "4"]
    assert {type(each) for each in page} == {Note}
    by_key = flow.run(verbs.page(Note.key.query(author="ada").descending(), limit=1), db)
    assert [each.note_id for each in by_key] == ["4"]
    gone = flow.run(verbs.delete(Note, author="ada", note_id="4", version=ANY), db)
    assert (type(gone), gone.note_id) == (Note, "4")
    assert flow.run(verbs.get(Note, author="ada", note_id="4"), db) is None
    db.close()


def test_a_query_that_the_old_class_does_not_have_is_named() -> None:
    with old_table.open("sqlite://") as db:
        verbs = StoreSide.over({Note: OldNote})(db.scope)
        unknown = Note.key.query(author="ada")
        object.__setattr__(unknown, "pattern", "Note.by_colour")
        with pytest.raises(DataError, match="no pattern or key 'by_colour'"):
            flow.run(verbs.page(unknown), db)
