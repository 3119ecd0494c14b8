"""GitHub, of The DynamoDB Book (chapter 21): repositories, issues, pull requests, forks, stars and accounts.

Users and organisations share their names and keys: the type attribute `Type` tells them apart.

| # | Access pattern | Key | Requests |
|---|---|---|---|
| 1 | Create a repository once | table | PutItem |
| 2 | Get a repository | table | GetItem |
| 3 | Create an issue with the next number of the repository | table | UpdateItem, PutItem |
| 4 | A repository with its newest issues | table | Query |
| 5 | A repository with its issues of one status | table | Query with a filter |
| 6 | Create a pull request with the next number of the repository | table | UpdateItem, PutItem |
| 7 | A repository with its newest pull requests | GSI1 | Query |
| 8 | Fork a repository once, and count it | table | TransactWriteItems |
| 9 | A repository with its forks | GSI2 | Query |
| 10 | Star a repository once, and count it | table | TransactWriteItems |
| 11 | A repository with its stargazers | table | Query |
| 12 | Create a user or an organisation under a free name | table | PutItem |
| 13 | An organisation with its members | table | Query |
| 14 | An account with its newest repositories | GSI3 | Query |
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import Field

from solotable import Attr, Database, Entity, Index, Iso, Key, KeyFormat, Query, Table, pattern
from solotable.errors import AlreadyExists, ConditionFailed, TransactionCancelled
from tests.store.opening import Opening

from .expectations import at, item, requests

github = Table(
    "GitHub",
    tag="Type",
    key_format=KeyFormat(escape=False),
    indexes=[Index("GSI1"), Index("GSI2"), Index("GSI3")],
)
Owner = Annotated[str, Attr("RepoOwner")]
Name = Annotated[str, Attr("RepoName")]
START = at("2020-07-08T09:00:00.000001")


class Repo(Entity, table=github):
    """A repository; a fork names the owner of the repository that it was forked from."""

    key = Key("REPO#{owner}#{name}", "REPO#{owner}#{name}")
    with_pulls = Key("REPO#{owner}#{name}", "REPO#{owner}#{name}", index="GSI1")
    original = Key("REPO#{owner}#{name}", "REPO#{name}", index="GSI2", when={"forked_from": None})
    fork = Key("REPO#{forked_from}#{name}", "FORK#{owner}", index="GSI2")
    by_account = Key("ACCOUNT#{owner}", "#{created_at}", index="GSI3")
    owner: Owner
    name: Name
    created_at: Annotated[datetime, Attr("Created_At"), Iso("us", offset="")]
    forked_from: Annotated[str | None, Attr("ForkedFrom")] = None
    numbers: Annotated[int, Attr("IssuesAndPullRequestCount")] = 0
    stars: Annotated[int, Attr("StarCount")] = 0
    forks: Annotated[int, Attr("ForkCount")] = 0

    @pattern
    @classmethod
    def with_forks(cls, owner: str, name: str) -> Query[Self]:
        """A repository, then its forks."""
        forks = cls.fork.query(forked_from=owner, name=name)
        return (cls.original.query(owner=owner, name=name) | forks).descending()


class Issue(Entity, table=github):
    """An issue; it sorts before its repository."""

    key = Key("REPO#{owner}#{name}", "ISSUE#{number:09d}")
    owner: Owner
    name: Name
    number: Annotated[int, Attr("IssueNumber")]
    status: Annotated[Literal["Open", "Closed"], Attr("Status")] = "Open"

    @pattern
    @classmethod
    def with_repo(cls, owner: str, name: str) -> Query[Repo | Issue]:
        """A repository, then its issues, newest first."""
        issues = cls.key.query(owner=owner, name=name)
        return (Repo.key.query(owner=owner, name=name) | issues).descending()

    @pattern
    @classmethod
    def of_status(cls, owner: str, name: str, status: Literal["Open", "Closed"]) -> Query[Repo | Issue]:
        """A repository, then its issues of one status, newest first."""
        issues = cls.key.query(owner=owner, name=name).where(lambda issue: issue.status == status)
        return (Repo.key.query(owner=owner, name=name) | issues).descending()


class PullRequest(Entity, table=github):
    """A pull request, which has a separate partition."""

    key = Key("PR#{owner}#{name}#{number:09d}", "PR#{owner}#{name}#{number:09d}")
    by_repo = Key("REPO#{owner}#{name}", "PR#{number:09d}", index="GSI1")
    owner: Owner
    name: Name
    number: Annotated[int, Attr("PullRequestNumber")]

    @pattern
    @classmethod
    def with_repo(cls, owner: str, name: str) -> Query[Repo | PullRequest]:
        """A repository, then its pull requests, newest first."""
        pulls = cls.by_repo.query(owner=owner, name=name)
        return (Repo.with_pulls.query(owner=owner, name=name) | pulls).descending()


class Star(Entity, table=github):
    """A user's star of a repository; it sorts after its repository."""

    key = Key("REPO#{owner}#{name}", "STAR#{user}")
    owner: Owner
    name: Name
    user: Annotated[str, Attr("StarringUser")]

    @pattern
    @classmethod
    def with_repo(cls, owner: str, name: str) -> Query[Repo | Star]:
        """A repository, then its stargazers."""
        return Repo.key.query(owner=owner, name=name) | cls.key.query(owner=owner, name=name)


class Account(Entity, table=github, abstract=True):
    """A user or an organisation; they share their names."""

    key = Key("ACCOUNT#{account}", "ACCOUNT#{account}")
    with_repos = Key("ACCOUNT#{account}", "ACCOUNT#{account}", index="GSI3")
    account: Annotated[str, Attr(stored=False)]
    plan_type: Annotated[str, Attr("PlanType")] = "FREE"

    @pattern
    @classmethod
    def newest_repos(cls, account: str) -> Query[Account | Repo]:
        """An account, then its repositories, newest first."""
        return (cls.with_repos.query(account=account) | Repo.by_account.query(owner=account)).descending()


class User(Account):
    """A user and the roles in organisations."""

    organizations: Annotated[dict[str, str], Attr("Organizations")] = Field(default_factory=dict)


class Organization(Account):
    """An organisation."""


class Membership(Entity, table=github):
    """A user's membership of an organisation."""

    key = Key("ACCOUNT#{organization}", "MEMBERSHIP#{user}")
    organization: Annotated[str, Attr(stored=False)]
    user: Annotated[str, Attr("UserName")]
    role: Annotated[str, Attr("Role")] = "Member"

    @pattern
    @classmethod
    def with_account(cls, organization: str) -> Query[Account | Membership]:
        """An organisation, then its members."""
        return Account.key.query(account=organization) | cls.key.query(organization=organization)


SITE: dict[str, Any] = {"owner": "ana", "name": "site"}


@pytest.fixture
def db(opening: Opening) -> Database:
    """A repository with 12 issues, of which each third is closed, and two stars; and one beside it."""
    store = opening(github)
    for name in ("site", "site2"):
        store.create(Repo(owner="ana", name=name, created_at=START))
        for number in range(1, 13):
            store.create(
                Issue(owner="ana", name=name, number=number, status="Closed" if number % 3 == 0 else "Open")
            )
        for user in ("cyn", "ben"):
            store.create(Star(owner="ana", name=name, user=user))
    store.update(Repo, **SITE, set={"numbers": 12})
    return store


def test_github_01_create_a_repository_once(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(Repo(owner="ben", name="site", created_at=START))
    repo = "REPO#ben#site"
    assert item(
        PK=repo,
        SK=repo,
        Type="Repo",
        GSI1PK=repo,
        GSI1SK=repo,
        GSI2PK=repo,
        GSI2SK="REPO#site",
        GSI3PK="ACCOUNT#ben",
        GSI3SK="#2020-07-08T09:00:00.000001",
        RepoOwner="ben",
        RepoName="site",
        Created_At="2020-07-08T09:00:00.000001",
        IssuesAndPullRequestCount=0,
        StarCount=0,
        ForkCount=0,
    ) in opening.raw(github)
    with pytest.raises(AlreadyExists):
        db.create(Repo(**SITE, created_at=START))


def test_github_02_get_a_repository(db: Database, opening: Opening) -> None:
    with requests(opening, "GetItem"):
        repo = db.require(Repo, **SITE)
    assert (repo.created_at, repo.numbers) == (START, 12)
    assert db.get(Repo, owner="ana", name="sit") is None


def test_github_03_create_an_issue_with_the_next_number(db: Database, opening: Opening) -> None:
    with requests(opening, "UpdateItem", "PutItem"):
        number = db.update(Repo, **SITE, add={"numbers": 1}).numbers
        db.create(Issue(**SITE, number=number))
    assert db.require(Issue, **SITE, number=13).status == "Open"


def test_github_04_a_repository_with_its_newest_issues(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        page = db.page(Issue.with_repo("ana", "site"), limit=11)
    repo, *issues = page
    assert isinstance(repo, Repo)
    assert [issue.number for issue in issues if isinstance(issue, Issue)] == list(range(12, 2, -1))
    assert page.scanned == 11
    rest = db.page(Issue.with_repo("ana", "site"), limit=11, cursor=page.cursor)
    assert [issue.number for issue in rest if isinstance(issue, Issue)] == [2, 1]


def test_github_05_a_repository_with_its_issues_of_one_status(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        repo, *issues = db.all(Issue.of_status("ana", "site", "Closed"))
    assert isinstance(repo, Repo)
    assert [issue.number for issue in issues if isinstance(issue, Issue)] == [12, 9, 6, 3]


def test_github_06_create_a_pull_request_with_the_next_number(db: Database, opening: Opening) -> None:
    with requests(opening, "UpdateItem", "PutItem"):
        number = db.update(Repo, **SITE, add={"numbers": 1}).numbers
        db.create(PullRequest(**SITE, number=number))
    assert db.get(PullRequest, **SITE, number=13) is not None
    assert db.get(Issue, **SITE, number=13) is None


def test_github_07_a_repository_with_its_newest_pull_requests(db: Database, opening: Opening) -> None:
    for name, numbers in (("site", (13, 14, 15)), ("site2", (13, 16))):
        for number in numbers:
            db.create(PullRequest(owner="ana", name=name, number=number))
    with requests(opening, "Query"):
        repo, *pulls = db.page(PullRequest.with_repo("ana", "site"), limit=3)
    assert isinstance(repo, Repo)
    assert [pull.number for pull in pulls if isinstance(pull, PullRequest)] == [15, 14]


def _fork(db: Database, owner: str) -> None:
    with db.transaction() as tx:
        tx.create(Repo(owner=owner, name="site", created_at=START, forked_from="ana"))
        tx.update(Repo, **SITE, add={"forks": 1})


def test_github_08_fork_a_repository_once_and_count_it(db: Database, opening: Opening) -> None:
    with requests(opening, "TransactWriteItems"):
        _fork(db, "ben")
    with pytest.raises((AlreadyExists, TransactionCancelled)):
        _fork(db, "ben")
    assert db.require(Repo, **SITE).forks == 1
    (stored,) = [each for each in opening.raw(github) if each["PK"] == {"S": "REPO#ben#site"}]
    assert (stored["GSI2PK"], stored["GSI2SK"]) == ({"S": "REPO#ana#site"}, {"S": "FORK#ben"})


def test_github_09_a_repository_with_its_forks(db: Database, opening: Opening) -> None:
    _fork(db, "ben")
    _fork(db, "cyn")
    db.create(Repo(owner="ben", name="site2", created_at=START, forked_from="ana"))
    with requests(opening, "Query"):
        found = db.page(Repo.with_forks("ana", "site"))
    assert [(repo.owner, repo.forked_from) for repo in found] == [
        ("ana", None),
        ("cyn", "ana"),
        ("ben", "ana"),
    ]
    # A fork that becomes an original leaves the forks.
    db.update(Repo, owner="cyn", name="site", remove=["forked_from"])
    assert [repo.owner for repo in db.all(Repo.with_forks("ana", "site"))] == ["ana", "ben"]
    assert [repo.owner for repo in db.all(Repo.with_forks("cyn", "site"))] == ["cyn"]


def _star(db: Database, user: str) -> None:
    with db.transaction() as tx:
        tx.create(Star(**SITE, user=user))
        tx.update(Repo, **SITE, add={"stars": 1})


def test_github_10_star_a_repository_once_and_count_it(db: Database, opening: Opening) -> None:
    with requests(opening, "TransactWriteItems"):
        _star(db, "Robbie Kohler")
    with pytest.raises((AlreadyExists, TransactionCancelled)):
        _star(db, "Robbie Kohler")
    assert db.require(Repo, **SITE).stars == 1


def test_github_11_a_repository_with_its_stargazers(db: Database, opening: Opening) -> None:
    with requests(opening, "Query"):
        repo, *stars = db.page(Star.with_repo("ana", "site"))
    assert isinstance(repo, Repo)
    assert [star.user for star in stars if isinstance(star, Star)] == ["ben", "cyn"]


def test_github_12_create_an_account_under_a_free_name(db: Database, opening: Opening) -> None:
    with requests(opening, "PutItem"):
        db.create(User(account="ana", organizations={"acme": "Member"}))
    db.create(Organization(account="acme", plan_type="PRO"))
    with pytest.raises((AlreadyExists, ConditionFailed)):
        db.create(Organization(account="ana"))
    with requests(opening, "GetItem"):
        ana = db.require(Account, account="ana")
    assert isinstance(ana, User)
    assert ana.organizations == {"acme": "Member"}
    assert isinstance(db.require(Account, account="acme"), Organization)
    assert db.get(Organization, account="ana") is None


def test_github_13_an_organisation_with_its_members(db: Database, opening: Opening) -> None:
    for name in ("acme", "acme2"):
        db.create(Organization(account=name))
        for user in ("cyn", "ben"):
            db.create(Membership(organization=name, user=user))
    with requests(opening, "Query"):
        account, *members = db.page(Membership.with_account("acme"))
    assert isinstance(account, Organization)
    assert [member.user for member in members if isinstance(member, Membership)] == ["ben", "cyn"]
    with requests(opening, "Query"):
        root, listed = db.collection(Account, Membership.key.query(organization="acme"), account="acme")
    assert (root, listed) == (account, members)


def test_github_14_an_account_with_its_newest_repositories(db: Database, opening: Opening) -> None:
    db.create(User(account="ben"))
    db.create(User(account="ben2"))
    for number in range(3):
        moment = START + timedelta(days=number)
        db.create(Repo(owner="ben", name=f"r{number}", created_at=moment))
    db.create(Repo(owner="ben2", name="other", created_at=START))
    with requests(opening, "Query"):
        account, *repos = db.page(Account.newest_repos("ben"), limit=3)
    assert isinstance(account, User)
    assert [repo.name for repo in repos if isinstance(repo, Repo)] == ["r2", "r1"]
