"""Users and their sessions (S2.3, S2.28).

`did` is the account. `bluesky_did` is the linked Bluesky account, which may have another value (C2.10).

Schema version 2 has `profile_images` in the place of `avatar_url`. This release reads both, and writes both
for releases that know version 1 only. They may also remove `avatar_url`: `avatar_copied` tells such an item
from one of another program, which never had an `avatar_url`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import (
    TTL,
    Created,
    Entity,
    Key,
    Query,
    SoftDelete,
    Unique,
    Updated,
    Version,
    downgrade,
    pattern,
    upgrade,
)
from solotable.systems.community.table import SHARDS, community

from .values import Bio, Did, Id, Line, Link, Location

#: S2.22: how long a deleted account can be recovered.
GRACE_DAYS = 30
SESSION_DAYS = 7
ImageSize = Literal["small", "medium", "large"]


class Avatar(BaseModel):
    """The picture of a user."""

    url: Link
    size: ImageSize = "large"


class ProfileImages(BaseModel):
    """The pictures of a user."""

    avatar: Avatar | None = None


class User(Entity, table=community, tag="USER", schema_version=2):
    """A user and their profile; `email` is for administrators only."""

    key = Key("USER#{did}", "PROFILE")
    by_created = Key("USER", "{created_at:us}#{did}", index="GSI1", shards=SHARDS)
    by_handle = Key("HANDLE#{bluesky_handle}", "{did}", index="GSI2")
    by_bluesky = Key("BLUESKY#{bluesky_did}", "{did}", index="GSI5")
    deletion = SoftDelete(
        grace=timedelta(days=GRACE_DAYS), cascade=("Site", "Record", "Session", "CustomTemplate")
    )

    did: Did
    #: Normalised by `formats.names.normalise_handle`.
    bluesky_handle: Annotated[str | None, Unique(normalise="exact")] = None
    bluesky_did: Annotated[Did | None, Unique(normalise="exact")] = None
    display_name: Line
    bio: Bio = ""
    location: Location = ""
    website: Link | None = None
    profile_images: ProfileImages = Field(default_factory=ProfileImages)
    email: str | None = None
    email_verified: bool = False
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @upgrade(to=2, replaces=("avatar_url", "avatar_copied"))
    @staticmethod
    def move_avatar(record: dict[str, Any]) -> dict[str, Any]:
        """Move `avatar_url` into `profile_images` (S2.28)."""
        images = dict(record.get("profile_images") or {})
        known = images.get("avatar") or {}
        url = record.get("avatar_url")
        if url:
            images["avatar"] = {**known, "url": url} if known.get("url") == url else {"url": url}
        elif record.get("avatar_copied"):
            images.pop("avatar", None)
        return {**record, "profile_images": images}

    @downgrade(to=1)
    @staticmethod
    def copy_avatar(record: dict[str, Any]) -> dict[str, Any]:
        """Fill in `avatar_url` for releases that know schema version 1."""
        avatar = (record.get("profile_images") or {}).get("avatar")
        return {**record, "avatar_url": avatar["url"], "avatar_copied": True} if avatar else record

    @pattern
    @classmethod
    def newest(cls) -> Query[Self]:
        """All users, newest first (S2.8, S2.13)."""
        return cls.by_created.query().descending()

    @pattern
    @classmethod
    def created_between(cls, first: datetime, last: datetime) -> Query[Self]:
        """The users who were created in a period, newest first (S2.8)."""
        return cls.by_created.query().between(created_at=(first, last)).descending()

    @pattern
    @classmethod
    def with_handle(cls, bluesky_handle: str) -> Query[Self]:
        """The user with a handle (C2.10)."""
        return cls.by_handle.query(bluesky_handle=bluesky_handle)

    @pattern
    @classmethod
    def with_bluesky_did(cls, bluesky_did: str) -> Query[Self]:
        """The user with a linked Bluesky account."""
        return cls.by_bluesky.query(bluesky_did=bluesky_did)


class Session(Entity, table=community, tag="SESSION"):
    """A browser or program that is signed in, until `ends_at` or until it is revoked."""

    key = Key("USER#{did}", "SESSION#{session_id}")

    did: Did
    session_id: Id
    #: The SHA-256 of the secret that the client holds.
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    user_agent: Annotated[str, Field(max_length=300)] = ""
    created_at: Annotated[datetime | None, Created()] = None
    expires_at: Annotated[datetime, TTL()]

    @pattern
    @classmethod
    def of_user(cls, did: str) -> Query[Self]:
        """The sessions of a user."""
        return cls.key.query(did=did)
