"""Processes for the kill test of the backfill: writers of two releases, and the backfill that is killed."""

from __future__ import annotations

import random
import sys
from typing import Any

from solotable import Database, Entity, Key, Table, connect, downgrade, upgrade
from solotable._flows.jobs import backfill as pages
from solotable.jobs.backfill import backfill
from tests.killing import step, tell

BEFORE = Table("Profiles")
BETWEEN = Table("Profiles")
_WRITES = 400


class OldProfile(Entity, table=BEFORE, tag="Profile", schema_version=1):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str
    name: str
    avatar_url: str
    likes: int = 0


class Profile(Entity, table=BETWEEN, tag="Profile", schema_version=2):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str
    name: str
    images: dict[str, str]
    likes: int = 0

    @upgrade(to=2, replaces=("avatar_url",))
    @staticmethod
    def avatars(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "images": {"avatar": record["avatar_url"]}}

    @downgrade(to=1)
    @staticmethod
    def avatar_url(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "avatar_url": record["images"]["avatar"]}


def fill(url: str, count: int) -> None:
    """Store so many old profiles."""
    with connect(url, BEFORE) as db, db.batch(overwrite=True) as batch:
        for number in range(count):
            batch.put(OldProfile(user_id=str(number), name="n", avatar_url=f"first {number}"))


def changes(release: str, count: int) -> list[tuple[str, str]]:
    """Return what a writer writes, in its order: old code to the even users, new code to the odd ones."""
    dice = random.Random(release)
    odd = release == "new"
    users = [2 * dice.randrange(count // 2) + odd for _ in range(_WRITES)]
    return [(str(user), f"{release} {turn}") for turn, user in enumerate(users)]


def write(url: str, release: str, count: int) -> None:
    """Do one release's changes: an avatar of its own users, and a like for one of the other's."""
    with connect(url, BEFORE if release == "old" else BETWEEN) as db:
        for user, avatar in changes(release, count):
            other = str(int(user) ^ 1)
            if release == "old":
                db.update(OldProfile, user_id=user, set={"avatar_url": avatar})
                db.update(OldProfile, user_id=other, add={"likes": 1})
            else:
                db.update(Profile, user_id=user, set={"images": {"avatar": avatar}})
                db.update(Profile, user_id=other, add={"likes": 1})


def differences(db: Database, count: int) -> list[str]:
    """Return what is not as the writers left it."""
    avatars = {str(number): f"first {number}" for number in range(count)}
    likes = dict.fromkeys(avatars, 0)
    for release in ("old", "new"):
        for user, avatar in changes(release, count):
            avatars[user] = avatar
            likes[str(int(user) ^ 1)] += 1
    found = {each.user_id: each for each in db.admin().scan(Profile, budget=10 * count)}
    wrong = [f"{user} is gone" for user in avatars.keys() - found.keys()]
    for user, each in found.items():
        wanted = (avatars[user], likes[user], "n")
        if (each.images["avatar"], each.likes, each.name) != wanted:
            wrong.append(f"{user}: {each!r}, wanted {wanted}")
    return wrong


def main(role: str, url: str, *rest: str) -> None:
    """Play one role to its end."""
    if role == "write":
        write(url, rest[0], int(rest[1]))
        tell("done")
    else:
        with connect(url, BETWEEN) as db:
            pages._AT_ONCE = 100  # so that there are many steps to be killed in
            step("started")
            backfill(db.admin(), Profile, budget=100_000, progress=lambda at: step(str(at.tally.seen)))


if __name__ == "__main__":
    main(*sys.argv[1:])
