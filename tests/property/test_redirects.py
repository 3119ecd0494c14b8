"""Names beside a dict (C0.5): created, renamed, taken back, released and deleted in whatever order.

Every name is an entity's own, leads to one in one hop, or is free, exactly as the dict says; no name leads
to a redirect, and protected names stay.
"""

from __future__ import annotations

from typing import Annotated

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from solotable import ANY, FROM_SCOPE, Entity, Key, Names, Redirect, Table, Version
from solotable._connect import connect
from solotable.errors import AlreadyExists, DataError, NotFound

site = Table("Site", tenant="tenant_id")
PROTECTED = ("/", "/contact")
MOST = 4
paths = st.sampled_from(["/a", "/b", "/c", "/d", "/e", "/f", "/a b#c", *PROTECTED])


class Route(Entity, table=site):
    key = Key("TENANT#{tenant_id}", "ROUTE#{path}")
    names = Names("path", protected=PROTECTED, most=MOST)
    tenant_id: str = FROM_SCOPE
    path: str
    page: int
    version: Annotated[int, Version()] = 0


class AgainstADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.base = connect("sqlite://", site)
        self.db = self.base.tenant("acme")
        self.names = self.db.names(Route)
        #: The page that each name is the own name of, and the former names of each page, the oldest first.
        self.own: dict[str, int] = {}
        self.former: dict[int, list[str]] = {}
        self.pages = 0

    def teardown(self) -> None:
        self.base.close()

    @initialize()
    def home(self) -> None:
        self.create("/")

    def leads(self) -> dict[str, int]:
        return {name: page for page, names in self.former.items() for name in names}

    @rule(path=paths)
    def create(self, path: str) -> None:
        self.pages += 1
        free = path not in self.own and path not in self.leads()
        try:
            self.db.create(Route(path=path, page=self.pages))
        except AlreadyExists as refused:
            assert not free
            assert (path in self.own) != ("redirects to" in str(refused))
        else:
            assert free
            self.own[path] = self.pages
            self.former[self.pages] = []

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        page = self.own.get(old)
        wanted: type[Exception] | None = None
        if page is None:
            wanted = NotFound
        elif old == new or old in PROTECTED or len({*self.former[page], old} - {new}) > MOST:
            wanted = DataError
        elif new in self.own or self.leads().get(new, page) != page:
            wanted = AlreadyExists
        try:
            renamed = self.names.rename(old, to=new, version=ANY)
        except (NotFound, DataError, AlreadyExists) as refused:
            assert type(refused) is wanted
            return
        assert wanted is None
        assert page is not None
        assert (renamed.path, renamed.page) == (new, page)
        del self.own[old]
        self.own[new] = page
        self.former[page] = [*(each for each in self.former[page] if each != new), old]

    @rule(path=paths)
    def delete(self, path: str) -> None:
        page = self.own.get(path)
        try:
            found = self.db.delete(Route, path=path, version=ANY)
        except DataError:
            assert path in PROTECTED
            assert page is not None
            return
        except AlreadyExists:
            assert path in self.leads()
            return
        assert (found and found.page) == page
        if page is not None:
            del self.own[path], self.former[page]

    @rule(path=paths)
    def release(self, path: str) -> None:
        page = self.leads().get(path)
        try:
            self.names.release(path)
        except NotFound:
            assert page is None
            return
        assert page is not None
        self.former[page].remove(path)

    @rule(path=paths)
    def put_a_copy_that_was_not_read(self, path: str) -> None:
        there = self.db.get(Route, path=path)
        assert (there and there.page) == self.own.get(path)
        if there is not None:
            self.db.put(Route(path=path, page=there.page, version=there.version))

    @invariant()
    def every_name_is_as_the_dict_says(self) -> None:
        leads = self.leads()
        home = {page: name for name, page in self.own.items()}
        for path in {*self.own, *leads, "/a", "/f"}:
            found = self.names.resolve(path, follow=True)
            if path in self.own:
                assert isinstance(found, Route)
                assert found.page == self.own[path]
                assert self.names.aliases(path) == self.former[self.own[path]]
            elif path in leads:
                assert isinstance(found, Redirect)
                assert found.to == home[leads[path]], "one hop, never a chain"
                assert found.entity is not None
                assert found.entity.page == leads[path]
            else:
                assert found is None
        assert {route.path: route.page for route in self.db.all(Route.key.query())} == self.own
        assert self.own["/"] == 1, "protected, whatever happens"


AgainstADict.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestNames = AgainstADict.TestCase
