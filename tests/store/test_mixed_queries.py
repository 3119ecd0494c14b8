"""Mixed queries and collections: several entities of one partition in one request, in key order."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from solotable import (
    FROM_SCOPE,
    TTL,
    Database,
    Entity,
    Index,
    Key,
    Query,
    SoftDelete,
    Store,
    Table,
    pattern,
)
from solotable._protocol import requests
from solotable.errors import CursorRejected, DataError, DeclarationError, TenantViolation, UnknownEntity

from .opening import Opening

hub = Table(
    "Hub",
    tenant="org",
    ttl="expires_at",
    indexes=[
        Index("ByDay"),
        Index("Names", projection="KEYS_ONLY"),
    ],
)


class Repo(Entity, table=hub):
    """Sorts after its issues, before its pull requests."""

    key = Key("ORG#{org}#REPO#{name}", "REPO#{name}")
    by_name = Key("ORG#{org}#NAMES", "N#{name}#REPO", index="Names")
    org: str = FROM_SCOPE
    name: str
    stars: int = 0


class Issue(Entity, table=hub):
    """An issue."""

    key = Key("ORG#{org}#REPO#{name}", "ISSUE#{number:06d}")
    by_day = Key("ORG#{org}#DAYS", "{day}#ISSUE#{number:06d}", index="ByDay")
    by_name = Key("ORG#{org}#NAMES", "N#{name}#ISSUE#{number:06d}", index="Names")
    org: str = FROM_SCOPE
    name: str
    number: int
    state: str = "open"
    stars: int = 0
    day: date | None = None

    @pattern
    @classmethod
    def with_repo(cls, name: str) -> Query[Issue | Repo]:
        """The newest issues of a repository, after the repository."""
        return (cls.key.query(name=name) | Repo.key.query(name=name)).descending()


class Pull(Entity, table=hub):
    """A pull request."""

    key = Key("ORG#{org}#REPO#{name}", "REVIEW#{number:06d}")
    by_day = Key("ORG#{org}#DAYS", "{day}#PULL#{number:06d}", index="ByDay")
    org: str = FROM_SCOPE
    name: str
    number: int
    state: str = "open"
    stars: int = 0
    day: date | None = None
    expires_at: Annotated[datetime | None, TTL()] = None


class Star(Entity, table=hub):
    """Can be deleted and restored; sorts after everything else."""

    key = Key("ORG#{org}#REPO#{name}", "STAR#{user}")
    deletion = SoftDelete(grace=timedelta(days=3))
    org: str = FROM_SCOPE
    name: str
    user: str


ranks = Table("Ranks", indexes=[Index("Board", partition=("team:S", "season:S"), sort=("rank:N", "title:S"))])


class Player(Entity, table=ranks):
    """On a board by plain attributes."""

    key = Key("PLAYER#{title}", "PLAYER")
    on_board = Key(("team", "season"), ("rank", "title"), index="Board")
    team: str = "t"
    season: str = "s1"
    rank: int
    title: str


class Guest(Entity, table=ranks):
    """On the same board."""

    key = Key("GUEST#{title}", "GUEST")
    on_board = Key(("team", "season"), ("rank", "title"), index="Board")
    team: str = "t"
    season: str = "s1"
    rank: int
    title: str


class Name(BaseModel):
    """A view."""

    name: str


@pytest.fixture
def hubs(opening: Opening) -> Database:
    return opening(hub)


@pytest.fixture
def db(hubs: Database) -> Store:
    """A repository with 20 issues, 5 pull requests and 3 stars, beside one of the same tenant."""
    store = hubs.tenant("acme")
    for name in ("r", "r2"):
        store.put(Repo(name=name, stars=7))
        for number in range(20):
            store.put(
                Issue(
                    name=name,
                    number=number,
                    state=("open", "closed")[number % 2],
                    stars=number,
                    day=date(2030, 1, 1 + number) if name == "r" else None,
                )
            )
        for number in range(5):
            store.put(
                Pull(
                    name=name,
                    number=number,
                    stars=number,
                    day=date(2030, 1, 2 + number * 4) if name == "r" else None,
                )
            )
        for user in ("a", "b", "c"):
            store.put(Star(name=name, user=user))
    return store


def _shown(rows: Any) -> list[str]:
    """Rows as `I3`, `P1`, `R`."""
    return [f"{type(row).__name__[0]}{getattr(row, 'number', getattr(row, 'user', ''))}" for row in rows]


ISSUES = [f"I{number}" for number in range(20)]
PULLS = [f"P{number}" for number in range(5)]


def test_the_newest_issues_with_their_repo_are_one_request(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    page = db.page(Issue.with_repo("r"), limit=11)
    assert _shown(page) == ["R", *ISSUES[:-11:-1]]
    assert (len(opening.spy.sent), page.scanned) == (1, 11)
    repo, *issues = page
    assert isinstance(repo, Repo)
    assert all(isinstance(each, Issue) for each in issues)
    (request,) = opening.spy.sent
    assert isinstance(request, requests.Query)
    assert (request.limit, request.forward, request.filter) == (11, False, None)


def test_rows_outside_of_the_parts_are_skipped(db: Store, opening: Opening) -> None:
    query = Issue.key.query(name="r") | Pull.key.query(name="r")
    opening.spy.sent.clear()
    assert _shown(db.all(query)) == [*ISSUES, *PULLS]
    (request,) = opening.spy.sent
    assert isinstance(request, requests.Query)
    assert request.key[1].operator == "BETWEEN"
    assert [value["S"] for value in request.key[1].values] == ["ISSUE#", "REVIEW$"]
    assert _shown(db.all(query.descending())) == [*ISSUES, *PULLS][::-1]
    assert db.count(query) == 25
    first = db.first(query.descending())
    assert isinstance(first, Pull)
    assert first.number == 4
    assert _shown(db.page(query, limit=22)) == [*ISSUES, *PULLS[:2]]


def test_each_part_has_its_range(db: Store) -> None:
    some = Issue.key.query(name="r").between(number=(3, 5)) | Pull.key.query(name="r").since(number=3)
    assert _shown(db.all(some)) == ["I3", "I4", "I5", "P3", "P4"]
    late = some | Repo.key.query(name="r")
    assert _shown(db.all(late)) == ["I3", "I4", "I5", "R", "P3", "P4"]
    two = Issue.key.query(name="r").before(number=2) | Issue.key.query(name="r").after(number=17)
    assert _shown(db.all(two)) == ["I0", "I1", "I18", "I19"]
    overlapping = Issue.key.query(name="r", number=3) | Issue.key.query(name="r").until(number=4)
    assert _shown(db.all(overlapping)) == ISSUES[:5]
    empty = Issue.key.query(name="r").between(number=(5, 3)) | Pull.key.query(name="r", number=2)
    assert _shown(db.all(empty)) == ["P2"]
    nothing = Issue.key.query(name="r").between(number=(5, 3)) | Pull.key.query(name="r").before(number=0)
    assert (list(db.all(nothing)), db.count(nothing), len(db.page(nothing))) == ([], 0, 0)


def test_a_filter_is_of_a_part_or_of_all(db: Store) -> None:
    each = Issue.key.query(name="r").where(lambda i: i.state == "closed") | Pull.key.query(name="r").where(
        lambda p: p.stars > 2
    )
    assert _shown(db.all(each)) == [*ISSUES[1::2], "P3", "P4"]
    assert db.count(each) == 12
    one = Issue.key.query(name="r").where(lambda i: i.stars > 17) | Repo.key.query(name="r")
    assert _shown(db.all(one)) == ["I18", "I19", "R"]
    both = Issue.key.query(name="r") | Repo.key.query(name="r")
    assert _shown(db.all(both, where=lambda row: row.stars == 7)) == ["I7", "R"]
    assert _shown(db.page(both.where(lambda row: row.stars > 18), limit=5)) == ["I19"]
    twice = Issue.key.query(name="r").until(number=9).where(lambda i: i.stars > 8) | Issue.key.query(
        name="r"
    ).after(number=9).where(lambda i: i.stars < 11)
    assert _shown(db.all(twice)) == ["I9", "I10"]
    with pytest.raises(DeclarationError, match="Repo"):
        db.page(both, where=lambda row: row.state == "open")  # type: ignore[union-attr]  # Repo has none


def test_types_interleave_by_day(db: Store, opening: Opening) -> None:
    days = Issue.by_day.query() | Pull.by_day.query()
    opening.spy.sent.clear()
    newest = db.page(days.descending(), limit=5)
    assert _shown(newest) == ["I19", "I18", "P4", "I17", "I16"]
    assert len(opening.spy.sent) == 1
    week = (Issue.by_day.query() | Pull.by_day.query()).between(day=(date(2030, 1, 5), date(2030, 1, 7)))
    assert _shown(db.all(week)) == ["I4", "I5", "P1", "I6"]


def test_an_index_without_the_items_fetches_them(db: Store, opening: Opening) -> None:
    named = Issue.by_name.query(name="r") | Repo.by_name.query(name="r")
    opening.spy.sent.clear()
    assert _shown(db.all(named)) == [*ISSUES, "R"]
    assert [type(each).__name__ for each in opening.spy.sent] == ["Query", "BatchGetItem"]
    with pytest.raises(DeclarationError, match="does not project 'stars'"):
        db.page(named, where=lambda row: row.stars > 1)


def test_native_sort_keys_mix(opening: Opening) -> None:
    db = opening(ranks)
    for rank in (-3, 2, 10, 10):
        db.put(Player(rank=rank, title=f"p{rank}"))
        db.put(Guest(rank=rank + 1, title=f"g{rank}"))
    db.put(Guest(rank=10, title="a"))
    db.put(Guest(rank=1, title="other", season="s2"))
    board = {"team": "t", "season": "s1"}
    ranked = Player.on_board.query(**board) | Guest.on_board.query(**board)
    assert [row.title for row in db.all(ranked)] == ["p-3", "g-3", "p2", "g2", "a", "p10", "g10"]
    some = Player.on_board.query(**board, rank=10) | Guest.on_board.query(**board).before(rank=4)
    assert [row.title for row in db.all(some)] == ["g-3", "g2", "p10"]
    ten = Player.on_board.query(**board, rank=10).since(title="b") | Guest.on_board.query(**board, rank=10)
    assert [row.title for row in db.all(ten.descending())] == ["p10", "a"]
    started = Player.on_board.query(**board, rank=10).starts_with(title="p1") | Guest.on_board.query(
        **board, rank=10
    ).starts_with(title="b")
    assert [row.title for row in db.all(started)] == ["p10"]
    players, guests = db.collection(
        Player.on_board, Guest.on_board, root=False, team="t", season="s1", limit=3
    )
    assert ([each.title for each in players], [each.title for each in guests]) == (["p-3", "p2"], ["g-3"])


def test_hidden_items_are_not_rows(db: Store, opening: Opening) -> None:
    db.put(Pull(name="r", number=9, expires_at=opening.clock.at(-10)))
    db.delete(Star, name="r", user="b")
    query = Pull.key.query(name="r") | Star.key.query(name="r")
    assert _shown(db.all(query)) == [*PULLS, "Sa", "Sc"]
    assert db.count(query) == 7
    assert _shown(db.page(query, limit=6)) == [*PULLS, "Sa"]


def test_a_type_that_no_entity_has_is_an_error(db: Store, opening: Opening) -> None:
    db.delete(Repo, name="r2")
    ghost = {**opening.only(Repo), "_type": {"S": "Ghost"}}
    query = Issue.key.query(name="r") | Pull.key.query(name="r")
    # Outside of the parts, an item may be of any type.
    opening.plant(hub, ghost)
    assert db.count(query) == 25
    opening.plant(hub, {**ghost, "SK": {"S": "ISSUE#000003"}})
    with pytest.raises(UnknownEntity):
        list(db.all(query))
    page = db.page(query, unknown="skip")
    assert (len(page), page.skipped) == (24, 2)
    issues, _ = db.collection(Issue, Pull, root=False, name="r", unknown="skip")
    assert len(issues) == 19


def test_a_tenant_reads_only_its_rows(hubs: Database, db: Store) -> None:
    other = hubs.tenant("other")
    query = Issue.with_repo("r")
    assert list(other.all(query)) == []
    with pytest.raises(TenantViolation):
        other.page(Issue.key.query(org="acme", name="r") | Repo.key.query(org="acme", name="r"))
    cursor = db.page(query, limit=3).cursor
    with pytest.raises(CursorRejected):
        other.page(query, limit=3, cursor=cursor)
    seen = hubs.admin().all(Issue.key.query(org="acme", name="r") | Repo.key.query(org="acme", name="r"))
    assert len(list(seen)) == 21


WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "two indexes": (
        lambda: Issue.key.query(name="r") | Pull.by_day.query(),
        DeclarationError,
        "one table or one index, got Hub and Hub/ByDay",
    ),
    "a view": (lambda: Issue.key.query(name="r").select(Name) | Repo.key.query(name="r"), DataError, "view"),
    "a view of both": (
        lambda: (Issue.key.query(name="r") | Repo.key.query(name="r")).select(Name),
        DataError,
        r"remove select\(Name\)",
    ),
    "two directions": (
        lambda: Issue.key.query(name="r").descending() | Pull.key.query(name="r"),
        DataError,
        r"Pull.key is ascending and Issue.key is descending",
    ),
    "consistent on a global index": (
        lambda: Issue.by_day.query() | Query.consistent(Pull.by_day.query()),
        DeclarationError,
        "no consistent reads",
    ),
    "a range that one part lacks": (
        lambda: (Issue.key.query(name="r") | Repo.key.query(name="r")).since(number=3),
        DataError,
        "'number' is not one",
    ),
    "no query": (lambda: operator.or_(Issue.key.query(name="r"), 1), TypeError, "unsupported operand"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_mixed_is_rejected(name: str) -> None:
    mix, error, match = WRONG[name]
    with pytest.raises(error, match=match):
        mix()


def test_two_partitions_cannot_be_mixed(db: Store) -> None:
    with pytest.raises(
        DeclarationError, match=r"share a partition; got ORG#acme#REPO#r and ORG#acme#REPO#r2"
    ):
        db.page(Issue.key.query(name="r") | Repo.key.query(name="r2"))


def test_consistent_reads_and_explain(db: Store, opening: Opening) -> None:
    query = Issue.key.query(name="r").consistent() | Repo.key.query(name="r")
    opening.spy.sent.clear()
    assert db.count(query) == 21
    assert all(isinstance(each, requests.Query) and each.consistent for each in opening.spy.sent)
    opening.spy.sent.clear()
    explained = db.explain(query)
    assert (explained.queries, opening.spy.sent) == (1, [])
    assert '"KeyConditionExpression"' in str(explained)
    assert repr(query) == "<Query Issue.key(name='r')> | <Query Repo.key(name='r')>"
    assert (Issue.with_repo("r").described, query.described) == ("Issue.with_repo", "Issue.key | Repo.key")


def test_collections_in_pages_without_a_root_and_with_ranges(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    newest = db.collection(Repo, Issue, name="r", limit=4, descending=True)
    repo, issues = newest
    assert repo is not None
    assert (repo.name, _shown(issues), newest.scanned) == ("r", ["I19", "I18", "I17"], 4)
    assert len(opening.spy.sent) == 1
    more = db.collection(Repo, Issue, name="r", limit=4, descending=True, cursor=newest.cursor)
    assert (more[0], _shown(more[1])) == (None, ["I16", "I15", "I14", "I13"])
    back = db.collection(Repo, Issue, name="r", limit=4, descending=True, cursor=more.previous)
    assert back == newest
    listed, pulls = db.collection(Issue, Pull, root=False, name="r")
    assert (_shown(listed), _shown(pulls)) == (ISSUES, PULLS)
    stars: list[Star]
    repo, issues, pulls, stars = db.collection(
        Repo, Issue.key.query(name="r").after(number=17), Pull.key, Star, name="r"
    )
    assert repo is not None
    assert (_shown(issues), _shown(pulls), _shown(stars)) == (["I18", "I19"], PULLS, ["Sa", "Sb", "Sc"])
    by_day, pulls_by_day = db.collection(Issue.by_day, Pull.by_day, root=False, limit=3)
    assert (_shown(by_day), _shown(pulls_by_day)) == (["I0", "I1"], ["P0"])


def test_collections_say_what_is_wrong(db: Store) -> None:
    with pytest.raises(DataError, match=r"collection\(Issue, ...\).*20 Issue items.*root=False"):
        db.collection(Issue, Repo, name="r")
    with pytest.raises(DataError, match="needs limit="):
        db.collection(Repo, Issue, name="r", cursor="x")
    with pytest.raises(DataError, match="Issue twice"):
        db.collection(Issue.key.query(name="r", number=1), Issue, name="r", root=False)
    with pytest.raises(DataError, match="got none"):
        db.collection(name="r")
    with pytest.raises(CursorRejected):
        db.collection(Repo, Issue, name="r", limit=4, cursor="x")


def test_a_mixed_query_is_read_in_pages_both_ways(db: Store) -> None:
    query = Issue.key.query(name="r") | Repo.key.query(name="r") | Star.key.query(name="r")
    for asked in (query, query.descending()):
        rows = _shown(db.all(asked))
        assert len(rows) == 24
        walk = random.Random(7)
        at, cursor = 0, None
        for _ in range(30):
            size = walk.randint(1, 9)
            page = db.page(asked, limit=size, cursor=cursor)
            assert _shown(page) == rows[at : at + size]
            if page.cursor is not None and walk.random() < 0.6:
                at, cursor = at + len(page), page.cursor
            elif page.previous is not None:
                before = db.page(asked, limit=3, cursor=page.previous)
                assert _shown(before) == rows[max(0, at - 3) : at]
                cursor = before.cursor
