"""The community for one test, on a recording engine, with its services and a few users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from solotable import AsyncDatabase
from solotable._connect import to_async
from solotable._values import Item
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.records import Record
from solotable.systems.community.entities.sites import Post, Site
from solotable.systems.community.entities.users import User
from solotable.systems.community.jobs.account_purge import AccountPurge, PurgeReport
from solotable.systems.community.roles import Caller
from solotable.systems.community.services.accounts import Accounts
from solotable.systems.community.services.drafts import (
    NeighbourhoodDraft,
    PostDraft,
    RecordDraft,
    SiteDraft,
)
from solotable.systems.community.services.invitations import Invitations
from solotable.systems.community.services.memberships import Memberships
from solotable.systems.community.services.neighbourhoods import Neighbourhoods, NeighbourhoodView
from solotable.systems.community.services.posts import Posts
from solotable.systems.community.services.records import Records
from solotable.systems.community.services.sites import Sites
from solotable.systems.community.services.users import Users
from tests.systems.harness import Harness

#: What a test does: its coroutine is made when it is run.
Work = Callable[[], Coroutine[Any, Any, object]]
ANN = Caller(did="did:plc:ann")
BEN = Caller(did="did:plc:ben")
EVA = Caller(did="did:plc:eva")
VIC = Caller(did="did:plc:vic")
OPERATOR = Caller(is_operator=True)


@dataclass
class Town(Harness):
    """The community: ann, ben, eva and vic have accounts."""

    def prepare(self) -> None:
        for caller in (ANN, BEN, EVA, VIC):
            self.sign_up(caller)

    @property
    def users(self) -> Users:
        return Users(self.db, now=self.now)

    @property
    def neighbourhoods(self) -> Neighbourhoods:
        return Neighbourhoods(self.db, now=self.now)

    @property
    def memberships(self) -> Memberships:
        return Memberships(self.db, now=self.now)

    @property
    def invitations(self) -> Invitations:
        return Invitations(self.db, now=self.now)

    @property
    def accounts(self) -> Accounts:
        return Accounts(self.db, now=self.now)

    def purge(self, *, dry_run: bool = False) -> PurgeReport:
        """Run the purge once."""
        return AccountPurge(self.blocking, now=self.now).run_once(dry_run=dry_run)

    @property
    def sites(self) -> Sites:
        return Sites(self.db, now=self.now)

    @property
    def posts(self) -> Posts:
        return Posts(self.db, now=self.now)

    @property
    def records(self) -> Records:
        return Records(self.db, now=self.now)

    def sign_up(self, caller: Caller, **fields: Any) -> User:
        """Sign a user in for the first time; the handle is `<name>.bsky.social`."""
        name = caller.require_user().rpartition(":")[2]
        given = {"handle": f"{name}.bsky.social", "display_name": name.title(), **fields}
        return self.run(self.users.sign_in(caller.require_user(), **given))

    def found(self, caller: Caller = ANN, **fields: Any) -> NeighbourhoodView:
        """Create a neighbourhood."""
        draft = NeighbourhoodDraft(**{"name": "Downtown Collective", **fields})
        return self.run(self.neighbourhoods.create(caller, draft))

    def join(self, caller: Caller, place: NeighbourhoodView) -> Membership:
        return self.run(self.memberships.join(caller, place.id))

    def site(self, caller: Caller = ANN, **fields: Any) -> Site:
        draft = SiteDraft(**{"title": "My blog", "template": "blog", "subdomain": "my-blog", **fields})
        return self.run(self.sites.create(caller, draft))

    def post(self, site: Site, **fields: Any) -> Post:
        draft = PostDraft(**{"title": "Hello", "body": "First post", **fields})
        return self.run(self.posts.create(Caller(did=site.did), site.site_id, draft))

    def record(self, caller: Caller = ANN, **fields: Any) -> Record:
        draft = RecordDraft(**{"type": "city.nbhd.note", "value": {"text": "hi"}, **fields})
        return self.run(self.records.create(caller, draft))

    def stored(self, place: NeighbourhoodView) -> Neighbourhood:
        """Return the stored neighbourhood."""
        return self.blocking.require(Neighbourhood, neighbourhood_id=place.id, consistent=True)

    def counts(self, place: NeighbourhoodView) -> tuple[int, int]:
        """Return the stored numbers of members and admins, and check them against the memberships."""
        stored = self.stored(place)
        members = list(self.blocking.all(Membership.of_neighbourhood(place.id).consistent()))
        active = [each for each in members if each.is_active]
        assert stored.member_count == len(active)
        assert stored.admin_count == len([each for each in active if each.is_admin])
        return stored.member_count, stored.admin_count

    def run_beside(self, act: Callable[[AsyncDatabase], Coroutine[Any, Any, object]]) -> None:
        """Do something as another process does, whose requests are not watched."""

        async def work() -> None:
            await act(AsyncDatabase(to_async(self.engine), self.db.scope))

        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, work()).result()

    def items(self, kind: str) -> list[Item]:
        """Return the stored items of a type."""
        return [item for item in self.raw() if item.get("entity_type") == {"S": kind}]

    def pass_time(self, **amount: float) -> None:
        """Move the clock."""
        self.clock.seconds += timedelta(**amount).total_seconds()
