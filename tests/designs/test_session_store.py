"""Session store, of aws-samples/aws-dynamodb-examples: sessions of customers, with an inverted index.

Ids are only in the keys, and items have no type attribute.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | createSession | table | PutItem |
| 2 | getSessionBySessionId | table | GetItem |
| 3 | expireSession | table | DeleteItem |
| 4 | getChildSessionsBySessionId | table | Query |
| 5 | getSessionByChildSessionId | GSI1_inverse | Query |
| 6 | getLastLoginTimeByCustomerId | GSI1_inverse | Query, limit 1 |
| 7 | getSessionIdByCustomerId | GSI1_inverse | Query |
| 8 | getSessionsByCustomerId | GSI1_inverse | Query |
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

import pytest
from pydantic import BaseModel

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from solotable.errors import AlreadyExists
from tests.store.opening import Opening

from .expectations import at, item, requests

session_store = Table(
    "session_store",
    tag=None,
    key_format=KeyFormat(escape=False),
    indexes=[Index("GSI1_inverse", partition="SK", sort="PK")],
)


class LastLogin(BaseModel):
    """When a customer logged in."""

    last_login_time: datetime


class Session(Entity, table=session_store):
    """A session of a customer."""

    key = Key("suuid#{session_id}", "c#{customer_id}")
    by_customer = Key("c#{customer_id}", "suuid#{session_id}", index="GSI1_inverse")
    session_id: Annotated[str, Attr(stored=False)]
    customer_id: Annotated[str, Attr(stored=False)]
    last_login_time: Annotated[datetime, Iso("s", offset="")]
    access_token: str
    session_state: str = "active"

    @pattern
    @classmethod
    def of_customer(cls, customer_id: str) -> Query[Self]:
        """The sessions of a customer."""
        return cls.by_customer.query(customer_id=customer_id)

    @pattern
    @classmethod
    def last_login(cls, customer_id: str) -> Query[LastLogin]:
        """The time of a customer's login."""
        return cls.by_customer.query(customer_id=customer_id).select(LastLogin)

    @pattern
    @classmethod
    def of_customer_with_id(cls, customer_id: str, session_id: str) -> Query[Self]:
        """One session of a customer."""
        return cls.by_customer.query(customer_id=customer_id, session_id=session_id)


class ChildSession(Entity, table=session_store):
    """A session that another session opened."""

    key = Key("suuid#{session_id}", "child#suuid#{child_id}")
    by_child = Key("child#suuid#{child_id}", "suuid#{session_id}", index="GSI1_inverse")
    session_id: Annotated[str, Attr(stored=False)]
    child_id: Annotated[str, Attr(stored=False)]
    access_token: str
    session_state: str = "active"

    @pattern
    @classmethod
    def of_session(cls, session_id: str) -> Query[Self]:
        """The child sessions of a session."""
        return cls.key.query(session_id=session_id)

    @pattern
    @classmethod
    def with_id(cls, child_id: str) -> Query[Self]:
        """A child session, which names its session."""
        return cls.by_child.query(child_id=child_id)


LOGIN = "2023-05-12T11:30:00"
#: The published items.
ITEMS = [
    item(PK="suuid#c342etj3", SK="child#suuid#ert54fbgn", access_token="lko98uib", session_state="active"),
    item(PK="suuid#c342etj3", SK="child#suuid#kljhfytf23", access_token="acg45jhi", session_state="closing"),
    item(PK="suuid#c342etj3", SK="c#ABC", last_login_time=LOGIN, access_token="d2", session_state="active"),
    item(PK="suuid#d0004tj2", SK="c#ABC", last_login_time=LOGIN, access_token="q0", session_state="closing"),
    item(
        PK="suuid#l221et00",
        SK="c#XYZ",
        last_login_time="2023-04-30T15:22:09",
        access_token="q2",
        session_state="active",
    ),
    item(PK="suuid#l221et00", SK="child#suuid#ljy22tf0", access_token="j143lawy", session_state="active"),
]


@pytest.fixture
def db(opening: Opening) -> Database:
    store = opening(session_store)
    for each in ITEMS:
        opening.plant(session_store, each)
    return store


def test_sessions_1_create_a_session(db: Database, opening: Opening) -> None:
    session = Session(session_id="new", customer_id="ABC", last_login_time=at(LOGIN), access_token="t")
    with requests(opening, "PutItem"):
        db.create(session)
    stored = [each for each in opening.raw(session_store) if each["PK"]["S"] == "suuid#new"]
    assert stored == [
        item(PK="suuid#new", SK="c#ABC", last_login_time=LOGIN, access_token="t", session_state="active")
    ]
    with pytest.raises(AlreadyExists):
        db.create(session)


def test_sessions_2_get_a_session(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        session = db.require(Session, session_id="c342etj3", customer_id="ABC")
    assert (session.access_token, session.last_login_time) == ("d2", at(LOGIN))
    assert db.get(Session, session_id="c342etj3", customer_id="XYZ") is None


def test_sessions_3_expire_a_session(db: Database, opening: Opening) -> None:
    with requests(opening, "DeleteItem"):
        expired = db.delete(Session, session_id="c342etj3", customer_id="ABC")
    assert expired is not None
    assert expired.access_token == "d2"
    assert len(opening.raw(session_store)) == len(ITEMS) - 1


def test_sessions_4_child_sessions_of_a_session(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        children = db.page(ChildSession.of_session("c342etj3"))
    assert [child.child_id for child in children] == ["ert54fbgn", "kljhfytf23"]
    assert all(type(child) is ChildSession for child in children)


def test_sessions_5_session_of_a_child_session(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        child = db.first(ChildSession.with_id("ljy22tf0"))
    assert child is not None
    assert (child.session_id, child.access_token) == ("l221et00", "j143lawy")
    assert db.first(ChildSession.with_id("ljy22tf")) is None


def test_sessions_6_login_time_of_a_customer(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        login = db.first(Session.last_login("XYZ"))
    assert login == LastLogin(last_login_time=at("2023-04-30T15:22:09"))
    assert db.first(Session.last_login("XY")) is None


def test_sessions_7_one_session_of_a_customer(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        session = db.first(Session.of_customer_with_id("ABC", "d0004tj2"))
    assert session is not None
    assert session.access_token == "q0"
    assert db.first(Session.of_customer_with_id("XYZ", "d0004tj2")) is None


def test_sessions_8_sessions_of_a_customer(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        sessions = db.page(Session.of_customer("ABC"))
    assert [session.session_id for session in sessions] == ["c342etj3", "d0004tj2"]
    db.update(sessions.items[0], set={"session_state": "closing"})
    assert len(opening.raw(session_store)) == len(ITEMS)
