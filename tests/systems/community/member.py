"""One process of a crowd: joins, leaves and changes roles at random, and prints a line for each action.

Run as `python -m tests.systems.community.member URL NUMBER ACTIONS`.
"""

from __future__ import annotations

import asyncio
import random
import sys

from solotable import connect_async
from solotable.systems.community.errors import AlreadyMember, Forbidden, LastAdmin, NameTaken, NotMember
from solotable.systems.community.roles import Caller
from solotable.systems.community.services.drafts import NeighbourhoodDraft
from solotable.systems.community.services.memberships import Memberships
from solotable.systems.community.services.neighbourhoods import Neighbourhoods
from solotable.systems.community.table import community
from tests.killing import tell

USERS = [f"did:plc:user{number}" for number in range(6)]
CREATOR = "did:plc:creator"
NAMES = [f"Contested {number}" for number in range(8)]
PLACE = "place"


async def main(url: str, number: int, actions: int) -> None:
    choose = random.Random(number)
    async with connect_async(url, community) as db:
        memberships, neighbourhoods = Memberships(db), Neighbourhoods(db)
        creator = Caller(did=CREATOR)
        for name in choose.sample(NAMES, len(NAMES)):
            try:
                await neighbourhoods.create(creator, NeighbourhoodDraft(name=name))
            except NameTaken:
                continue
            tell("created")
        for _ in range(actions):
            user = Caller(did=choose.choice(USERS))
            did = user.require_user()
            try:
                match choose.choice(["join", "join", "leave", "leave", "admin", "member", "remove"]):
                    case "join":
                        await memberships.join(user, PLACE)
                    case "leave":
                        await memberships.leave(user, PLACE)
                    case "remove":
                        await memberships.remove(creator, PLACE, did)
                    case "admin":
                        await memberships.change_role(creator, PLACE, did, "admin")
                    case _:
                        await memberships.change_role(creator, PLACE, did, "member")
            except (AlreadyMember, NotMember, LastAdmin, Forbidden) as error:
                tell(type(error).__name__)
            else:
                tell("done")
        tell("end")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
