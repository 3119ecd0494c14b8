"""The table of the local provider: users, their sessions, and nothing of their content.

A session is stored under the SHA-256 of its token, so that a copy of the table opens no session.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from solotable import TTL, Created, Entity, Index, Key, Query, Table, Unique, Version, pattern
from solotable.systems.portal.entities.values import UserId
from solotable.systems.portal.roles import Role

_EMAIL = r"^[^\s@<>\",;:\x00-\x1f]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,188}[A-Za-z0-9])?$"
_DIGEST = r"^[0-9a-f]{64}$"

users = Table("portal_users", ttl="ttl", indexes=[Index("GSI1")])


def _one_line(text: str) -> str:
    if text != text.strip() or not text.isprintable():
        raise ValueError("takes one line of text without spaces around it")
    return text


Email = Annotated[str, Field(pattern=_EMAIL, max_length=254)]
PersonName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_one_line)]


class User(Entity, table=users):
    """A user of the portal; without `password` they have not accepted their invitation."""

    key = Key("USER#{user_id}", "USER")
    #: One partition: a portal has thousands of users, and administrators list them now and then.
    by_email = Key("USERS", "{email}", index="GSI1")

    user_id: UserId
    email: Annotated[Email, Unique(normalise="casefold")]
    name: PersonName
    role: Role
    enabled: bool = True
    password: str | None = None
    #: The SHA-256 of the invitation's secret, and the end of the invitation.
    invitation: Annotated[str | None, Field(pattern=_DIGEST)] = None
    invited_until: datetime | None = None
    #: Sessions of an earlier generation are over.
    generation: int = 0
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def listed(cls) -> Query[Self]:
        """All users, by address."""
        return cls.by_email.query()

    @pattern
    @classmethod
    def with_email(cls, email: str) -> Query[Self]:
        """The user with an address."""
        return cls.by_email.query(email=email)


class Session(Entity, table=users):
    """A browser that is signed in."""

    key = Key("SESSION#{digest}", "SESSION")

    digest: Annotated[str, Field(pattern=_DIGEST)]
    user_id: UserId
    generation: int
    expires: datetime
    ttl: Annotated[datetime | None, TTL()] = None
    created: Annotated[datetime | None, Created()] = None
