"""Neighbourhoods, memberships, their history, and invitations (S2.4, S2.5).

- C2.6: the store changes `member_count` and `admin_count` in the transaction of the membership.
- C2.7: a membership is one item for each user, which stays after they leave (C2.13). Its history is
  append-only events, kept forever; a purge of an account replaces its DID in them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import BaseModel, Field

from solotable import (
    TTL,
    Attr,
    Counted,
    Counter,
    Created,
    Entity,
    Key,
    Query,
    Retention,
    SoftDelete,
    Unique,
    Updated,
    Version,
    hook,
    new_id,
    pattern,
)
from solotable.systems.community.errors import Forbidden
from solotable.systems.community.table import SHARDS, community

from .values import ADMINS, Did, Id, Line, MemberStatus, Privacy, Role, Text

#: How long a deleted neighbourhood is kept before the purge.
DELETED_DAYS = 30
INVITATION_DAYS = 14
EventKind = Literal[
    "requested", "invited", "joined", "declined", "left", "removed", "role_changed", "promoted"
]
#: The fields of an event that name users; the purge of an account replaces them and nothing else.
_PERSONAL = frozenset({"user_did", "actor_did"})


class NeighbourhoodSettings(BaseModel):
    """What the members of a neighbourhood may do (S2.4)."""

    allow_site_creation: bool = True
    require_email_verification: bool = False


class Neighbourhood(Entity, table=community, tag="NBHD"):
    """A neighbourhood; a private one is in no list (C2.2)."""

    key = Key("NBHD#{neighbourhood_id}", "METADATA")
    by_created = Key(
        "NBHD",
        "{created_at:us}#{neighbourhood_id}",
        index="GSI1",
        shards=SHARDS,
        when={"privacy": {"public"}},
    )
    by_slug = Key("SLUG#{slug}", "{neighbourhood_id}", index="GSI2")
    deletion = SoftDelete(grace=timedelta(days=DELETED_DAYS), cascade=("Membership", "Invitation"))

    neighbourhood_id: Annotated[Id, Attr("id")] = Field(default_factory=new_id)
    name: Line
    #: Normalised by `formats.names.normalise_slug`.
    slug: Annotated[str, Unique(normalise="exact")]
    description: Text = ""
    creator_did: Did
    privacy: Privacy = "public"
    settings: NeighbourhoodSettings = Field(default_factory=NeighbourhoodSettings)
    member_count: Annotated[int, Counter()] = 0
    #: Active members with the role creator or admin. It never falls to 0 (C2.13).
    admin_count: Annotated[int, Counter()] = 0
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def newest(cls) -> Query[Self]:
        """All public neighbourhoods, newest first (S2.8)."""
        return cls.by_created.query().descending()

    @pattern
    @classmethod
    def with_slug(cls, slug: str) -> Query[Self]:
        """The neighbourhood with a slug (S2.9)."""
        return cls.by_slug.query(slug=slug)


class Membership(Entity, table=community, tag="MEMBER"):
    """A user in a neighbourhood: active, waiting (pending, invited), or left."""

    key = Key("NBHD#{neighbourhood_id}", "MEMBER#{user_did}")
    by_joined = Key(
        "USER#{user_did}",
        "ACTIVE#{joined_at:us}#{neighbourhood_id}",
        index="GSI3",
        when={"status": {"active"}},
    )
    by_status = Key(
        "USER#{user_did}",
        "OTHER#{status}#{changed_at:us}#{neighbourhood_id}",
        index="GSI3",
        when={"status": {"pending", "invited", "left"}},
    )
    members = Counted(
        Neighbourhood,
        "member_count",
        where=lambda member: member.status == "active",
    )
    admins = Counted(
        Neighbourhood,
        "admin_count",
        where=lambda member: member.status == "active" and member.role != "member",
    )

    neighbourhood_id: Id
    user_did: Did
    role: Role = "member"
    status: MemberStatus
    #: When the user became a member for the last time; None before that.
    joined_at: datetime | None = None
    #: When the status or the role changed; it increases with every change.
    changed_at: datetime
    version: Annotated[int, Version()] = 0

    @property
    def is_active(self) -> bool:
        """Whether the user is a member now."""
        return self.status == "active"

    @property
    def is_admin(self) -> bool:
        """Whether the user administers the neighbourhood now."""
        return self.is_active and self.role in ADMINS

    @pattern
    @classmethod
    def of_neighbourhood(cls, neighbourhood_id: str) -> Query[Self]:
        """The memberships of a neighbourhood, whatever their status (S2.14)."""
        return cls.key.query(neighbourhood_id=neighbourhood_id)

    @pattern
    @classmethod
    def of_user(cls, user_did: str) -> Query[Self]:
        """The neighbourhoods of a user, the newest membership first (S2.10)."""
        return cls.by_joined.query(user_did=user_did).descending()

    @pattern
    @classmethod
    def of_user_with_status(cls, user_did: str, status: MemberStatus) -> Query[Self]:
        """The memberships of a user that are pending, invited or left, the newest first."""
        return cls.by_status.query(user_did=user_did, status=status).descending()


class MembershipEvent(Entity, table=community, tag="MEMBER_EVENT"):
    """A change of a membership (S2.24): stored once, kept forever, never changed or deleted."""

    key = Key("NBHD#{neighbourhood_id}", "EVENT#{at:us}#{event_id}")
    by_user = Key("HISTORY#{user_did}", "{at:us}#{event_id}", index="GSI3")
    by_actor = Key("ACTED#{actor_did}", "{at:us}#{event_id}", index="GSI5")
    retention = Retention(None)

    neighbourhood_id: Id
    event_id: Id = Field(default_factory=new_id)
    at: datetime
    kind: EventKind
    user_did: Did
    #: Who changed it; None for a job.
    actor_did: Did | None = None
    role: Role | None = None
    previous_role: Role | None = None

    @hook("before_put")
    def _reject_put(self) -> NoReturn:
        raise Forbidden("The history of memberships is append-only: create() stores an event.")

    @hook("before_update")
    @classmethod
    def _reject_update(cls, changes: dict[str, Any]) -> None:
        given = {name: value for name, value in changes.items() if value}
        if set(given) != {"set"} or not set(given["set"]) <= _PERSONAL:
            raise Forbidden("The history of memberships is append-only: only a purge replaces its users.")

    @hook("before_delete")
    @classmethod
    def _reject_delete(cls, key: dict[str, Any]) -> NoReturn:
        raise Forbidden("The history of memberships is append-only: an event is kept forever.")

    @pattern
    @classmethod
    def of_neighbourhood(cls, neighbourhood_id: str) -> Query[Self]:
        """The history of a neighbourhood, newest first."""
        return cls.key.query(neighbourhood_id=neighbourhood_id).descending()

    @pattern
    @classmethod
    def of_user(cls, user_did: str) -> Query[Self]:
        """The history of a user, newest first."""
        return cls.by_user.query(user_did=user_did).descending()

    @pattern
    @classmethod
    def of_actor(cls, actor_did: str) -> Query[EventReference]:
        """What a user did to memberships, newest first."""
        return cls.by_actor.query(actor_did=actor_did).descending().select(EventReference)


class EventReference(BaseModel):
    """The key of an event."""

    neighbourhood_id: str
    at: datetime
    event_id: str


class Invitation(Entity, table=community, tag="INVITATION"):
    """A code that makes its first user a member, also of a private neighbourhood."""

    key = Key("NBHD#{neighbourhood_id}", "INVITATION#{digest}")
    retention = Retention(timedelta(days=INVITATION_DAYS), since="created_at")

    neighbourhood_id: Id
    #: The SHA-256 of the code, so that a copy of the table opens no neighbourhood.
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    created_by: Did
    role: Literal["admin", "member"] = "member"
    created_at: Annotated[datetime | None, Created()] = None
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_neighbourhood(cls, neighbourhood_id: str) -> Query[Self]:
        """The invitations of a neighbourhood that are not used."""
        return cls.key.query(neighbourhood_id=neighbourhood_id)
