"""UpdateTimeToLive and DescribeTimeToLive: the setting alone.

AWS rejects a second change within the hour and deletes items in its own time; neither is reported here.
"""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

OWN_WORDS = "has a different text"
LONG = "t" * 256


def setting(expect: Expectation | None, name: str = "Hash", **specification: Any) -> Step:
    return Step("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification}, expect)


def enabled(attribute: str = "expires") -> Step:
    specification: Json = {"AttributeName": attribute, "Enabled": True}
    return setting({"TimeToLiveSpecification": specification}, **specification)


def described(**description: Any) -> Step:
    return Step("DescribeTimeToLive", {"TableName": "Hash"}, {"TimeToLiveDescription": description})


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


def not_in_table(reply: Json) -> None:
    assert "TimeToLiveDescription" not in reply["Table"]


MISSING = Fails("ResourceNotFoundException", "Requested resource not found: Table: Nowhere not found")
REQUIRED = "The parameter 'TableName' is required but was not present in the request"

CASES: list[Case] = [
    case("a new table has no time to live", described(TimeToLiveStatus="DISABLED"), tables="Hash"),
    case("enabling echoes the setting", enabled(), tables="Hash"),
    case(
        "an enabled time to live names its attribute",
        enabled(),
        described(TimeToLiveStatus="ENABLED", AttributeName="expires"),
        tables="Hash",
    ),
    case(
        "time to live cannot be enabled twice",
        enabled(),
        setting(invalid("TimeToLive is already enabled"), AttributeName="expires", Enabled=True),
        tables="Hash",
    ),
    case(
        "another attribute cannot be enabled",
        enabled(),
        setting(
            invalid("TimeToLive is active on a different AttributeName: current AttributeName is expires"),
            AttributeName="other",
            Enabled=True,
        ),
        tables="Hash",
        local="omits the current name",
    ),
    case(
        "another attribute cannot be disabled",
        enabled(),
        setting(
            invalid("TimeToLive is active on a different AttributeName: current AttributeName is expires"),
            AttributeName="other",
            Enabled=False,
        ),
        tables="Hash",
        local="omits the current name",
    ),
    case(
        "time to live that is off cannot be disabled",
        setting(invalid("TimeToLive is already disabled"), AttributeName="expires", Enabled=False),
        tables="Hash",
    ),
    case(
        "a rejected setting leaves the old one",
        enabled(),
        setting(Fails("ValidationException"), AttributeName="other", Enabled=True),
        described(TimeToLiveStatus="ENABLED", AttributeName="expires"),
        tables="Hash",
    ),
    case(
        "the attribute may be one that an index uses",
        Step(
            "UpdateTimeToLive",
            {"TableName": "Indexed", "TimeToLiveSpecification": {"AttributeName": "gs", "Enabled": True}},
            {"TimeToLiveSpecification": {"AttributeName": "gs", "Enabled": True}},
        ),
        tables="Indexed",
    ),
    case(
        "the setting is not part of the table's description",
        enabled(),
        Step(
            "DescribeTable",
            {"TableName": "Hash"},
            not_in_table,
        ),
        tables="Hash",
    ),
    case(
        "UpdateTimeToLive needs a TableName", Step("UpdateTimeToLive", {}, invalid(REQUIRED)), local=OWN_WORDS
    ),
    case(
        "DescribeTimeToLive needs a TableName",
        Step("DescribeTimeToLive", {}, invalid(REQUIRED)),
        local=OWN_WORDS,
    ),
    case(
        "UpdateTimeToLive needs a table",
        setting(MISSING, "Nowhere", AttributeName="expires", Enabled=True),
        local=OWN_WORDS,
    ),
    case(
        "DescribeTimeToLive needs a table",
        Step("DescribeTimeToLive", {"TableName": "Nowhere"}, MISSING),
        local=OWN_WORDS,
    ),
    case(
        "a setting is required",
        Step(
            "UpdateTimeToLive",
            {"TableName": "Hash"},
            invalid(constraint("null", "timeToLiveSpecification", "Member must not be null")),
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    *(
        case(name, setting(invalid(constraint(*fault)), **specification), tables="Hash", local=OWN_WORDS)
        for name, specification, fault in (
            (
                "a setting needs Enabled",
                {"AttributeName": "expires"},
                ("null", "timeToLiveSpecification.enabled", "Member must not be null"),
            ),
            (
                "a setting needs an attribute",
                {"Enabled": True},
                ("null", "timeToLiveSpecification.attributeName", "Member must not be null"),
            ),
            (
                "the attribute's name cannot be empty",
                {"AttributeName": "", "Enabled": True},
                (
                    "''",
                    "timeToLiveSpecification.attributeName",
                    "Member must have length greater than or equal to 1",
                ),
            ),
            (
                "the attribute's name has a greatest length",
                {"AttributeName": LONG, "Enabled": True},
                (
                    f"'{LONG}'",
                    "timeToLiveSpecification.attributeName",
                    "Member must have length less than or equal to 255",
                ),
            ),
        )
    ),
]
