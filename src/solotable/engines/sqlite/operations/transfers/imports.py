"""ImportTable, DescribeImport and ListImports."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from solotable._protocol.errors import unsupported
from solotable.engines.sqlite.operations.tables.create_table import check_new_table, new_definition
from solotable.engines.sqlite.tables.catalog import Catalog, Definition, Table
from solotable.engines.sqlite.tables.definitions import ACCOUNT, REGION, table_arn
from solotable.engines.sqlite.transfers import jobs
from solotable.engines.sqlite.transfers.importing import run_import
from solotable.engines.sqlite.transfers.jobs import Job
from solotable.errors import ServiceError, invalid

from .pages import check_job_arn, cut_page, named_table

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws-dynamodb/imports:*"
_LISTED = (
    "ImportArn",
    "ImportStatus",
    "TableArn",
    "S3BucketSource",
    "CloudWatchLogGroupArn",
    "InputFormat",
    "StartTime",
    "EndTime",
)


def import_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Start the import of a bucket's objects into a new table."""
    _check_members(members)
    parameters = members["TableCreationParameters"]
    name = parameters["TableName"]
    definitions: list[Definition] = []

    def run(connection: sqlite3.Connection) -> Job:
        definitions.clear()
        now = engine.now_micros()
        table = Catalog().load(connection, name)
        repeated = jobs.find_token(connection, members.get("ClientToken"), is_export=False, now_micros=now)
        if repeated is not None:
            if repeated.request["TableCreationParameters"]["TableName"] != name:
                raise ServiceError(
                    "ImportConflictException",
                    "Import conflict: Duplicate request detected with conflicting parameters",
                )
            if repeated.status == jobs.IN_PROGRESS or table is None:
                return repeated
        _check_free(table, name)
        definitions.append(new_definition(parameters, now))
        job = _new_job(connection, definitions[0], members, now)
        jobs.add(connection, job)
        return job

    job = engine.database.write(run)
    if definitions:
        definition = definitions[0]
        jobs.start(
            engine,
            "import",
            lambda stopped: run_import(engine, job, definition, stopped),
            # Without buckets, the import fails at once.
            now=engine.buckets is None,
        )
    return {"ImportTableDescription": job.description}


def describe_import(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Describe an import."""
    arn = members["ImportArn"]
    check_job_arn(arn, "import")
    with engine.database.read() as connection:
        job = jobs.find(connection, arn)
    if job is None:
        raise ServiceError("ImportNotFoundException", f"Import not found: Import not found: {arn}")
    return {"ImportTableDescription": job.description}


def list_imports(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List the imports, newest first, also those of deleted tables."""
    arn = members.get("TableArn")
    with engine.database.snapshot() as connection:
        found = jobs.list_jobs(connection, is_export=False)
    if arn is not None:
        wanted = table_arn(named_table(arn))
        found = [job for job in found if job.description["TableArn"] == wanted]
    page, token = cut_page(found, members, "PageSize", "import")
    answer: dict[str, Any] = {
        "ImportSummaryList": [
            {name: job.description[name] for name in _LISTED if name in job.description} for job in page
        ]
    }
    return answer if token is None else answer | {"NextToken": token}


def _check_members(members: dict[str, Any]) -> None:
    format_, compression = members["InputFormat"], members.get("InputCompressionType", "NONE")
    if members.get("InputFormatOptions", {}).get("Csv") is not None and format_ != "CSV":
        raise invalid(
            f"Invalid Request: Unsupported InputFormatOptions for the given input format: {format_}."
        )
    if format_ == "ION":
        raise invalid(unsupported("InputFormat ION"))
    if compression == "ZSTD":
        raise invalid(unsupported("InputCompressionType ZSTD"))
    check_new_table(members["TableCreationParameters"])


def _check_free(table: Table | None, name: str) -> None:
    # AWS: while one import creates a table, another one of the same name is accepted, and fails later.
    if table is not None and "Import" not in table.definition:
        raise ServiceError("ResourceInUseException", f"Table already exists: {name}")


def _new_job(
    connection: sqlite3.Connection, definition: Definition, members: dict[str, Any], now: int
) -> Job:
    arn = jobs.new_arn(connection, f"{table_arn(definition['TableName'])}/import", members, now)
    description: dict[str, Any] = {
        "ImportArn": arn,
        "ImportStatus": jobs.IN_PROGRESS,
        "TableArn": table_arn(definition["TableName"]),
        "TableId": definition["TableId"],
        "S3BucketSource": {"S3BucketOwner": ACCOUNT} | members["S3BucketSource"],
        "ErrorCount": 0,
        "CloudWatchLogGroupArn": _LOGS,
        "InputFormat": members["InputFormat"],
        "InputCompressionType": members.get("InputCompressionType", "NONE"),
        "TableCreationParameters": members["TableCreationParameters"],
        "StartTime": now // 1000 / 1000,
        "ProcessedSizeBytes": 0,
        "ProcessedItemCount": 0,
        "ImportedItemCount": 0,
    }
    for name in ("ClientToken", "InputFormatOptions"):
        if name in members:
            description[name] = members[name]
    return Job(arn=arn, is_export=False, started_micros=now, description=description, request=members)
