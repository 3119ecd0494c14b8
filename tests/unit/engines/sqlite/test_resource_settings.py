"""Resource policies and Contributor Insights: kept in the file, seen by other engines."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ServiceError
from tests.conformance.tables import index, table

from .clocked import START, Clock, opened

Json = dict[str, Any]
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Things"
STATEMENT: Json = {
    "Sid": "Read",
    "Effect": "Allow",
    "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
    "Action": "dynamodb:GetItem",
    "Resource": "*",
}
FIRST = str(int(START * 1000))


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with opened() as made:
        made.call("CreateTable", table("Things", "pk:S"))
        yield made


def document(**changes: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [STATEMENT | changes]})


def put(engine: SqliteEngine, policy: str | None = None, **members: Any) -> str:
    given = {"ResourceArn": ARN, "Policy": policy or document(), **members}
    revision: str = engine.call("PutResourcePolicy", given)["RevisionId"]
    return revision


def got(engine: SqliteEngine) -> Json:
    return engine.call("GetResourcePolicy", {"ResourceArn": ARN})


def refusal(engine: SqliteEngine, operation: str, members: Json) -> tuple[str, str]:
    with pytest.raises(ServiceError) as refused:
        engine.call(operation, members)
    return refused.value.code, refused.value.message


def not_found(text: str) -> tuple[str, str]:
    return (
        "PolicyNotFoundException",
        f"Resource-based policy not found for the provided ResourceArn: {text}",
    )


def enable(engine: SqliteEngine, **members: Any) -> Json:
    return engine.call(
        "UpdateContributorInsights",
        {"TableName": "Things", "ContributorInsightsAction": "ENABLE", **members},
    )


def insights(engine: SqliteEngine, **members: Any) -> Json:
    return engine.call("DescribeContributorInsights", {"TableName": "Things", **members})


def test_both_are_in_the_file_and_seen_by_another_engine(tmp_path: Path) -> None:
    path = tmp_path / "things.db"
    with opened(path) as one, opened(path) as other:
        one.call("CreateTable", table("Things", "pk:S"))
        with pytest.raises(ServiceError, match="PolicyNotFoundException"):
            got(other)
        assert insights(other)["ContributorInsightsStatus"] == "DISABLED"
        revision = put(one)
        enable(one)
        assert got(other)["RevisionId"] == revision
        assert insights(other)["ContributorInsightsStatus"] == "ENABLED"
        # The other engine continues with the table that it knew before.
        other.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": "k"}}})
    with opened(path) as reopened:
        assert got(reopened)["RevisionId"] == revision
        assert insights(reopened)["ContributorInsightsStatus"] == "ENABLED"
        assert reopened.call("GetItem", {"TableName": "Things", "Key": {"pk": {"S": "k"}}})["Item"]


CHILD = """
import json, sys
from solotable.engines import sqlite

arn, path = sys.argv[1:]
with sqlite.open(path) as engine:
    found = engine.call("GetResourcePolicy", {"ResourceArn": arn})
    enabled = engine.call("DescribeContributorInsights", {"TableName": "Things"})
    engine.call("DeleteResourcePolicy", {"ResourceArn": arn})
    engine.call("UpdateContributorInsights", {"TableName": "Things", "ContributorInsightsAction": "DISABLE"})
print(json.dumps([found["RevisionId"], enabled["ContributorInsightsStatus"]]))
"""


def test_another_process_sees_and_changes_both(tmp_path: Path) -> None:
    path = tmp_path / "things.db"
    with opened(path) as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        revision = put(engine)
        enable(engine)
        child = subprocess.run(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", CHILD, ARN, str(path)], check=True, capture_output=True, text=True
        )
        assert json.loads(child.stdout) == [revision, "ENABLED"]
        with pytest.raises(ServiceError, match="PolicyNotFoundException"):
            got(engine)
        assert insights(engine)["ContributorInsightsStatus"] == "DISABLED"


def test_a_revision_is_a_time_and_rises_even_while_the_clock_stands(engine: SqliteEngine) -> None:
    assert put(engine) == FIRST
    assert put(engine) == FIRST
    second = put(engine, document(Sid="Second"))
    assert int(second) == int(FIRST) + 1
    # The first policy again is another change.
    assert int(put(engine)) == int(second) + 1


def test_a_refusal_names_the_revisions(engine: SqliteEngine) -> None:
    put(engine)
    second = put(engine, document(Sid="Second"))
    assert refusal(
        engine,
        "PutResourcePolicy",
        {"ResourceArn": ARN, "Policy": document(), "ExpectedRevisionId": FIRST},
    ) == not_found(
        f"Requested update for policy with revision id {FIRST}, but the policy associated to target table "
        f"Things has revision id {second}."
    )
    assert refusal(
        engine,
        "PutResourcePolicy",
        {"ResourceArn": ARN, "Policy": document(), "ExpectedRevisionId": "NO_POLICY"},
    ) == not_found(
        "Requested policy update expecting none to be present for table Things, but a policy exists with "
        f"revision id {second}."
    )
    assert got(engine)["RevisionId"] == second


def test_a_deleted_policy_leaves_its_revision(engine: SqliteEngine) -> None:
    put(engine)
    removed = {"ResourceArn": ARN, "ExpectedRevisionId": FIRST}
    assert engine.call("DeleteResourcePolicy", removed) == {"RevisionId": FIRST}
    deletion = engine.call("DeleteResourcePolicy", {"ResourceArn": ARN})["RevisionId"]
    assert int(deletion) > int(FIRST)
    assert refusal(engine, "DeleteResourcePolicy", removed) == not_found(
        f"Requested update for policy with revision id {FIRST}, but the policy associated to target table "
        f"Things has revision id {deletion}."
    )
    assert int(put(engine, ExpectedRevisionId="NO_POLICY")) > int(deletion)


def test_a_refused_policy_leaves_the_one_before(engine: SqliteEngine) -> None:
    put(engine)
    refusal(engine, "PutResourcePolicy", {"ResourceArn": ARN, "Policy": document(Principal="*")})
    assert got(engine)["RevisionId"] == FIRST


@pytest.mark.parametrize(
    "policy",
    [
        "[" * 10_000,
        "[]",
        "null",
        '{"Statement": 1}',
        '{"Statement": [1]}',
        '{"Statement": "x"}',
        '{"Statement": [{"Sid": "\\ud800"}]}',
        document(Effect="Maybe"),
        document(Effect=1),
        document(Sid=1),
        document(Principal={}),
        document(Principal={"AWS": []}),
        document(Principal={"AWS": [1]}),
        document(Action=1),
        document(Action=[]),
        document(Action=["dynamodb:GetItem", 1]),
        document(Resource=None),
        document(Condition="x"),
        document(NotPrincipal={"AWS": "*"}).replace('"Principal"', '"Ignored"'),
    ],
)
def test_an_invalid_policy_is_rejected(engine: SqliteEngine, policy: str) -> None:
    code, _ = refusal(engine, "PutResourcePolicy", {"ResourceArn": ARN, "Policy": policy})
    assert code == "ValidationException"


def test_a_description_shows_neither(engine: SqliteEngine) -> None:
    before = engine.call("DescribeTable", {"TableName": "Things"})
    put(engine)
    enable(engine)
    assert engine.call("DescribeTable", {"TableName": "Things"}) == before


def test_a_mode_changes_the_rules_and_keeps_those_that_stay() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        enable(engine)
        before = insights(engine)
        assert before["LastUpdateDateTime"] == START
        clock.move(10)
        assert enable(engine) == enable(engine, ContributorInsightsMode="ACCESSED_AND_THROTTLED_KEYS")
        assert insights(engine) == before
        enable(engine, ContributorInsightsMode="THROTTLED_KEYS")
        after = insights(engine)
        assert after["ContributorInsightsRuleList"] == before["ContributorInsightsRuleList"][1:]
        assert after["LastUpdateDateTime"] == START + 10


def index_story(engine: SqliteEngine) -> Callable[..., Json]:
    def updated(**update: Any) -> Json:
        return engine.call(
            "UpdateTable",
            {
                "TableName": "Things",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "g", "AttributeType": "S"},
                ],
                "GlobalSecondaryIndexUpdates": [update],
            },
        )

    return updated


def test_insights_go_with_their_index(engine: SqliteEngine) -> None:
    updated = index_story(engine)
    updated(Create=index("byg", "g"))
    enable(engine, IndexName="byg")
    updated(Delete={"IndexName": "byg"})
    assert engine.call("ListContributorInsights", {})["ContributorInsightsSummaries"] == []
    updated(Create=index("byg", "g"))
    assert insights(engine, IndexName="byg") == {
        "TableName": "Things",
        "IndexName": "byg",
        "ContributorInsightsStatus": "DISABLED",
    }


def test_the_lists_of_all_tables_come_in_pages(engine: SqliteEngine) -> None:
    names = [f"Table{number}" for number in range(5)]
    for name in names:
        engine.call("CreateTable", table(name, "pk:S"))
        enable(engine, TableName=name)
    found: list[str] = []
    token: Json = {}
    while True:
        page = engine.call("ListContributorInsights", {"MaxResults": 2, **token})
        found += [entry["TableName"] for entry in page["ContributorInsightsSummaries"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    assert found == names
    for wrong in ("x", "", "=", "YQ==", "\ud800"):
        refusal(engine, "ListContributorInsights", {"NextToken": wrong})
