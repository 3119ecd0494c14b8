"""Keys as other programs write them, indexes over the table's own key attributes, and alternatives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal

import pytest

from solotable import FROM_SCOPE, Entity, Index, Key, KeyFormat, SoftDelete, Table
from solotable._entities.lint import lint
from solotable._protocol.requests import UpdateItem
from solotable.errors import DataError, DeclarationError, TenantViolation

from .opening import Opening

electro = Table(
    "Electro",
    partition="pk",
    sort="sk",
    key_format=KeyFormat(escape=False, case="lower"),
    indexes=[Index("gsi1", partition="gsi1pk", sort="gsi1sk")],
)


class Copy(Entity, table=electro):
    """A copy of a book, with keys as ElectroDB writes them."""

    key = Key("$Library#isbn_{isbn}", "$copy_1#shelf_{shelf}#number_{number:d}")
    by_owner = Key("$Library#owner_{owner}", "{isbn}", index="gsi1", format=KeyFormat(escape=False))
    isbn: str
    shelf: str
    number: int
    owner: str | None = None
    notes: str = ""


def test_keys_are_folded_and_fields_are_not(opening: Opening) -> None:
    db = opening(electro)
    copy = db.put(Copy(isbn="X 1!", shelf="Main Hall", number=7, owner="Zoe"))
    item = opening.only(Copy)
    assert item["pk"] == {"S": "$library#isbn_x 1!"}
    assert item["sk"] == {"S": "$copy_1#shelf_main hall#number_7"}
    assert item["isbn"] == {"S": "X 1!"}
    assert db.get(Copy, isbn="x 1!", shelf="MAIN HALL", number=7) == copy
    assert list(db.all(Copy.key.query(isbn="X 1!", shelf="main hall"))) == [copy]


def test_an_index_key_is_computed_from_the_stored_case(opening: Opening) -> None:
    db = opening(electro)
    db.put(Copy(isbn="Abc", shelf="A", number=1))
    db.update(Copy, isbn="ABC", shelf="a", number=1, set={"owner": "Zoe"})
    assert opening.only(Copy)["gsi1sk"] == {"S": "Abc"}
    assert [copy.isbn for copy in db.all(Copy.by_owner.query(owner="Zoe"))] == ["Abc"]
    db.upsert(Copy, isbn="aBc", shelf="a", number=1, set={"owner": "Ana"})
    assert opening.only(Copy)["gsi1sk"] == {"S": "Abc"}


@pytest.mark.parametrize("shelf", ["a#b", "#", "a#number_1"])
def test_a_value_with_the_delimiter_is_rejected(opening: Opening, shelf: str) -> None:
    db = opening(electro)
    with pytest.raises(DataError, match="contains the delimiter '#'"):
        db.put(Copy(isbn="1", shelf=shelf, number=1))
    with pytest.raises(DataError, match="contains the delimiter '#'"):
        db.get(Copy, isbn="1", shelf=shelf, number=1)
    assert opening.raw(electro) == []


def test_a_range_is_exact_or_rejected(opening: Opening) -> None:
    db = opening(electro)
    for shelf in ("a", "a b", "a!", "ab", "b"):
        db.put(Copy(isbn="1", shelf=shelf, number=1))
    query = Copy.key.query(isbn="1")
    assert [copy.shelf for copy in db.all(query.since(shelf="AB"))] == ["ab", "b"]
    assert sorted(copy.shelf for copy in db.all(query.before(shelf="ab"))) == ["a", "a b", "a!"]
    assert sorted(copy.shelf for copy in db.all(query.starts_with(shelf="a"))) == ["a", "a b", "a!", "ab"]
    with pytest.raises(DataError, match="sorts before '#number_'"):
        list(db.all(query.since(shelf="a b")))
    with pytest.raises(DataError, match="values are not escaped"):
        list(db.all(query.until(shelf="a")))
    with pytest.raises(DataError, match="10 before 9"):
        list(db.all(Copy.key.query(isbn="1", shelf="a").since(number=2)))


tenants = Table(
    "FoldedTenants", tenant="org", key_format=KeyFormat(escape=False, case="upper"), indexes=[Index("GSI1")]
)


class Note(Entity, table=tenants):
    """A note of a tenant, in folded keys."""

    key = Key("ORG#{org}", "NOTE#{note}")
    org: str = FROM_SCOPE
    note: str


def test_a_tenant_is_never_folded(opening: Opening) -> None:
    db = opening(tenants)
    db.tenant("ACME").put(Note(note="a"))
    with pytest.raises(DataError, match="another tenant"):
        db.tenant("acme").put(Note(note="A"))
    with pytest.raises(DataError, match="another tenant"):
        db.tenant("Acme").get(Note, note="a")
    assert [item["org"] for item in opening.raw(tenants)] == [{"S": "ACME"}]


inverted = Table(
    "Inverted",
    indexes=[
        Index("GSI1", partition="SK", sort="PK"),
        Index("GSI2", partition="GSI2PK", sort="SK"),
        Index("LSI1", local=True, sort="LSI1SK"),
    ],
)


class Membership(Entity, table=inverted):
    """A member of a group; the inverted index has the groups of a member."""

    key = Key("GROUP#{group}", "MEMBER#{member}")
    groups = Key("MEMBER#{member}", "GROUP#{group}", index="GSI1")
    by_role = Key("ROLE#{role}", "MEMBER#{member}", index="GSI2")
    recent = Key("GROUP#{group}", "SEEN#{seen:d}", index="LSI1")
    deletion = SoftDelete(grace=timedelta(days=1))
    group: str
    member: str
    role: str | None = None
    seen: int | None = None


class Profile(Entity, table=inverted):
    """An entity without a key on the inverted index, whose items are in it all the same."""

    key = Key("MEMBER#{member}", "MEMBER#{member}")
    member: str


def test_an_inverted_index_has_the_items_of_the_table(opening: Opening) -> None:
    db = opening(inverted)
    for group in ("b", "a"):
        db.put(Membership(group=group, member="zoe"))
    db.put(Membership(group="a", member="ana"))
    db.put(Profile(member="zoe"))
    query = Membership.groups.query(member="zoe")
    assert [each.group for each in db.all(query)] == ["a", "b"]
    assert db.count(query) == 2
    # Profile has the partition key MEMBER#zoe in GSI1 too.
    whole = Membership.groups.query(member="zoe").starts_with(group="")
    assert [each.group for each in db.all(whole)] == ["a", "b"]
    page = db.page(query.descending(), limit=1)
    assert [each.group for each in page] == ["b"]
    assert [each.group for each in db.page(query.descending(), limit=1, cursor=page.cursor)] == ["a"]


def test_an_update_sets_no_attribute_of_the_primary_key(opening: Opening) -> None:
    db = opening(inverted)
    db.put(Membership(group="a", member="zoe"))
    db.update(Membership, group="a", member="zoe", set={"role": "owner", "seen": 3})
    (sent,) = opening.spy.of(UpdateItem)
    names = {str(action.path[0]) for action in sent.update.actions}
    assert names == {"role", "seen", "GSI2PK", "LSI1SK"}
    assert [each.member for each in db.all(Membership.by_role.query(role="owner"))] == ["zoe"]
    assert [each.member for each in db.all(Membership.recent.query(group="a"))] == ["zoe"]
    db.update(Membership, group="a", member="zoe", set={"role": None, "seen": None})
    assert not {"GSI2PK", "LSI1SK"} & opening.only(Membership).keys()
    assert list(db.all(Membership.by_role.query(role="owner"))) == []
    assert [each.group for each in db.all(Membership.groups.query(member="zoe"))] == ["a"]


def test_a_soft_deleted_entity_is_hidden_in_an_inverted_index(opening: Opening) -> None:
    db = opening(inverted)
    member = db.put(Membership(group="a", member="zoe", role="owner"))
    db.delete(member)
    query = Membership.groups.query(member="zoe")
    assert list(db.all(query)) == []
    assert db.count(query) == 0
    db.undelete(Membership, group="a", member="zoe")
    assert [each.group for each in db.all(query)] == ["a"]
    assert db.count(Membership.by_role.query(role="owner")) == 1


def test_templates_of_a_shared_attribute_must_agree() -> None:
    with pytest.raises(DeclarationError, match=r"'USER#\{user\}'.*which is 'MEMBER#\{user\}'"):

        class Wrong(Entity, table=Table("Wrong", indexes=[Index("GSI1", partition="SK", sort="PK")])):
            key = Key("GROUP#{group}", "MEMBER#{user}")
            groups = Key("USER#{user}", "GROUP#{group}", index="GSI1")
            group: str
            user: str


def test_a_tenants_inverted_index_needs_the_tenant() -> None:
    table = Table("Wrong", tenant="org", indexes=[Index("GSI1", partition="SK", sort="PK")])
    with pytest.raises(DeclarationError, match="tenants would share it"):

        class Wrong(Entity, table=table):
            key = Key("ORG#{org}", "USER#{user}")
            inverted = Key("USER#{user}", "ORG#{org}", index="GSI1")
            org: str = FROM_SCOPE
            user: str


shared_tenants = Table("SharedTenants", tenant="org", indexes=[Index("GSI1", partition="SK", sort="PK")])


class Seat(Entity, table=shared_tenants):
    """A seat whose sort key contains the tenant."""

    key = Key("ORG#{org}", "USER#{org}#{user}")
    inverted = Key("USER#{org}#{user}", "ORG#{org}", index="GSI1")
    org: str = FROM_SCOPE
    user: str


class Badge(Entity, table=shared_tenants):
    """An entity in the same partitions of the index without a tenant there, which the linter reports."""

    key = Key("BADGE#{org}#{badge}", "USER#{a}#{b}")
    org: str = FROM_SCOPE
    badge: str
    a: str
    b: str


def test_tenants_are_apart_in_an_inverted_index(opening: Opening) -> None:
    db = opening(shared_tenants)
    db.tenant("x").put(Seat(user="u"))
    db.tenant("y").put(Badge(badge="1", a="x", b="u"))
    query = Seat.inverted.query(user="u")
    assert [each.org for each in db.tenant("x").all(query)] == ["x"]
    assert db.tenant("x").count(query) == 1
    assert list(db.tenant("y").all(query)) == []
    with pytest.raises(TenantViolation):
        list(db.tenant("y").all(Seat.inverted.query(org="x", user="u")))
    assert "ST103" in {finding.code for finding in lint(shared_tenants)}


forks = Table("Forks", indexes=[Index("GSI2")])


class Repo(Entity, table=forks):
    """A repository: an original, or a fork of one."""

    key = Key("REPO#{owner}#{name}", "REPO")
    original = Key("REPO#{owner}#{name}", "REPO", index="GSI2", when={"forked_from": None})
    by_fork = Key("REPO#{forked_from}#{name}", "FORK#{owner}", index="GSI2")
    owner: str
    name: str
    forked_from: str | None = None
    stars: int = 0


class Issue(Entity, table=forks):
    """An issue, open or closed."""

    key = Key("ISSUE#{issue:d}", "ISSUE")
    opened = Key("OPEN#{repo}", "{issue:06d}", index="GSI2", when={"status": "open"})
    closed = Key("CLOSED#{repo}", "BECAUSE#{reason}", index="GSI2", when={"status": {"closed", "spam"}})
    issue: int
    repo: str
    status: Literal["open", "closed", "spam", "draft"] = "open"
    reason: str = ""


def _key(item: dict[str, Any]) -> tuple[str, str] | None:
    return (item["GSI2PK"]["S"], item["GSI2SK"]["S"]) if "GSI2PK" in item else None


def test_one_of_the_alternatives_applies(opening: Opening) -> None:
    db = opening(forks)
    db.put(Repo(owner="a", name="x"))
    db.put(Repo(owner="b", name="x", forked_from="a"))
    db.put(Repo(owner="c", name="x", forked_from="a"))
    assert [each.owner for each in db.all(Repo.original.query(owner="a", name="x"))] == ["a"]
    assert [each.owner for each in db.all(Repo.by_fork.query(forked_from="a", name="x"))] == ["b", "c"]
    db.update(Repo, owner="b", name="x", set={"forked_from": None})
    assert [each.owner for each in db.all(Repo.by_fork.query(forked_from="a", name="x"))] == ["c"]
    assert [each.owner for each in db.all(Repo.original.query(owner="b", name="x"))] == ["b"]


def test_alternatives_follow_every_change(opening: Opening) -> None:
    db = opening(forks)
    db.put(Issue(issue=7, repo="r"))
    assert _key(opening.only(Issue)) == ("OPEN#r", "000007")
    # The reason is part of the other alternative only.
    db.update(Issue, issue=7, set={"reason": "old"})
    assert _key(opening.only(Issue)) == ("OPEN#r", "000007")
    db.update(Issue, issue=7, set={"status": "spam"})
    assert _key(opening.only(Issue)) == ("CLOSED#r", "BECAUSE#old")
    db.update(Issue, issue=7, set={"status": "draft"})
    assert _key(opening.only(Issue)) is None
    with db.transaction() as tx:
        tx.update(Issue, issue=7, set={"status": "closed", "reason": "done"})
    assert _key(opening.only(Issue)) == ("CLOSED#r", "BECAUSE#done")
    assert [each.issue for each in db.all(Issue.closed.query(repo="r"))] == [7]
    assert list(db.all(Issue.opened.query(repo="r"))) == []


def test_a_writer_that_changes_the_condition_at_the_same_time_is_seen(opening: Opening) -> None:
    db = opening(forks)
    db.put(Issue(issue=7, repo="r"))
    beside = opening.beside(forks)
    opening.spy.once(UpdateItem, lambda: beside.update(Issue, issue=7, set={"status": "closed"}))
    db.update(Issue, issue=7, set={"reason": "late"})
    assert _key(opening.only(Issue)) == ("CLOSED#r", "BECAUSE#late")


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ({"status": "open"}, {"status": {"open", "closed"}}, "at most one applies"),
        ({"status": "open"}, None, "at most one applies"),
        (None, None, "at most one applies"),
        ({"nope": 1}, {"status": "open"}, "'nope', which is not a field"),
        ({"status": 3}, {"status": "open"}, "status"),
    ],
)
def test_alternatives_that_could_both_apply_are_rejected(one: Any, other: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):

        class Wrong(Entity, table=Table("Wrong", indexes=[Index("GSI2")])):
            key = Key("A#{a}", "A")
            first = Key("F#{a}", "A", index="GSI2", when=one)
            second = Key("S#{a}", "A", index="GSI2", when=other)
            a: str
            status: Literal["open", "closed"] = "open"


def test_alternatives_that_a_query_could_confuse_are_rejected() -> None:
    with pytest.raises(DeclarationError, match="different literals"):

        class Wrong(Entity, table=Table("Wrong", indexes=[Index("GSI2")])):
            key = Key("A#{a}", "A")
            first = Key("F#{a}", "{b}", index="GSI2", when={"status": "open"})
            second = Key("F#{b}", "{a}", index="GSI2", when={"status": "closed"})
            a: str
            b: str
            status: Literal["open", "closed"] = "open"
