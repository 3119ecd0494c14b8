"""DescribeLimits, DescribeEndpoints and continuous backups: what an account and a table are reported."""

from __future__ import annotations

from ..harness import Case, Fails, Json, Step, case, invalid

UNSUPPORTED = "does not implement the operation"
NOT_NULL = "failed to satisfy constraint: Member must not be null"


def one_endpoint(reply: Json) -> None:
    (endpoint,) = reply["Endpoints"]
    assert set(endpoint) == {"Address", "CachePeriodInMinutes"}
    assert endpoint["CachePeriodInMinutes"] == 1440
    assert isinstance(endpoint["Address"], str)
    assert endpoint["Address"]


def recovery_on(reply: Json) -> None:
    got = reply["ContinuousBackupsDescription"]
    assert got["ContinuousBackupsStatus"] == "ENABLED"
    recovery = got["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert recovery["RecoveryPeriodInDays"] == 35
    assert recovery["EarliestRestorableDateTime"] <= recovery["LatestRestorableDateTime"]


def switch(on: bool, name: str = "Hash") -> Json:
    return {"TableName": name, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": on}}


OFF: Json = {
    "ContinuousBackupsDescription": {
        "ContinuousBackupsStatus": "ENABLED",
        "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
    }
}
MISSING = Fails("TableNotFoundException", "Table not found: Nowhere")

CASES: list[Case] = [
    case(
        "DescribeLimits reports the account's and a table's capacity",
        Step(
            "DescribeLimits",
            {},
            {
                "AccountMaxReadCapacityUnits": 80000,
                "AccountMaxWriteCapacityUnits": 80000,
                "TableMaxReadCapacityUnits": 40000,
                "TableMaxWriteCapacityUnits": 40000,
            },
        ),
    ),
    case(
        "DescribeEndpoints reports one address",
        Step("DescribeEndpoints", {}, one_endpoint),
        local=UNSUPPORTED,
    ),
    case(
        "a new table has continuous backups but no point in time recovery",
        Step("DescribeContinuousBackups", {"TableName": "Hash"}, OFF),
        tables="Hash",
        local=UNSUPPORTED,
    ),
    case(
        "recovery that is switched on has a range of times",
        Step("UpdateContinuousBackups", switch(True), recovery_on),
        tables="Hash",
        local=UNSUPPORTED,
    ),
    case(
        "recovery that is switched on stays on",
        Step("UpdateContinuousBackups", switch(True)),
        Step("DescribeContinuousBackups", {"TableName": "Hash"}, recovery_on),
        tables="Hash",
        local=UNSUPPORTED,
    ),
    case(
        "recovery is switched off again",
        Step("UpdateContinuousBackups", switch(True)),
        Step("UpdateContinuousBackups", switch(False), OFF),
        Step("DescribeContinuousBackups", {"TableName": "Hash"}, OFF),
        tables="Hash",
        local=UNSUPPORTED,
    ),
    case(
        "backups of a missing table have their own error",
        Step("DescribeContinuousBackups", {"TableName": "Nowhere"}, MISSING),
        local=UNSUPPORTED,
    ),
    case(
        "recovery of a missing table cannot be switched",
        Step("UpdateContinuousBackups", switch(True, "Nowhere"), MISSING),
        local=UNSUPPORTED,
    ),
    case(
        "a switch needs its specification",
        Step(
            "UpdateContinuousBackups",
            {"TableName": "Hash"},
            invalid(
                f"1 validation error detected: Value null at 'pointInTimeRecoverySpecification' {NOT_NULL}"
            ),
        ),
        tables="Hash",
        local=UNSUPPORTED,
    ),
    case(
        "a specification needs its flag",
        Step(
            "UpdateContinuousBackups",
            {"TableName": "Hash", "PointInTimeRecoverySpecification": {}},
            invalid(
                "1 validation error detected: Value null at "
                f"'pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled' {NOT_NULL}"
            ),
        ),
        tables="Hash",
        local=UNSUPPORTED,
    ),
]
