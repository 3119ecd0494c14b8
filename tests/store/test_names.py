"""Names that change and redirects from the former ones (S0.20, C0.5)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from solotable import (
    ANY,
    FROM_SCOPE,
    Database,
    Entity,
    History,
    Index,
    Key,
    Names,
    Redirect,
    Store,
    Table,
    Unique,
    Version,
)
from solotable._connect import connect
from solotable._protocol.requests import DeleteItem, GetItem, Query, Request, TransactWriteItems
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    CursorRejected,
    DataError,
    DeclarationError,
    NotFound,
    SolotableError,
    TransactionFailed,
    VersionConflict,
)

from .opening import Opening

web = Table("Web", tenant="tenant_id", indexes=[Index("GSI1")])


class Content(Entity, table=web):
    key = Key("TENANT#{tenant_id}", "CONTENT#{node_id}#LATEST")
    history = History("CONTENT#{node_id}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    node_id: str
    slug: str
    version: Annotated[int, Version()] = 0


class Route(Entity, table=web):
    key = Key("TENANT#{tenant_id}", "ROUTE#{path}")
    by_node = Key("TENANT#{tenant_id}#NODE#{node_id}", "ROUTE#{path}", index="GSI1")
    names = Names("path", protected=("/", "/contact"), most=5)
    tenant_id: str = FROM_SCOPE
    path: Annotated[str, Field(pattern="^/")]
    node_id: str
    badge: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


class Fixed(Entity, table=web):
    key = Key("TENANT#{tenant_id}", "FIXED#{name}")
    names = Names("name")
    history = History("FIXED#{name}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    name: str
    version: Annotated[int, Version()] = 0


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(web)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def items(opening: Opening) -> dict[str, str]:
    """Return what stands under each name: `= node` or `-> name`."""
    found = {}
    for item in opening.raw(web):
        if item["SK"]["S"].startswith("ROUTE#"):
            name = item["SK"]["S"].removeprefix("ROUTE#")
            is_redirect = item["_type"]["S"] == "_redirect:Route"
            found[name] = f"-> {item['to']['S']}" if is_redirect else f"= {item['node_id']['S']}"
    return found


def test_s0_20_a_rename_leaves_a_redirect(db: Store, opening: Opening) -> None:
    route = db.create(Route(path="/a", node_id="n"))
    renamed = db.names(Route).rename(path="/a", to="/b", version=1)
    assert route.path == "/a", "the caller's object is as it was"
    assert (renamed.path, renamed.node_id, renamed.version) == ("/b", "n", 2)
    assert db.require(Route, path="/b") == renamed
    assert db.get(Route, path="/a") is None
    (redirect,) = [item for item in opening.raw(web) if item["SK"]["S"] == "ROUTE#/a"]
    assert redirect == {
        "PK": {"S": "TENANT#acme"},
        "SK": {"S": "ROUTE#/a"},
        "_type": {"S": "_redirect:Route"},
        "IsRedirect": {"BOOL": True},
        "to": {"S": "/b"},
    }
    assert [each.path for each in db.all(Route.by_node.query(node_id="n"))] == ["/b"]
    assert list(db.all(Route.key.query())) == [renamed]


def test_a_name_is_resolved_by_one_read(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = names.rename(db.create(Route(path="/a", node_id="n")), to="/b")
    opening.spy.sent.clear()
    assert names.resolve("/b") == route
    assert names.resolve("/a") == Redirect(name="/a", to="/b")
    assert names.resolve(path="/nothing") is None
    assert [type(request) for request in opening.spy.sent] == [GetItem] * 3
    assert names.resolve("/a", follow=True) == Redirect(name="/a", to="/b", entity=route)
    assert len(opening.spy.sent) == 5
    beside = opening.beside(web).tenant("acme")

    def rename_between() -> None:
        beside.names(Route).rename(route, to="/c")

    reads = 0

    def before(request: Any) -> None:
        nonlocal reads
        reads += 1
        if reads == 2:
            opening.spy.before = None
            rename_between()

    opening.spy.before = before
    found = names.resolve("/a", follow=True)
    assert isinstance(found, Redirect)
    assert found.entity is not None
    assert (found.to, found.entity.path) == ("/c", "/c")


def test_c0_5_chains_collapse(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    db.create(Route(path="/a", node_id="n"))
    for old, new in ("ab", "bc", "cd"):
        names.rename(f"/{old}", to=f"/{new}", version=ANY)
    assert items(opening) == {"/a": "-> /d", "/b": "-> /d", "/c": "-> /d", "/d": "= n"}
    assert names.aliases("/d") == ["/a", "/b", "/c"]


def test_c0_5_taking_back_an_old_name(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = db.create(Route(path="/a", node_id="n"))
    for _ in range(3):
        route = names.rename(route, to="/b")
        assert items(opening) == {"/a": "-> /b", "/b": "= n"}
        route = names.rename(route, to="/a")
        assert items(opening) == {"/b": "-> /a", "/a": "= n"}
    assert names.aliases("/a") == ["/b"]
    route = names.rename(names.rename(route, to="/c"), to="/b")
    assert items(opening) == {"/a": "-> /b", "/c": "-> /b", "/b": "= n"}


def test_a_name_of_another_is_refused(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    db.create(Route(path="/a", node_id="n"))
    other = names.rename(db.create(Route(path="/x", node_id="m")), to="/y")
    before = items(opening)
    with pytest.raises(AlreadyExists, match="Rename Route path='/a': '/y' is taken"):
        names.rename("/a", to="/y", version=1)
    with pytest.raises(AlreadyExists, match=r"'/x' redirects to '/y'; release\(\) the redirect first"):
        names.rename("/a", to="/x", version=1)
    for make in (db.create, db.put):
        with pytest.raises(AlreadyExists, match=r"'/x' redirects to '/y'; release\(\) the redirect first"):
            make(Route(path="/x", node_id="new"))
    assert items(opening) == before
    names.release("/x")
    assert items(opening) == {"/a": "= n", "/y": "= m"}
    assert names.aliases("/y") == []
    assert db.require(Route, path="/y").version == other.version + 1
    assert names.rename("/a", to="/x", version=1).path == "/x"
    with pytest.raises(NotFound, match="'/y': it is not a former name"):
        names.release("/y")
    with pytest.raises(NotFound, match="'/zzz': it is not a former name"):
        names.release(path="/zzz")


def _check(db: Store) -> None:
    with db.transaction() as tx:
        tx.check(Route, path="/a")
        tx.create(Content(node_id="c", slug="/a"))


WRITES: dict[str, Callable[[Store], Any]] = {
    "update": lambda db: db.update(Route, path="/a", version=ANY, set={"node_id": "x"}),
    "update of a version": lambda db: db.update(Route, path="/a", version=1, set={"node_id": "x"}),
    "put": lambda db: db.put(Route(path="/a", node_id="x", version=1)),
    "delete": lambda db: db.delete(Route, path="/a", version=ANY),
    "rename": lambda db: db.names(Route).rename("/a", to="/c", version=ANY),
    "aliases": lambda db: db.names(Route).aliases("/a"),
    "check": _check,
}


@pytest.mark.parametrize("way", WRITES)
def test_no_write_treats_a_redirect_as_an_entity(db: Store, opening: Opening, way: str) -> None:
    db.names(Route).rename(db.create(Route(path="/a", node_id="n")), to="/b")
    before = opening.raw(web)
    opening.spy.sent.clear()
    with pytest.raises((NotFound, ConditionFailed, TransactionFailed)):
        WRITES[way](db)
    assert len(opening.spy.sent) <= 2, "it is not tried again and again"
    assert opening.raw(web) == before


@pytest.mark.parametrize("name", ["/", "/contact"])
def test_c0_5_protected_names_are_neither_renamed_nor_deleted(db: Store, opening: Opening, name: str) -> None:
    route = db.create(Route(path=name, node_id="home"))
    route = db.update(route, set={"node_id": "other"})
    route = db.put(route)

    def in_transaction() -> None:
        with db.transaction() as tx:
            tx.delete(route)

    opening.spy.sent.clear()
    writes: list[Callable[[], object]] = [
        lambda: db.delete(route),
        lambda: db.delete(Route, path=name, version=ANY),
        in_transaction,
        lambda: db.names(Route).rename(route, to="/elsewhere"),
    ]
    for write in writes:
        with pytest.raises(DataError, match=f"Route path='{name}' is protected and cannot be"):
            write()
    assert {type(request) for request in opening.spy.sent} == {GetItem}, "nothing was sent but readings"
    with (
        pytest.raises(DataError, match="names, which a batch cannot write"),
        db.batch(overwrite=True) as batch,
    ):
        batch.delete(route)
    assert db.require(Route, path=name) == route


def test_deleting_an_entity_removes_its_redirects(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = names.rename(names.rename(db.create(Route(path="/a", node_id="n")), to="/b"), to="/c")
    assert db.delete(route) == route
    assert items(opening) == {}
    other = db.create(Route(path="/a", node_id="m"))
    assert names.aliases("/a") == []
    names.rename(other, to="/b")
    with db.transaction() as tx:
        tx.delete(Route, path="/b", version=ANY)
    assert items(opening) == {}


def test_no_put_changes_the_former_names(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = names.rename(db.create(Route(path="/a", node_id="n")), to="/b")
    # A copy that was not read knows nothing of former names.
    fresh = db.put(Route(path="/b", node_id="m", version=2))
    assert fresh.unknown_attributes == route.unknown_attributes
    assert names.aliases("/b") == ["/a"]
    copy = db.create(route.model_copy(update={"path": "/copy", "version": 0}))
    assert copy.unknown_attributes == {}
    assert names.aliases("/copy") == []
    names.rename(fresh, to="/c")
    assert items(opening) == {"/a": "-> /c", "/b": "-> /c", "/c": "= m", "/copy": "= n"}


def test_too_many_former_names_are_an_error(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = db.create(Route(path="/0", node_id="n"))
    for number in range(1, 6):
        route = names.rename(route, to=f"/{number}")
    with pytest.raises(
        DataError, match=r"has 5 former names, which is the maximum; release\(\).*oldest, '/0'"
    ):
        names.rename(route, to="/6")
    assert names.rename(route, to="/3").path == "/3", "its own name back is no more than before"
    names.release("/0")
    assert names.rename("/3", to="/6", version=ANY).path == "/6"
    assert len(items(opening)) == 6


def test_a_rename_is_refused_where_it_makes_no_sense(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    db.create(Route(path="/a", node_id="n"))
    opening.spy.sent.clear()
    refusals: list[tuple[Callable[[], Any], type[SolotableError], str]] = [
        (lambda: names.rename("/a", to="/a", version=1), DataError, "already has this name"),
        (lambda: names.rename("/a", to="b", version=1), DataError, r"Route.path = 'b': .*match"),
        (
            lambda: names.rename("/a", to="/b"),
            DeclarationError,
            "Route needs version=",
        ),
        (lambda: names.rename("/zz", to="/b", version=1), NotFound, "Route not found: .*path='/zz'"),
        (lambda: names.rename("/a", path="/b", to="/c", version=1), DataError, "Give the name once"),
        (lambda: names.rename("/a", nope=1, to="/c", version=1), DataError, "no part 'nope'"),  # type: ignore[call-arg]  # what the test is about
        (
            lambda: names.rename("/a", to="/c", version=7),
            VersionConflict,
            "expected version 7, found version 1",
        ),
        (lambda: db.names(Content), DeclarationError, "Content has no Names"),
    ]
    for write, kind, text in refusals:
        with pytest.raises(kind, match=text):
            write()
    assert items(opening) == {"/a": "= n"}
    fixed = db.create(Fixed(name="x"))
    with pytest.raises(DeclarationError, match="Fixed cannot be renamed, because its history"):
        db.names(Fixed).rename(fixed, to="y")


def test_a_rename_beside_a_change_of_the_content_is_one_transaction(db: Store, opening: Opening) -> None:
    content = db.create(Content(node_id="n", slug="/a"))
    route = db.create(Route(path="/a", node_id="n"))
    names = db.names(Route)
    with db.transaction() as tx:
        tx.update(content, set={"slug": "/b"})
        tx.include(names.renaming(route, to="/b"))
    assert items(opening) == {"/a": "-> /b", "/b": "= n"}
    assert db.require(Content, node_id="n").slug == "/b"
    assert len(opening.spy.of(TransactWriteItems)[-1].actions) == 4

    def stale() -> None:
        with db.transaction() as tx:
            tx.update(content, set={"slug": "/c"})
            tx.include(names.renaming("/b", to="/c", version=2))

    with pytest.raises(
        TransactionFailed, match="Update Content node_id='n': expected version 1, found version 2"
    ):
        stale()
    assert items(opening) == {"/a": "-> /b", "/b": "= n"}


def test_a_unique_value_moves_with_the_name(db: Store) -> None:
    names = db.names(Route)
    route = names.rename(db.create(Route(path="/a", node_id="n", badge="gold")), to="/b")
    with pytest.raises(SolotableError, match="badge = 'gold' is already used by Route path='/b'"):
        db.create(Route(path="/c", node_id="m", badge="gold"))
    db.delete(db.update(route, set={"node_id": "x"}))
    db.create(Route(path="/c", node_id="m", badge="gold"))


def test_tenants_have_separate_names(db: Store, base: Database) -> None:
    theirs = base.tenant("globex")
    db.names(Route).rename(db.create(Route(path="/a", node_id="n")), to="/b")
    theirs.create(Route(path="/a", node_id="t"))
    found = theirs.names(Route).resolve("/a")
    assert isinstance(found, Route)
    assert found.node_id == "t"
    assert theirs.names(Route).resolve("/b") is None
    admin = base.admin().names(Route)
    assert admin.resolve("/a", tenant_id="acme") == Redirect(name="/a", to="/b")


def test_an_orphaned_redirect_can_be_released(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    redirect = {"PK": {"S": "TENANT#acme"}, "SK": {"S": "ROUTE#/old"}, "_type": {"S": "_redirect:Route"}}
    opening.plant(web, {**redirect, "to": {"S": "/nowhere"}, "IsRedirect": {"BOOL": True}})
    assert names.resolve("/old", follow=True) is None
    names.release("/old")
    assert items(opening) == {}


def test_a_release_that_is_outrun_by_a_rename_there_and_back(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    db.create(Route(path="/a", node_id="n"))
    names.rename("/a", to="/b", version=ANY)
    beside = opening.beside(web).tenant("acme").names(Route)

    def rename_away() -> None:
        beside.rename("/b", to="/c", version=ANY)
        opening.spy.before = rename_back

    def rename_back(request: Request[Any]) -> None:
        if isinstance(request, DeleteItem | TransactWriteItems):
            opening.spy.before = None
            beside.rename("/c", to="/b", version=ANY)

    # The first read finds the redirect to /b, the second finds that /b has become a redirect.
    opening.spy.once(GetItem, lambda: opening.spy.once(GetItem, rename_away))
    with pytest.raises(ConditionFailed, match="another writer renamed it"):
        names.release("/a")
    assert items(opening) == {"/a": "-> /b", "/b": "= n", "/c": "-> /b"}
    assert set(names.aliases("/b")) == {"/a", "/c"}


def test_a_rename_that_is_outrun(db: Store, opening: Opening) -> None:
    names = db.names(Route)
    route = db.create(Route(path="/a", node_id="n"))
    beside = opening.beside(web).tenant("acme")
    opening.spy.once(TransactWriteItems, lambda: beside.names(Route).rename(route, to="/theirs"))
    with pytest.raises((VersionConflict, NotFound)):
        names.rename(route, to="/mine")
    assert items(opening) == {"/a": "-> /theirs", "/theirs": "= n"}
    route = beside.require(Route, path="/theirs")
    opening.spy.once(TransactWriteItems, lambda: beside.update(route, set={"node_id": "m"}))
    renamed = names.rename("/theirs", to="/c", version=ANY)
    assert (renamed.node_id, renamed.version) == ("m", 4), "with ANY it is planned anew"
    assert items(opening) == {"/a": "-> /c", "/theirs": "-> /c", "/c": "= m"}


SPACES = [f"/{number}" for number in range(6)]


def play(db: Store, seed: int) -> int:
    """Rename, release and create over few names; return how many of the tries were done."""
    names = db.names(Route)
    done = 0
    for step in range(15):
        old, new = SPACES[(seed + step) % 6], SPACES[(seed * 2 + step * 3 + 1) % 6]
        try:
            if step % 5 == 4:
                names.release(old)
            elif step % 7 == 6:
                db.create(Route(path=new, node_id=f"s{seed}"))
            else:
                names.rename(old, to=new, version=ANY)
            done += 1
        except (NotFound, ConditionFailed, DataError):
            continue
    return done


def play_file(url: str, seed: int) -> int:
    with connect(url, web) as base:
        return play(base.tenant("acme"), seed)


def whole(db: Store) -> None:
    """Check that every name is an entity's own or a former name that its entity knows of."""
    names = db.names(Route)
    held = {route.path: route for route in db.all(Route.key.query())}
    leading = 0
    for path in SPACES:
        found = names.resolve(path, consistent=True)
        if isinstance(found, Redirect):
            assert found.to in held
            assert path in names.aliases(found.to)
            leading += 1
    assert sum(len(names.aliases(path)) for path in held) == leading
    assert {"n0", "n1"} <= {route.node_id for route in held.values()}, "nobody was lost or written over"


def test_c0_5_names_stay_consistent_under_threads(opening: Opening) -> None:
    db = opening.beside(web).tenant("acme")
    for number in range(2):
        db.create(Route(path=SPACES[number], node_id=f"n{number}"))
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda seed: play(db, seed), range(4))) > 0
    whole(db)


def test_c0_5_names_stay_consistent_under_processes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'web.db'}"
    with connect(url, web) as base:
        db = base.tenant("acme")
        for number in range(2):
            db.create(Route(path=SPACES[number], node_id=f"n{number}"))
        with multiprocessing.get_context("spawn").Pool(3) as pool:
            assert sum(pool.starmap(play_file, [(url, seed) for seed in range(3)])) > 0
        whole(db)


def test_redirects_are_listed_page_by_page_with_a_projection(opening: Opening) -> None:
    base = opening(web)
    db, other = base.tenant("acme"), base.tenant("zeta")
    for number in range(3):
        db.create(Route(path=f"/{number}", node_id="n"))
        db.names(Route).rename(f"/{number}", to=f"/{number}a", version=ANY)
        db.names(Route).rename(f"/{number}a", to=f"/{number}b", version=ANY)
    other.create(Route(path="/z", node_id="n"))
    other.names(Route).rename("/z", to="/y", version=ANY)
    opening.spy.sent.clear()
    found: list[Redirect[Route]] = []
    cursor: str | None = None
    while True:
        page = db.names(Route).redirects(Route.key.query(), limit=2, cursor=cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    assert {(each.name, each.to) for each in found} == {
        (f"/{number}{end}", f"/{number}b") for number in range(3) for end in ("", "a")
    }
    assert len(opening.spy.sent) >= 5
    for request in opening.spy.sent:
        assert isinstance(request, Query)
        assert "badge" not in repr(request.projection)
        assert request.projection
    first = db.names(Route).redirects(Route.key.query(), limit=1)
    with pytest.raises(CursorRejected):
        other.names(Route).redirects(Route.key.query(), limit=1, cursor=first.cursor)
    with pytest.raises(DataError, match="limit= must be at least 1"):
        db.names(Route).redirects(Route.key.query(), limit=0)
