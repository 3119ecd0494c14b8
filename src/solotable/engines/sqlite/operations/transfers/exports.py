"""ExportTableToPointInTime, DescribeExport and ListExports: checks in AWS's order, then a job."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from solotable._protocol.errors import unsupported
from solotable.engines.sqlite.recovery import positions
from solotable.engines.sqlite.tables.catalog import Catalog, Table
from solotable.engines.sqlite.tables.definitions import table_arn
from solotable.engines.sqlite.tables.windows import Window
from solotable.engines.sqlite.transfers import jobs
from solotable.engines.sqlite.transfers.exporting import ExportPlan, run_export
from solotable.engines.sqlite.transfers.jobs import Job
from solotable.errors import RecoveryError, ServiceError, invalid

from .pages import check_job_arn, cut_page, named_table

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: The largest table, in items, that is exported to a folder without a thread.
SMALL_TABLE = 1_000
_SECOND = 1_000_000
_SHORTEST_PERIOD, _LONGEST_PERIOD = 15 * 60 * _SECOND, 24 * 3_600 * _SECOND
_DIFFERENCE = "Difference between export period from time and export period to time is"
_ECHOED = ("ClientToken", "S3Bucket", "S3BucketOwner", "S3Prefix", "S3SseKmsKeyId")


def export_table_to_point_in_time(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Start the export of a table to a bucket."""
    _check_members(members)
    name = named_table(members["TableArn"])
    planned: list[ExportPlan] = []

    def run(connection: sqlite3.Connection) -> Job:
        planned.clear()
        now = engine.now_micros()
        repeated = jobs.find_token(connection, members.get("ClientToken"), is_export=True, now_micros=now)
        if repeated is not None:
            if repeated.request != members:
                raise ServiceError(
                    "ExportConflictException",
                    "Export conflict: Duplicate request detected with conflicting parameters",
                )
            return repeated
        table = Catalog().load(connection, name)
        if table is None or not table.is_ready:
            raise ServiceError("TableNotFoundException", f"Table not found: {members['TableArn']}")
        plan, times = _plan(connection, table, members, now)
        planned.append(plan)
        job = _new_job(connection, table, members, now, times)
        jobs.add(connection, job)
        return job

    job = engine.database.write(run)
    if planned:
        plan = planned[0]
        items = engine.pending_counts.read(plan.table)[0].items
        is_small = items <= SMALL_TABLE and (engine.buckets is None or engine.buckets.is_local)
        jobs.start(engine, "export", lambda stopped: run_export(engine, job, plan, stopped), now=is_small)
    # AWS: the reply says IN_PROGRESS, also if the export has ended.
    return {"ExportDescription": job.description}


def describe_export(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Describe an export."""
    arn = members["ExportArn"]
    check_job_arn(arn, "export")
    with engine.database.read() as connection:
        job = jobs.find(connection, arn)
    if job is None:
        raise ServiceError("ExportNotFoundException", f"Export not found: Export not found: {arn}")
    return {"ExportDescription": job.description}


def list_exports(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List the exports, newest first; of a table only those of its present TableId."""
    arn = members.get("TableArn")
    with engine.database.snapshot() as connection:
        found = jobs.list_jobs(connection, is_export=True)
        if arn is not None:
            table = Catalog().load(connection, named_table(arn))
            # AWS: exports of a deleted table are described, but not listed by its ARN.
            table_id = None if table is None else table.definition["TableId"]
            found = [job for job in found if job.description["TableId"] == table_id]
    page, token = cut_page(found, members, "MaxResults", "export")
    answer: dict[str, Any] = {
        "ExportSummaries": [
            {
                "ExportArn": job.arn,
                "ExportStatus": job.status,
                "ExportType": job.description.get("ExportType", "FULL_EXPORT"),
            }
            for job in page
        ]
    }
    return answer if token is None else answer | {"NextToken": token}


def _check_members(members: dict[str, Any]) -> None:
    kind, specification = members.get("ExportType"), members.get("IncrementalExportSpecification")
    if members.get("ExportFormat") == "ION":
        raise invalid(unsupported("ExportFormat ION"))
    if specification is not None and kind is None:
        raise invalid(
            "Invalid Request: Export Type expected to be Incremental Export when incremental export "
            "specification is provided"
        )
    if specification is not None and kind == "FULL_EXPORT":
        raise invalid(
            "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not "
            "be provided"
        )
    if specification is None and kind == "INCREMENTAL_EXPORT":
        raise invalid(
            "Invalid Request: Incremental Export Specification expected when export type is set as "
            "Incremental Export"
        )
    if specification is not None and "ExportFromTime" not in specification:
        raise invalid("Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification")
    if "S3SseKmsKeyId" in members and members.get("S3SseAlgorithm") != "KMS":
        raise invalid("Invalid Request: KMS Key Id is not supported for this encryption type")


def _new_job(
    connection: sqlite3.Connection, table: Table, members: dict[str, Any], now: int, times: dict[str, Any]
) -> Job:
    arn = jobs.new_arn(connection, f"{table_arn(table.name)}/export", members, now)
    description: dict[str, Any] = {
        "ExportArn": arn,
        "ExportStatus": jobs.IN_PROGRESS,
        "StartTime": now // 1000 / 1000,
        "TableArn": table_arn(table.name),
        "TableId": table.definition["TableId"],
        "ExportFormat": "DYNAMODB_JSON",
        "S3SseAlgorithm": members.get("S3SseAlgorithm", "AES256"),
        **{name: members[name] for name in _ECHOED if name in members},
        **times,
    }
    return Job(arn=arn, is_export=True, started_micros=now, description=description, request=members)


def _plan(
    connection: sqlite3.Connection, table: Table, members: dict[str, Any], now: int
) -> tuple[ExportPlan, dict[str, Any]]:
    """Return what is exported, and the times that the description has."""
    if members.get("ExportType") == "INCREMENTAL_EXPORT":
        return _plan_period(connection, table, members["IncrementalExportSpecification"], now)
    window = _window(connection, table)
    newest = positions.latest(connection, now)
    if "ExportTime" not in members:
        return ExportPlan(table=table, until=newest.sequence), {"ExportTime": now // 1000 / 1000}
    asked = int(members["ExportTime"] * _SECOND)
    # DynamoDB: times are whole seconds.
    if asked // _SECOND > newest.at_micros // _SECOND or asked // _SECOND < _created(table) // _SECOND:
        raise _wrong_time("Export Time is invalid")
    earliest = _earliest(table, window, now)
    if asked // _SECOND < earliest // _SECOND:
        raise _wrong_time("Point in Time Recovery is not available for specified export time")
    position = positions.at_time(connection, window, max(asked, earliest))
    return ExportPlan(table=table, until=position.sequence), {"ExportTime": asked / _SECOND}


def _plan_period(
    connection: sqlite3.Connection, table: Table, specification: dict[str, Any], now: int
) -> tuple[ExportPlan, dict[str, Any]]:
    # DynamoDB: from is inclusive, to is exclusive, both are whole seconds.
    start = int(specification["ExportFromTime"]) * _SECOND
    end = int(specification.get("ExportToTime", now // _SECOND)) * _SECOND
    if start < _created(table) // _SECOND * _SECOND:
        raise _wrong_time(
            "Incremental export period from time cannot be less than the table creation time : "
            f"{_text(start)}"
        )
    if end > now:
        raise _wrong_time(
            f"Incremental export period to time cannot be greater than the current time : {_text(end)}"
        )
    if end - start < _SHORTEST_PERIOD:
        raise _wrong_time(f"{_DIFFERENCE} less than 15 minutes")
    if end - start > _LONGEST_PERIOD:
        raise _wrong_time(f"{_DIFFERENCE} greater than 24 hours")
    window = _window(connection, table)
    earliest = _earliest(table, window, now)
    if start < earliest // _SECOND * _SECOND:
        raise _wrong_time("Point in Time Recovery is not available for specified export time")
    view = specification.get("ExportViewType", "NEW_AND_OLD_IMAGES")
    plan = ExportPlan(
        table=table,
        after=positions.at_time(connection, window, max(start - 1, earliest)).sequence,
        until=positions.at_time(connection, window, end - 1).sequence,
        view=view,
    )
    times = {"ExportFromTime": start // _SECOND, "ExportToTime": end // _SECOND, "ExportViewType": view}
    return plan, {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": times}


def _window(connection: sqlite3.Connection, table: Table) -> Window:
    try:
        return positions.require_window(connection, table)
    except RecoveryError:
        raise ServiceError(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{table.name}'",
        ) from None


def _earliest(table: Table, window: Window, now: int) -> int:
    return window.start_micros(now, table.definition["PointInTimeRecovery"]["RecoveryPeriodInDays"])


def _created(table: Table) -> int:
    return int(table.definition["CreationDateTime"] * _SECOND)


def _wrong_time(message: str) -> ServiceError:
    return ServiceError("InvalidExportTimeException", message)


def _text(micros: int) -> str:
    # A client may send any number.
    seconds = max(0, min(micros // _SECOND, 253_402_300_799))
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
