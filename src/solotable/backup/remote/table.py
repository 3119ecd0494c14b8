"""Exports, restores and drills of one table, over DynamoDB's API."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

from solotable.errors import DataError, RecoveryError, ServiceError, TransportError

from .items import ItemComparison, ItemSample, estimate_units
from .requests import ControlClient, seconds_of
from .settings import LostSetting, read_settings, restore_settings

#: The limits of the period of an incremental export.
SHORTEST_PERIOD, LONGEST_PERIOD = 15 * 60, 24 * 3_600
#: How old the newest moment is that AWS restores and exports.
_LAG_SECONDS = 300
#: How far the clock of this machine may be from that of AWS.
_SKEW_SECONDS = 10
#: Called with the seconds of a wait, and what it waits for.
Waiting = Callable[[float, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """The continuous backups and the newest exports of a table."""

    table: str
    enabled: bool
    days: int | None
    earliest: float | None
    latest: float | None
    exports: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """An export that has ended; `failure` is empty if it is COMPLETED."""

    arn: str
    token: str
    status: str
    items: int
    bytes: int
    manifest: str
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredTable:
    """A restored table, and the settings that the restore lost."""

    table: str
    seconds: float
    settings: list[LostSetting]

    @property
    def is_equal(self) -> bool:
        """Whether no setting differs from the source."""
        return all(each.outcome != "differs" for each in self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """A drill: a moment restored beside the table, compared and deleted again."""

    table: str
    at: float
    restore_seconds: float
    #: Parts of the definition that differ, and "items" if an item does.
    differences: list[str]
    #: The compared items; None if only the definition was compared.
    items: ItemComparison | None = None


@dataclass(kw_only=True)
class RemoteTable:
    """A table behind AWS's API: `client` sends the requests, `poll_seconds` is the pause of a wait."""

    client: ControlClient
    name: str
    poll_seconds: float = 30.0
    waiting: Waiting | None = None
    _arn: str = field(default="", init=False)

    @property
    def arn(self) -> str:
        """The ARN of the table."""
        if not self._arn:
            self._arn = self.client.call("DescribeTable", TableName=self.name)["Table"]["TableArn"]
        return self._arn

    def enable(self, days: int = 35) -> None:
        """Enable continuous backups."""
        self.client.call(
            "UpdateContinuousBackups",
            idempotent=True,
            TableName=self.name,
            PointInTimeRecoverySpecification={
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": days,
            },
        )

    def status(self, exports: int = 5) -> TableStatus:
        """Describe the continuous backups and the newest exports."""
        backups = self.client.call("DescribeContinuousBackups", TableName=self.name)
        found = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        times = [
            None if found.get(name) is None else seconds_of(found[name])
            for name in ("EarliestRestorableDateTime", "LatestRestorableDateTime")
        ]
        return TableStatus(
            table=self.name,
            enabled=found.get("PointInTimeRecoveryStatus") == "ENABLED",
            days=found.get("RecoveryPeriodInDays"),
            earliest=times[0],
            latest=times[1],
            exports=self.exports(exports),
        )

    def exports(self, most: int = 10) -> list[dict[str, Any]]:
        """Describe the newest exports."""
        page = self.client.call("ListExports", TableArn=self.arn, MaxResults=min(most, 25))
        return [self._describe(each["ExportArn"]) for each in page.get("ExportSummaries", [])]

    def plan_periods(self, since: float | None = None, until: float | None = None) -> list[tuple[int, int]]:
        """Return the periods of incremental exports, from the last export on unless `since` is given."""
        end = int(until if until is not None else self.client.clock() - _LAG_SECONDS)
        start = int(since if since is not None else self._last_exported())
        if end - start < SHORTEST_PERIOD:
            raise DataError(
                f"The last {max(0, end - start)} seconds are not exported yet; AWS exports periods of at "
                f"least {SHORTEST_PERIOD} seconds. Wait, or pass an earlier --since."
            )
        count = -(-(end - start) // LONGEST_PERIOD)
        # Parts of equal length: a short rest would be rejected.
        bounds = [start + (end - start) * number // count for number in range(count + 1)]
        return list(pairwise(bounds))

    def export(
        self,
        bucket: str,
        prefix: str | None = None,
        *,
        label: str,
        period: tuple[int, int] | None = None,
        view: str = "NEW_AND_OLD_IMAGES",
    ) -> ExportResult:
        """Start an export, or find the one of an earlier call with the same arguments, and wait for it.

        The client token is made of the arguments, so that a repeated call is not a second export that AWS
        bills. `label` tells exports of the same arguments apart, as a date does.
        """
        members: dict[str, Any] = {"TableArn": self.arn, "S3Bucket": bucket, "ExportFormat": "DYNAMODB_JSON"}
        if prefix is not None:
            members["S3Prefix"] = prefix
        if period is not None:
            members["ExportType"] = "INCREMENTAL_EXPORT"
            members["IncrementalExportSpecification"] = {
                "ExportFromTime": period[0],
                "ExportToTime": period[1],
                "ExportViewType": view,
            }
        token = hashlib.sha256(repr((label, sorted(members.items()))).encode()).hexdigest()[:32]
        reply = self.client.call("ExportTableToPointInTime", idempotent=True, ClientToken=token, **members)
        return self._wait_for_export(reply["ExportDescription"], token)

    def restore(self, target: str, at: float | None = None, *, with_settings: bool = True) -> RestoredTable:
        """Restore into a new table, wait for it, and give it the settings that the restore lost."""
        started = self.client.clock()
        source = read_settings(self.client, self.name)
        members: dict[str, Any] = {"SourceTableName": self.name, "TargetTableName": target}
        members |= {"UseLatestRestorableTime": True} if at is None else {"RestoreDateTime": int(at)}
        self._start_restore(members, target)
        while True:
            table = self.client.call("DescribeTable", TableName=target)["Table"]
            if table["TableStatus"] == "ACTIVE":
                break
            self._pause(f"{target} is {table['TableStatus']}")
        seconds = self.client.clock() - started
        settings = restore_settings(self.client, source, target, dry_run=not with_settings)
        return RestoredTable(table=target, seconds=seconds, settings=settings)

    def drill(self, target: str, seed: int | None = None, *, items: int = 0) -> Drilled:
        """Restore a moment beside the table, compare the definition, and delete the copy.

        With `items`, that many items are compared too, and the moment is one after the call: items are read
        before and after it, and those that did not change must be in the copy. Otherwise it is a random one.
        """
        status = self.status(exports=1)
        if not status.enabled or status.earliest is None or status.latest is None:
            raise RecoveryError(f"Continuous backups of table {self.name} are disabled; enable them first.")
        sample = None
        if items:
            described = self.client.call("DescribeTable", TableName=self.name)["Table"]
            sample = ItemSample(self.client.engine, described, items)
            at = self._wait_for_moment()
        else:
            first, last = int(status.earliest) + 1, int(status.latest)
            at = float(Random(seed).randint(first, max(first, last)))  # noqa: S311  # any moment will do
            at = min(at, status.latest)
        done = self.restore(target, at, with_settings=False)
        try:
            differences = self._compare(target)
            compared = None if sample is None else sample.compare(target)
        finally:
            self.client.call("DeleteTable", TableName=target)
        if compared is not None and compared.wrong:
            differences.append("items")
        return Drilled(
            table=self.name, at=at, restore_seconds=done.seconds, differences=differences, items=compared
        )

    def estimate_drill(self, items: int) -> int:
        """Return about how many read units the comparison of a drill takes."""
        return estimate_units(self.client.call("DescribeTable", TableName=self.name)["Table"], items)

    def _wait_for_moment(self) -> float:
        """Return a whole second after now, once it can be restored; AWS is about five minutes behind."""
        # The clock of AWS may differ from this one.
        margin = _SKEW_SECONDS if self.client.engine.capabilities.amazon else 0
        moment = float(int(self.client.clock()) + 1 + margin)
        while (self.status(exports=1).latest or 0.0) < moment:
            self._pause("the moment cannot be restored yet")
        return moment

    def _compare(self, target: str) -> list[str]:
        tables = [self.client.call("DescribeTable", TableName=name)["Table"] for name in (self.name, target)]
        found = [
            name
            for name in ("KeySchema", "AttributeDefinitions", "BillingModeSummary")
            if _without_times(tables[0].get(name)) != _without_times(tables[1].get(name))
        ]
        return found + [
            name
            for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
            if _index_shapes(tables[0].get(name)) != _index_shapes(tables[1].get(name))
        ]

    def _start_restore(self, members: dict[str, Any], target: str) -> None:
        try:
            self.client.call("RestoreTableToPointInTime", **members)
        except (ServiceError, TransportError) as error:
            if isinstance(error, ServiceError) and error.status < 500:
                raise
            # The request may have been executed: then the target exists, and was restored from this table.
            table = self.client.find("DescribeTable", "ResourceNotFoundException", TableName=target)
            summary = table.get("Table", {}).get("RestoreSummary", {})
            if summary.get("SourceTableArn") != self.arn:
                raise

    def _last_exported(self) -> float:
        ends = []
        for each in self.exports():
            if each["ExportStatus"] == "COMPLETED":
                period = each.get("IncrementalExportSpecification")
                ends.append(seconds_of(period["ExportToTime"] if period else each["ExportTime"]))
        if ends:
            return max(ends)
        raise DataError(
            f"Table {self.name} has no finished export to continue; make a full one, or pass --since."
        )

    def _wait_for_export(self, described: dict[str, Any], token: str) -> ExportResult:
        while described["ExportStatus"] == "IN_PROGRESS":
            described = self._describe(described["ExportArn"])
            if described["ExportStatus"] == "IN_PROGRESS":
                self._pause("the export is IN_PROGRESS")
        failure = ""
        if described["ExportStatus"] != "COMPLETED":
            failure = f"{described.get('FailureCode')}: {described.get('FailureMessage')}"
        return ExportResult(
            arn=described["ExportArn"],
            token=token,
            status=described["ExportStatus"],
            items=described.get("ItemCount", 0),
            bytes=described.get("BilledSizeBytes", 0),
            manifest=described.get("ExportManifest", ""),
            failure=failure,
        )

    def _describe(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.call("DescribeExport", ExportArn=arn)["ExportDescription"]
        return found

    def _pause(self, reason: str) -> None:
        if self.waiting is not None:
            self.waiting(self.poll_seconds, reason)
        self.client.sleep(self.poll_seconds)


def today(clock: Callable[[], float]) -> str:
    """Return the date in UTC, the label of a daily export."""
    return f"{datetime.fromtimestamp(clock(), UTC):%Y-%m-%d}"


def _without_times(member: Any) -> Any:
    if isinstance(member, dict):
        return {name: value for name, value in member.items() if not name.endswith("DateTime")}
    return sorted(member, key=repr) if isinstance(member, list) else member


def _index_shapes(indexes: list[dict[str, Any]] | None) -> list[Any]:
    shapes = [
        {name: each[name] for name in ("IndexName", "KeySchema", "Projection")} for each in indexes or []
    ]
    return sorted(shapes, key=repr)
