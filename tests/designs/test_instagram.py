"""Instagram, of alexdebrie/dynamodb-instagram: users, photos, likes, comments and follows, without type tags.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | Create a user | table | PutItem |
| 2 | Get a user | table | GetItem |
| 3 | Create a photo | table | PutItem |
| 4 | Get a photo | table | GetItem |
| 5 | Like a photo once, and count it | table | TransactWriteItems |
| 6 | Likes of a photo, newest first | GSI1 | Query |
| 7 | Comment on a photo, and count it | table | TransactWriteItems |
| 8 | Comments of a photo, newest first | table | Query |
| 9 | Follow a user once, and count it on both | table | TransactWriteItems |
| 10 | Followers of a user | table | Query, BatchGetItem |
| 11 | Users that a user follows | GSI1 | Query, BatchGetItem |
"""

from __future__ import annotations

from typing import Annotated, Self

import pytest

from solotable import Attr, Database, Entity, Index, Key, KeyFormat, Query, Table, pattern
from solotable.errors import AlreadyExists, NotFound, TransactionCancelled
from tests.store.opening import Opening

from .expectations import item, requests

instagram = Table("Instagram", tag=None, key_format=KeyFormat(escape=False), indexes=[Index("GSI1")])


class User(Entity, table=instagram):
    """A user, with counters."""

    key = Key("USER#{username}", "USER#{username}")
    username: str
    name: str = ""
    followers: Annotated[int, Attr("followerCount")] = 0
    following: Annotated[int, Attr("followingCount")] = 0


class Photo(Entity, table=instagram):
    """A photo of a user; its id is a ULID, which sorts by time."""

    key = Key("UP#{username}", "PHOTO#{photo_id}")
    username: str
    photo_id: Annotated[str, Attr("photoId")]
    url: str
    likes: Annotated[int, Attr("likesCount")] = 0
    comments: Annotated[int, Attr("commentCount")] = 0

    @pattern
    @classmethod
    def of_user(cls, username: str) -> Query[Self]:
        """The photos of a user, newest first."""
        return cls.key.query(username=username).descending()


class Like(Entity, table=instagram):
    """A user's like of a photo."""

    key = Key("PL#{photo_id}", "LIKE#{username}")
    by_time = Key("PL#{photo_id}", "LIKE#{like_id}", index="GSI1")
    photo_id: Annotated[str, Attr("photoId")]
    username: Annotated[str, Attr("likingUsername")]
    like_id: Annotated[str, Attr("likeId")]

    @pattern
    @classmethod
    def of_photo(cls, photo_id: str) -> Query[Self]:
        """The likes of a photo, newest first."""
        return cls.by_time.query(photo_id=photo_id).descending()


class Comment(Entity, table=instagram):
    """A user's comment on a photo."""

    key = Key("PC#{photo_id}", "COMMENT#{comment_id}")
    photo_id: Annotated[str, Attr("photoId")]
    comment_id: Annotated[str, Attr("commentId")]
    username: Annotated[str, Attr("commentingUsername")]
    content: str

    @pattern
    @classmethod
    def of_photo(cls, photo_id: str) -> Query[Self]:
        """The comments of a photo, newest first."""
        return cls.key.query(photo_id=photo_id).descending()


class Follow(Entity, table=instagram):
    """One user follows another."""

    key = Key("FOLLOW#{followed}", "FOLLOW#{follower}")
    by_follower = Key("FOLLOW#{follower}", "FOLLOW#{followed}", index="GSI1")
    followed: Annotated[str, Attr("followedUsername")]
    follower: Annotated[str, Attr("followingUsername")]

    @pattern
    @classmethod
    def followers(cls, username: str) -> Query[Self]:
        """Who follows a user."""
        return cls.key.query(followed=username)

    @pattern
    @classmethod
    def following(cls, username: str) -> Query[Self]:
        """Whom a user follows."""
        return cls.by_follower.query(follower=username)


@pytest.fixture
def db(opening: Opening) -> Database:
    """Four users; two photos of Ana."""
    store = opening(instagram)
    for username in ("ana", "ben", "cyn", "ana2"):
        store.create(User(username=username, name=username.title()))
    for photo_id in ("01A", "01B"):
        store.create(Photo(username="ana", photo_id=photo_id, url=f"https://x/{photo_id}"))
    return store


def test_instagram_01_create_a_user(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(User(username="Eric Johnson", name="Eric"))
    stored = {each["PK"]["S"]: each for each in opening.raw(instagram)}
    assert stored["USER#Eric Johnson"] == item(
        PK="USER#Eric Johnson",
        SK="USER#Eric Johnson",
        username="Eric Johnson",
        name="Eric",
        followerCount=0,
        followingCount=0,
    )
    with pytest.raises(AlreadyExists):
        db.create(User(username="ana", name="Another Ana"))
    assert db.require(User, username="ana").name == "Ana"


def test_instagram_02_get_a_user(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        user = db.require(User, username="ana")
    assert (user.name, user.followers) == ("Ana", 0)
    assert db.get(User, username="an") is None


def test_instagram_03_create_a_photo(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(Photo(username="ana", photo_id="01C", url="https://x/01C"))
    assert [photo.photo_id for photo in db.all(Photo.of_user("ana"))] == ["01C", "01B", "01A"]
    with pytest.raises(AlreadyExists):
        db.create(Photo(username="ana", photo_id="01C", url="https://x/other"))


def test_instagram_04_get_a_photo(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        photo = db.require(Photo, username="ana", photo_id="01A")
    assert (photo.url, photo.likes, photo.comments) == ("https://x/01A", 0, 0)
    assert db.get(Photo, username="ana2", photo_id="01A") is None


def _like(db: Database, photo_id: str, username: str, like_id: str) -> None:
    with db.transaction() as tx:
        tx.create(Like(photo_id=photo_id, username=username, like_id=like_id))
        tx.update(Photo, username="ana", photo_id=photo_id, add={"likes": 1})


def test_instagram_05_like_a_photo_once_and_count_it(db: Database, opening: Opening) -> None:
    with requests(opening, "TransactWriteItems"):
        _like(db, "01A", "ben", "02A")
    with pytest.raises((AlreadyExists, TransactionCancelled)):
        _like(db, "01A", "ben", "02B")
    with pytest.raises((NotFound, TransactionCancelled)):
        _like(db, "01Z", "ben", "02C")
    assert db.require(Photo, username="ana", photo_id="01A").likes == 1
    assert db.count(Like.of_photo("01Z")) == 0


def test_instagram_06_likes_of_a_photo_newest_first(db: Database, opening: Opening) -> None:
    _like(db, "01A", "cyn", "02A")
    _like(db, "01A", "ben", "02C")
    _like(db, "01A", "ana2", "02B")
    _like(db, "01B", "ben", "02D")
    with requests(opening, "Query"):
        likes = db.page(Like.of_photo("01A"))
    assert [like.username for like in likes] == ["ben", "ana2", "cyn"]
    assert all(type(like) is Like for like in likes)


def _comment(db: Database, comment_id: str, photo_id: str = "01A") -> None:
    with db.transaction() as tx:
        tx.create(Comment(photo_id=photo_id, comment_id=comment_id, username="ben", content="Nice"))
        tx.update(Photo, username="ana", photo_id=photo_id, add={"comments": 1})


def test_instagram_07_comment_on_a_photo_and_count_it(db: Database, opening: Opening) -> None:
    with requests(opening, "TransactWriteItems"):
        _comment(db, "03A")
    _comment(db, "03B")
    assert db.require(Photo, username="ana", photo_id="01A").comments == 2
    with pytest.raises((NotFound, TransactionCancelled)):
        _comment(db, "03C", photo_id="01Z")
    assert db.count(Comment.of_photo("01Z")) == 0


def test_instagram_08_comments_of_a_photo_newest_first(db: Database, opening: Opening) -> None:
    for comment_id in ("03B", "03A", "03C"):
        _comment(db, comment_id)
    _comment(db, "03D", photo_id="01B")
    with requests(opening, "Query"):
        comments = db.page(Comment.of_photo("01A"), limit=2)
    assert [comment.comment_id for comment in comments] == ["03C", "03B"]
    assert [each.comment_id for each in db.page(Comment.of_photo("01A"), cursor=comments.cursor)] == ["03A"]


def _follow(db: Database, followed: str, follower: str) -> None:
    with db.transaction() as tx:
        tx.create(Follow(followed=followed, follower=follower))
        tx.update(User, username=followed, add={"followers": 1})
        tx.update(User, username=follower, add={"following": 1})


def test_instagram_09_follow_a_user_once_and_count_it_on_both(db: Database, opening: Opening) -> None:
    with requests(opening, "TransactWriteItems"):
        _follow(db, "ana", "ben")
    with pytest.raises((AlreadyExists, TransactionCancelled)):
        _follow(db, "ana", "ben")
    assert db.require(User, username="ana").followers == 1
    assert db.require(User, username="ben").following == 1


def test_instagram_10_followers_of_a_user(db: Database, opening: Opening) -> None:
    for followed, follower in (("ana", "cyn"), ("ana", "ben"), ("ana2", "ben"), ("ben", "ana")):
        _follow(db, followed, follower)
    with requests(opening, "Query", "BatchGetItem"):
        follows = db.page(Follow.followers("ana"))
        users = db.get_many(User, [{"username": each.follower} for each in follows])
    assert [user.name for user in users if user is not None] == ["Ben", "Cyn"]


def test_instagram_11_users_that_a_user_follows(db: Database, opening: Opening) -> None:
    for followed, follower in (("cyn", "ana"), ("ben", "ana"), ("ben", "ana2"), ("ana", "ben")):
        _follow(db, followed, follower)
    with requests(opening, "Query", "BatchGetItem"):
        follows = db.page(Follow.following("ana"))
        users = db.get_many(*(User.key(username=each.followed) for each in follows))
    assert [user.name for user in users if user is not None] == ["Ben", "Cyn"]


def test_instagram_reads_and_keeps_the_items_of_the_published_program(opening: Opening) -> None:
    db = opening(instagram)
    like = item(
        PK="PL#01A",
        SK="LIKE#Eric Johnson",
        GSI1PK="PL#01A",
        GSI1SK="LIKE#02A",
        likingUsername="Eric Johnson",
        photoId="01A",
        likeId="02A",
    )
    opening.plant(instagram, like)
    (found,) = db.all(Like.of_photo("01A"))
    assert found.username == "Eric Johnson"
    db.put(found)
    assert opening.raw(instagram) == [like]
