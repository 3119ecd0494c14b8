"""Two releases of the community's profiles that run at the same time (S2.28): each writes and reads.

Run as `python -m tests.systems.community.releases old|new URL WRITES`. The old release knows `avatar_url`
only; the new one is the shipped `User`. Each line is the version and the URL that a write stored.
"""

from __future__ import annotations

import random
import sys
from typing import Annotated

from solotable import Database, Entity, Key, Table, Version, connect
from solotable.systems.community.entities.users import Avatar, ProfileImages, User
from solotable.systems.community.table import community
from tests.killing import tell

DIDS = [f"did:plc:user{number}" for number in range(5)]
old_community = Table(
    "community", tag="entity_type", ttl="expires_at", stream=True, indexes=community.indexes.values()
)


class OldUser(Entity, table=old_community, tag="USER", schema_version=1):
    """The profile of the release before."""

    key = Key("USER#{did}", "PROFILE")

    did: str
    display_name: str
    avatar_url: str | None = None
    version: Annotated[int, Version()] = 0


def old_url(db: Database, did: str) -> str | None:
    """Return the avatar as the old release reads it."""
    return db.require(OldUser, did=did, consistent=True).avatar_url


def new_url(db: Database, did: str) -> str | None:
    """Return the avatar as the new release reads it."""
    avatar = db.require(User, did=did, consistent=True).profile_images.avatar
    return None if avatar is None else avatar.url


def write_old(db: Database, did: str, url: str | None) -> int:
    def change(user: OldUser) -> OldUser:
        user.avatar_url = url
        return user

    return db.modify(OldUser, change, did=did).version


def write_new(db: Database, did: str, url: str | None) -> int:
    def change(user: User) -> User:
        user.profile_images = ProfileImages(avatar=None if url is None else Avatar(url=url))
        return user

    return db.modify(User, change, did=did).version


def main(release: str, url: str, writes: int) -> None:
    choose = random.Random(release)
    with connect(url, old_community if release == "old" else community) as db:
        for number in range(writes):
            did = choose.choice(DIDS)
            image = None if number % 5 == 4 else f"https://img.example/{release}/{number}.png"
            version = (write_old if release == "old" else write_new)(db, did, image)
            tell(f"{did} {version} {image}")
            (old_url if release == "old" else new_url)(db, choose.choice(DIDS))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
