"""Contributor Insights: the setting of each table and global index. The figures are CloudWatch's.

The replies are those that aws-controllers-k8s/dynamodb-controller (docs/api-quirks, October 2026) captured.
AWS takes seconds to enable or disable; an engine may be done at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..harness import Case, Fails, Json, Step, case, invalid
from ..tables import table

UNKNOWN = "does not implement the operation"
ALL = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED = "THROTTLED_KEYS"
ON = ("ENABLING", "ENABLED")
OFF = ("DISABLING", "DISABLED")


def update(action: str, expect: Any, name: str = "Indexed", **members: Any) -> Step:
    return Step(
        "UpdateContributorInsights",
        {"TableName": name, "ContributorInsightsAction": action, **members},
        expect,
    )


def describe(expect: Any, name: str = "Indexed", **members: Any) -> Step:
    return Step("DescribeContributorInsights", {"TableName": name, **members}, expect)


def listed(expect: Any, **members: Any) -> Step:
    return Step("ListContributorInsights", members, expect)


def updated(statuses: tuple[str, ...], mode: str = ALL, **more: str) -> Callable[[Json], None]:
    def expect(reply: Json) -> None:
        assert reply.pop("ContributorInsightsStatus") in statuses
        assert reply == {"TableName": "Indexed", "ContributorInsightsMode": mode, **more}

    return expect


def enabled(*kinds: str, mode: str = ALL, **more: str) -> Callable[[Json], None]:
    """Rules of these kinds: of partition (P) and sort keys (S), consumed (C) and throttled (T)."""

    def expect(reply: Json) -> None:
        assert reply.pop("ContributorInsightsStatus") in ON
        assert isinstance(reply.pop("LastUpdateDateTime"), float)
        rules = [rule.split("-") for rule in reply.pop("ContributorInsightsRuleList")]
        assert {rule[0] for rule in rules} == {"DynamoDBContributorInsights"}
        assert sorted(rule[1] for rule in rules) == sorted(kinds)
        assert all(rule[2] == "Indexed" and rule[-1].isdecimal() for rule in rules)
        assert reply == {"TableName": "Indexed", "ContributorInsightsMode": mode, **more}

    return expect


def summaries(*entries: Json, page: bool = False) -> Callable[[Json], None]:
    def expect(reply: Json) -> None:
        found = reply["ContributorInsightsSummaries"]
        assert all(entry.pop("ContributorInsightsStatus") in ON for entry in found)
        assert found == list(entries)
        assert ("NextToken" in reply) == page

    return expect


def was_disabled(reply: Json) -> None:
    assert reply.pop("ContributorInsightsStatus") in OFF
    assert isinstance(reply.pop("LastUpdateDateTime"), float)
    assert reply == {"TableName": "Indexed", "ContributorInsightsMode": ALL}


def summary(**more: str) -> Json:
    return {"TableName": "Indexed", **more, "ContributorInsightsMode": ALL}


def insights(name: str, *steps: Step) -> Case:
    return case(name, *steps, tables="Indexed", local=UNKNOWN)


def no_index(name: str) -> Fails:
    return Fails(
        "ResourceNotFoundException",
        f"Requested resource not found: Index: {name} not found for table: Indexed",
    )


def pages() -> Case:
    second: Json = {"TableName": "Indexed", "MaxResults": 1}

    def first(reply: Json) -> None:
        second["NextToken"] = reply["NextToken"]
        summaries(summary(), page=True)(reply)

    return insights(
        "a list comes in pages, the table before its indexes",
        update("ENABLE", None, IndexName="gall"),
        update("ENABLE", None),
        listed(summaries(summary(), summary(IndexName="gall")), TableName="Indexed"),
        listed(first, TableName="Indexed", MaxResults=1),
        Step("ListContributorInsights", second, summaries(summary(IndexName="gall"))),
    )


MISSING = Fails("ResourceNotFoundException", "Requested resource not found: Table: Nowhere not found")
DISABLED: Json = {"TableName": "Indexed", "ContributorInsightsStatus": "DISABLED"}
CASES: list[Case] = [
    insights("a new table has none", describe(DISABLED), listed(summaries(), TableName="Indexed")),
    insights(
        "a table has rules for both of its keys",
        update("ENABLE", updated(ON)),
        describe(enabled("PKC", "PKT", "SKC", "SKT")),
    ),
    insights(
        "an index has separate rules",
        update("ENABLE", updated(ON, IndexName="gkeys"), IndexName="gkeys"),
        describe(enabled("PKC", "PKT", IndexName="gkeys"), IndexName="gkeys"),
        describe(DISABLED),
        describe(DISABLED | {"IndexName": "gall"}, IndexName="gall"),
    ),
    insights(
        "throttled keys alone have half the rules",
        update("ENABLE", updated(ON, THROTTLED), ContributorInsightsMode=THROTTLED),
        describe(enabled("PKT", "SKT", mode=THROTTLED)),
    ),
    insights(
        "enabling without a mode goes back to all keys",
        update("ENABLE", None, ContributorInsightsMode=THROTTLED),
        update("ENABLE", updated(ON)),
        describe(enabled("PKC", "PKT", "SKC", "SKT")),
    ),
    insights(
        "disabling keeps the mode, and leaves the list",
        update("ENABLE", None),
        update("DISABLE", updated(OFF), ContributorInsightsMode=THROTTLED),
        describe(was_disabled),
    ),
    insights(
        "disabling what was never enabled changes nothing", update("DISABLE", DISABLED), describe(DISABLED)
    ),
    pages(),
    case(
        "insights go with the table",
        update("ENABLE", None, name="Hash"),
        Step("DeleteTable", {"TableName": "Hash"}),
        Step("CreateTable", table("Hash", "pk:S")),
        describe(DISABLED | {"TableName": "Hash"}, name="Hash"),
        tables="Hash",
        local=UNKNOWN,
    ),
    *(
        insights(f"{index} is not a global index: {step.operation}", step)
        for index in ("lall", "none")
        for step in (
            describe(no_index(index), IndexName=index),
            update("ENABLE", no_index(index), IndexName=index),
        )
    ),
    insights("a missing table cannot be described", describe(MISSING, name="Nowhere")),
    insights("a missing table cannot be updated", update("ENABLE", MISSING, name="Nowhere")),
    insights("a missing table cannot be listed", listed(MISSING, TableName="Nowhere")),
    insights(
        "an action is needed",
        Step(
            "UpdateContributorInsights",
            {"TableName": "Indexed"},
            invalid(
                "1 validation error detected: Value null at 'contributorInsightsAction' failed to satisfy "
                "constraint: Member must not be null"
            ),
        ),
    ),
    insights("an unknown action is rejected", update("TOGGLE", invalid(None))),
    insights("a list of 101 is too long", listed(invalid(None), MaxResults=101)),
    insights("a list of none is too short", listed(invalid(None), MaxResults=0)),
]
