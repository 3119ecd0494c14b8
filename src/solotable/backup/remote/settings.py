"""The seven settings that a restore of AWS loses: read, re-applied and compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from .requests import ControlClient

Outcome = Literal["same", "applied", "differs", "check by hand"]
_BY_HAND = {
    "auto scaling": "Application Auto Scaling is another API; register the targets of the new table.",
    "alarms": "CloudWatch is another API; alarms name the table.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSetting:
    """One setting of the source, what the restored table has, and what was done about it."""

    name: str
    source: Any
    restored: Any
    outcome: Outcome
    detail: str = ""


def read_settings(client: ControlClient, table: str) -> dict[str, Any]:
    """Return the settings of a table that a restore loses and this API can set."""
    described = client.call("DescribeTable", TableName=table)["Table"]
    arn = described["TableArn"]
    stream = described.get("StreamSpecification", {})
    expiry = client.call("DescribeTimeToLive", TableName=table)["TimeToLiveDescription"]
    backups = client.call("DescribeContinuousBackups", TableName=table)["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    policy = client.find("GetResourcePolicy", "PolicyNotFoundException", ResourceArn=arn).get("Policy")
    return {
        "resource policy": None if policy is None else json.loads(policy.replace(arn, "{table}")),
        "tags": sorted(_read_tags(client, arn), key=lambda tag: tag["Key"]),
        "stream": stream.get("StreamViewType") if stream.get("StreamEnabled") else None,
        "time to live": expiry.get("AttributeName")
        if expiry["TimeToLiveStatus"] in ("ENABLED", "ENABLING")
        else None,
        "point-in-time recovery": recovery.get("RecoveryPeriodInDays", 35)
        if recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        else None,
    }


def restore_settings(
    client: ControlClient, source: dict[str, Any], table: str, *, dry_run: bool = False
) -> list[LostSetting]:
    """Give a restored table the settings of its source, and compare them."""
    before = read_settings(client, table)
    arn = client.call("DescribeTable", TableName=table)["Table"]["TableArn"]
    missing = [name for name in source if source[name] != before[name] and source[name]]
    if not dry_run:
        for name in missing:
            _apply(client, name, source[name], table, arn)
    after = before if dry_run else read_settings(client, table)
    found = [
        LostSetting(
            name=name,
            source=source[name],
            restored=after[name],
            outcome=_outcome(source[name], before[name], after[name]),
        )
        for name in source
    ]
    return found + [
        LostSetting(name=name, source=None, restored=None, outcome="check by hand", detail=detail)
        for name, detail in _BY_HAND.items()
    ]


def _outcome(source: Any, before: Any, after: Any) -> Outcome:
    if after != source:
        return "differs"
    return "same" if before == source else "applied"


def _apply(client: ControlClient, name: str, value: Any, table: str, arn: str) -> None:
    if name == "resource policy":
        policy = json.dumps(value).replace("{table}", arn)
        client.call("PutResourcePolicy", idempotent=True, ResourceArn=arn, Policy=policy)
    elif name == "tags":
        client.call("TagResource", idempotent=True, ResourceArn=arn, Tags=value)
    elif name == "stream":
        stream = {"StreamEnabled": True, "StreamViewType": value}
        client.call("UpdateTable", TableName=table, StreamSpecification=stream)
    elif name == "time to live":
        expiry = {"Enabled": True, "AttributeName": value}
        client.call("UpdateTimeToLive", TableName=table, TimeToLiveSpecification=expiry)
    else:
        recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": value}
        client.call(
            "UpdateContinuousBackups",
            idempotent=True,
            TableName=table,
            PointInTimeRecoverySpecification=recovery,
        )


def _read_tags(client: ControlClient, arn: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    start: dict[str, Any] = {}
    while True:
        page = client.call("ListTagsOfResource", ResourceArn=arn, **start)
        found += page.get("Tags", [])
        if not page.get("NextToken"):
            return found
        start = {"NextToken": page["NextToken"]}
