"""Chat, of aws-samples/aws-dynamodb-examples: rooms, their members and comments, without type tags.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | createChatRoom | table | PutItem, if it does not exist |
| 2 | deleteChatRoom | table | DeleteItem, if the user created it |
| 3 | joinChatRoom | table | PutItem |
| 4 | leaveChatRoom | table | DeleteItem |
| 5 | addComments | table | PutItem |
| 6 | getAllComments | GSI | Query |
| 7 | getLatestComments | GSI | Query, limit 10, descending |
| 8 | getFromLatestToSpecifiedPositionComments | GSI | Query, after a time |
| 9 | getFromPositionToPositionComments | GSI | Query, between two times |
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

import pytest

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from solotable.errors import AlreadyExists, ConditionFailed
from tests.store.opening import Opening

from .expectations import at, item, requests

chat = Table(
    "ChatSystem",
    tag=None,
    key_format=KeyFormat(escape=False),
    indexes=[Index("GSI", partition="RoomID", sort="CreatedAt")],
)
START = at("2023-04-01T12:00:00.001")


class Room(Entity, table=chat):
    """A room."""

    key = Key("Room:{room_id}", "meta")
    room_id: Annotated[str, Attr(stored=False)]
    created_by: Annotated[str, Attr("CreatedBy")]


class Join(Entity, table=chat):
    """A user is in a room."""

    key = Key("User:{user_id}", "Join:{room_id}")
    user_id: Annotated[str, Attr(stored=False)]
    room_id: Annotated[str, Attr(stored=False)]

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        """The rooms that a user is in."""
        return cls.key.query(user_id=user_id)


class Comment(Entity, table=chat):
    """A comment of a user in a room."""

    key = Key("User:{user_id}", "{created_at}")
    in_room = Key(("room_id",), ("created_at",), index="GSI")
    user_id: Annotated[str, Attr(stored=False)]
    room_id: Annotated[str, Attr("RoomID")]
    created_at: Annotated[datetime, Attr("CreatedAt"), Iso("ms")]
    comment: Annotated[str, Attr("Comment")]

    @pattern
    @classmethod
    def of_room(cls, room_id: str) -> Query[Self]:
        """The comments in a room, oldest first."""
        return cls.in_room.query(room_id=room_id)

    @pattern
    @classmethod
    def latest(cls, room_id: str) -> Query[Self]:
        """The comments in a room, newest first."""
        return cls.in_room.query(room_id=room_id).descending()

    @pattern
    @classmethod
    def after(cls, room_id: str, position: datetime) -> Query[Self]:
        """The comments in a room after a time."""
        return cls.in_room.query(room_id=room_id).after(created_at=position)

    @pattern
    @classmethod
    def between(cls, room_id: str, first: datetime, last: datetime) -> Query[Self]:
        """The comments in a room from one time to another."""
        return cls.in_room.query(room_id=room_id).between(created_at=(first, last))


@pytest.fixture
def db(opening: Opening) -> Database:
    """A room with 12 comments of two users, one a second, beside another room."""
    store = opening(chat)
    store.create(Room(room_id="Music", created_by="UserA"))
    for number in range(12):
        store.put(_comment(number, user_id=("UserA", "UserB")[number % 2]))
    store.put(_comment(5, user_id="UserC", room_id="Musical"))
    return store


def _comment(number: int, *, user_id: str = "UserA", room_id: str = "Music") -> Comment:
    moment = START + timedelta(seconds=number)
    return Comment(user_id=user_id, room_id=room_id, created_at=moment, comment=f"c{number}")


def test_chat_1_create_a_room(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(Room(room_id="Art", created_by="UserA"))
    assert item(PK="Room:Art", SK="meta", CreatedBy="UserA") in opening.raw(chat)
    with pytest.raises(AlreadyExists):
        db.create(Room(room_id="Music", created_by="UserB"))


def test_chat_2_delete_a_room_if_the_user_created_it(db: Database, opening: Opening) -> None:
    with pytest.raises(ConditionFailed):
        db.delete(Room, room_id="Music", where=lambda room: room.created_by == "UserB")
    with requests(opening, "DeleteItem"):
        db.delete(Room, room_id="Music", where=lambda room: room.created_by == "UserA")
    assert db.get(Room, room_id="Music") is None


def test_chat_3_join_a_room(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(Join(user_id="UserA", room_id="Music"))
    assert item(PK="User:UserA", SK="Join:Music") in opening.raw(chat)
    # The comments of the user are in the same partition.
    assert [join.room_id for join in db.all(Join.of_user("UserA"))] == ["Music"]


def test_chat_4_leave_a_room(db: Database, opening: Opening) -> None:
    db.create(Join(user_id="UserA", room_id="Music"))
    db.create(Join(user_id="UserA", room_id="Musical"))
    with requests(opening, "DeleteItem"):
        db.delete(Join, user_id="UserA", room_id="Music")
    assert [join.room_id for join in db.all(Join.of_user("UserA"))] == ["Musical"]


def test_chat_5_add_a_comment(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(_comment(20))
    moment = "2023-04-01T12:00:20.001Z"
    assert item(PK="User:UserA", SK=moment, RoomID="Music", CreatedAt=moment, Comment="c20") in opening.raw(
        chat
    )


def test_chat_6_all_comments_in_a_room(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        comments = list(db.all(Comment.of_room("Music")))
    assert [each.comment for each in comments] == [f"c{number}" for number in range(12)]
    assert {each.user_id for each in comments} == {"UserA", "UserB"}


def test_chat_7_latest_comments_in_a_room(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        comments = db.page(Comment.latest("Music"), limit=10)
    assert [each.comment for each in comments] == [f"c{number}" for number in range(11, 1, -1)]


def test_chat_8_comments_in_a_room_after_a_position(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        comments = db.page(Comment.after("Music", START + timedelta(seconds=9)))
    assert [each.comment for each in comments] == ["c10", "c11"]


def test_chat_9_comments_in_a_room_between_positions(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        comments = db.page(
            Comment.between("Music", START + timedelta(seconds=4), START + timedelta(seconds=6))
        )
    assert [each.comment for each in comments] == ["c4", "c5", "c6"]
