"""DescribeTable, DeleteTable and ListTables: a table's life after it was created, and paging by name."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import table

REQUIRED = "The parameter 'TableName' is required but was not present in the request"
PATTERN = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
OWN_WORDS = "has a different text"
PREFIX = "1 validation error detected: Value "
AT = "Value 'a;' at 'tableName' failed to satisfy constraint: "


def create(*names: str) -> tuple[Step, ...]:
    return tuple(Step("CreateTable", table(name, "pk:S")) for name in names)


def listed(expect: Expectation, **members: Any) -> Step:
    return Step("ListTables", members, expect)


def missing(name: str) -> Fails:
    return Fails("ResourceNotFoundException", f"Requested resource not found: Table: {name} not found")


def described_items(reply: Json) -> None:
    assert reply["Table"]["TableStatus"] == "ACTIVE"
    assert reply["Table"]["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]


def deleted_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert got["TableName"] == "Hash"
    assert got["TableStatus"] in ("DELETING", "ACTIVE")


def deleting_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert got["TableStatus"] == "DELETING"
    assert not {"KeySchema", "AttributeDefinitions", "CreationDateTime", "GlobalSecondaryIndexes"} & set(got)


FOUR = create("beta", "Zeta", "alpha", "alp.2")

CASES: list[Case] = [
    *(
        case(
            f"{operation} of a missing table names it",
            Step(operation, {"TableName": "Nowhere"}, missing("Nowhere")),
            local=OWN_WORDS,
        )
        for operation in ("DescribeTable", "DeleteTable")
    ),
    *(
        case(f"{operation} {rule}", Step(operation, request, invalid(message)), local=OWN_WORDS)
        for operation in ("DescribeTable", "DeleteTable")
        for rule, request, message in (
            ("needs a TableName", {}, REQUIRED),
            (
                "checks the name's length and characters together",
                {"TableName": "a;"},
                f"2 validation errors detected: {AT}Member must have length greater than or equal to 3; {AT}{PATTERN}",
            ),
            (
                "checks the name's characters",
                {"TableName": "abc;"},
                f"{PREFIX}'abc;' at 'tableName' failed to satisfy constraint: {PATTERN}",
            ),
        )
    ),
    case(
        "a described table is active",
        Step("DescribeTable", {"TableName": "Hash"}, described_items),
        tables="Hash",
    ),
    case(
        "a deleted table is described a last time",
        Step("DeleteTable", {"TableName": "Hash"}, deleted_reply),
        tables="Hash",
    ),
    case(
        "a table being deleted has lost its schema",
        Step("DeleteTable", {"TableName": "Indexed"}, deleting_reply),
        tables="Indexed",
        local="returns the table's full description",
    ),
    case(
        "a deleted table is gone",
        Step("DeleteTable", {"TableName": "Hash"}),
        Step("DescribeTable", {"TableName": "Hash"}, Fails("ResourceNotFoundException")),
        listed({"TableNames": []}),
        tables="Hash",
    ),
    case(
        "a table created again under an old name is empty",
        Step("PutItem", {"TableName": "Hash", "Item": {"pk": {"S": "1"}}}),
        Step("DeleteTable", {"TableName": "Hash"}),
        *create("Hash"),
        Step("Scan", {"TableName": "Hash"}, {"Items": [], "Count": 0, "ScannedCount": 0}),
        tables="Hash",
    ),
    case(
        "items of a missing table cannot be read",
        Step(
            "GetItem",
            {"TableName": "Nowhere", "Key": {"pk": {"S": "1"}}},
            Fails("ResourceNotFoundException", "Requested resource not found"),
        ),
        local=OWN_WORDS,
    ),
    case("no tables make an empty list", listed({"TableNames": []})),
    case(
        "tables are listed by the bytes of their names",
        *FOUR,
        listed({"TableNames": ["Zeta", "alp.2", "alpha", "beta"]}),
    ),
    case(
        "a page of tables ends with the name to continue from",
        *FOUR,
        listed({"TableNames": ["Zeta", "alp.2"], "LastEvaluatedTableName": "alp.2"}, Limit=2),
    ),
    case(
        "the next page starts after that name, and the last page says so",
        *FOUR,
        listed({"TableNames": ["alpha", "beta"]}, Limit=2, ExclusiveStartTableName="alp.2"),
    ),
    case(
        "a page that ends with the last table has no name to continue from",
        *FOUR,
        listed({"TableNames": ["Zeta", "alp.2", "alpha", "beta"]}, Limit=4),
    ),
    case(
        "a list may start after a name that no table has",
        *FOUR,
        listed({"TableNames": ["beta"]}, ExclusiveStartTableName="alpha.zzz"),
    ),
    case(
        "nothing comes after the last name", *FOUR, listed({"TableNames": []}, ExclusiveStartTableName="zzz")
    ),
    *(
        case(name, listed(invalid(message), **members), local=OWN_WORDS)
        for name, members, message in (
            (
                "a page of no tables is too small",
                {"Limit": 0},
                f"{PREFIX}'0' at 'limit' failed to satisfy constraint: "
                "Member must have value greater than or equal to 1",
            ),
            (
                "a page of 101 tables is too large",
                {"Limit": 101},
                f"{PREFIX}'101' at 'limit' failed to satisfy constraint: "
                "Member must have value less than or equal to 100",
            ),
            (
                "the name to start after has a least length",
                {"ExclusiveStartTableName": "a"},
                f"{PREFIX}'a' at 'exclusiveStartTableName' failed to satisfy constraint: "
                "Member must have length greater than or equal to 3",
            ),
            (
                "the name to start after has a greatest length",
                {"ExclusiveStartTableName": "a" * 256},
                f"{PREFIX}'{'a' * 256}' at 'exclusiveStartTableName' failed to satisfy constraint: "
                "Member must have length less than or equal to 255",
            ),
            (
                "the name to start after has a pattern",
                {"ExclusiveStartTableName": "abc;"},
                f"{PREFIX}'abc;' at 'exclusiveStartTableName' failed to satisfy constraint: {PATTERN}",
            ),
        )
    ),
]
