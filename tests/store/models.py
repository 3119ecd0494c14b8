"""The entities that the store's suite is written over: between them they use every part of the model."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import (
    FROM_SCOPE,
    TTL,
    Attr,
    Created,
    Entity,
    Index,
    Json,
    Key,
    Query,
    Table,
    Updated,
    Version,
    pattern,
)

surveyor = Table("SurveyorData", tenant="tenant_id", indexes=[Index("GSI2"), Index("GSI4")])


class Survey(Entity, table=surveyor):
    """A versioned root, as in the design's example."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: Annotated[str, Field(min_length=1, max_length=200)]
    status: Literal["draft", "in_progress", "completed", "archived"] = "draft"
    version: Annotated[int, Version()] = 0


class Section(Entity, table=surveyor):
    """What lies under a survey, in the table and in an index."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order:06d}", index="GSI2")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    section_id: str
    name: str
    order: int
    notes: str = ""

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey, in order."""
        return cls.by_order.query(survey_id=survey_id)


class Photo(Entity, table=surveyor):
    """A third kind in the survey's range."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#PHOTO#{photo_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    photo_id: str
    caption: str = ""


library = Table(
    "Library",
    tenant="tenant_id",
    ttl="expires_at",
    indexes=[
        Index("GSI1"),
        Index("GSI2"),
        Index("GSI3", projection="KEYS_ONLY"),
        Index("GSI4", projection=["title", "stars"]),
        Index("LSI1", local=True, sort="LSI1SK"),
    ],
)


class Book(Entity, table=library):
    """Index keys: one with parts to read, one sparse, one of keys only, one in shards, one local."""

    key = Key("TENANT#{tenant_id}", "BOOK#{book_id}")
    by_author = Key("TENANT#{tenant_id}#AUTHOR#{author}", "BOOK#{year:04d}#{book_id}", index="GSI1")
    by_shelf = Key("TENANT#{tenant_id}#SHELF#{shelf}", "POS#{position:+05d}", index="GSI2")
    by_year = Key("TENANT#{tenant_id}", "YEAR#{year:04d}#{book_id}", index="GSI3")
    by_title = Key("TENANT#{tenant_id}#TITLES", "TITLE#{title}#{book_id}", index="GSI4", shards=3)
    by_due = Key("TENANT#{tenant_id}", "DUE#{due}", index="LSI1")
    tenant_id: str = FROM_SCOPE
    book_id: str
    title: str
    author: str
    year: int = 2000
    stars: int = 0
    shelf: str | None = None
    position: int | None = None
    due: datetime | None = None
    tags: set[str] = Field(default_factory=set)
    lines: list[str] = Field(default_factory=list)
    notes: str = ""

    @pattern
    @classmethod
    def of_author(cls, author: str) -> Query[Self]:
        """The books of an author, by year."""
        return cls.by_author.query(author=author)

    @pattern
    @classmethod
    def on_shelf(cls, shelf: str) -> Query[Self]:
        """The books on a shelf, from left to right."""
        return cls.by_shelf.query(shelf=shelf)


class Loan(Entity, table=library):
    """Versioned, stamped and mortal."""

    key = Key("TENANT#{tenant_id}", "LOAN#{loan_id}")
    by_reader = Key("TENANT#{tenant_id}#READER#{reader}", "LOAN#{loan_id}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    loan_id: str
    reader: str
    note: str = ""
    copies: int = 1
    expires_at: Annotated[datetime | None, TTL()] = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0


class Notice(Entity, table=library):
    """Mortal and without a version; its index holds keys only."""

    key = Key("TENANT#{tenant_id}#NOTICES", "NOTICE#{notice_id}")
    by_kind = Key("TENANT#{tenant_id}#KIND#{kind}", "NOTICE#{notice_id}", index="GSI3")
    tenant_id: str = FROM_SCOPE
    notice_id: str
    kind: str = "note"
    text: str = ""
    expires_at: Annotated[datetime | None, TTL()] = None


class Genre(Enum):
    """An enum is kept by its value."""

    NOVEL = "novel"
    POETRY = "poetry"


class Address(BaseModel):
    """Nested."""

    city: str
    floors: list[int] = Field(default_factory=list)
    code: Annotated[str, Attr("zip")] = ""


class Reader(Entity, table=library):
    """Values of every kind, and names that DynamoDB reserves."""

    key = Key("TENANT#{tenant_id}", "READER#{reader_id}")
    tenant_id: str = FROM_SCOPE
    reader_id: str
    name: str = ""
    status: Annotated[str, Attr("st-atus.x")] = "new"
    size: int = 0
    address: Address | None = None
    homes: dict[str, Address] = Field(default_factory=dict)
    phones: list[str] = Field(default_factory=list)
    numbers: set[int] = Field(default_factory=set)
    balance: Decimal = Decimal(0)
    ratio: float = 0.0
    photo: bytes = b""
    joined: datetime | None = None
    genre: Genre | None = None
    limit: int | None = 3
    preferences: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)


class Setting(Entity, table=library, scope="global"):
    """Of no tenant."""

    key = Key("SETTINGS", "SETTING#{name}")
    name: str
    value: str


board = Table(
    "Scores",
    partition="game",
    sort="player",
    tag="kind",
    indexes=[Index("ByBoard", partition=("region", "season"), sort=("points:N", "player"))],
)


class Score(Entity, table=board):
    """Native keys only: the fields themselves."""

    key = Key(("game",), ("player",))
    by_board = Key(("region", "season"), ("points", "player"), index="ByBoard")
    game: str
    player: str
    region: str | None = None
    season: str = "s1"
    points: int = 0


adopted = Table("Adopted", partition="content_id", sort="meta", tag="entity", indexes=[Index("ByAuthor")])


class Article(Entity, table=adopted, tag="article"):
    """In a table that was there before: other names, and a field that is the key itself."""

    key = Key(("content_id",), "META#{language}")
    by_author = Key("AUTHOR#{author}", "ARTICLE#{content_id}", index="ByAuthor")
    content_id: str
    language: str
    author: str
    title: Annotated[str, Attr("Title")] = ""


singles = Table("Singles", sort=None)


class Single(Entity, table=singles):
    """A table without a sort key."""

    key = Key("ONE#{one}")
    one: str
    value: int = 0


events = Table("Events", indexes=[Index("ByNumber"), Index("ByTime"), Index("ByName")])


class Event(Entity, table=events):
    """Sort keys of text, numbers and times, for ranges."""

    key = Key("LOG#{log}", "EVENT#{seq:04d}")
    by_name = Key("LOG#{log}", "NAME#{name}#{seq:04d}", index="ByName")
    by_number = Key("LOG#{log}", "N#{number:+012.3f}#{seq:04d}", index="ByNumber")
    by_time = Key("LOG#{log}", "T#{at}", index="ByTime")
    log: str = "l"
    seq: int
    name: str = ""
    number: Decimal = Decimal(0)
    at: datetime | None = None
    text: str = ""


ALL = (surveyor, library)
