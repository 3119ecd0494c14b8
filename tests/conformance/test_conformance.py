"""Every case of every topic, played on the engine in process, through its server with boto3, and, when
asked, on DynamoDB Local."""

from __future__ import annotations

import http.client
import importlib
import pkgutil
from collections import Counter

import pytest

from tests.waiting import wait_until

from . import cases
from .dynamodb_local import TOO_OLD, Server
from .harness import Case, Fails, Refused, Target, play
from .tables import TABLES
from .targets import InProcess
from .through_boto3 import Boto3

CASES: list[tuple[str, Case]] = [
    (f"{topic.name}/{case.name}", case)
    for topic in pkgutil.iter_modules(cases.__path__)
    for case in importlib.import_module(f"{cases.__name__}.{topic.name}").CASES
]

every_case = pytest.mark.parametrize("case", [case for _, case in CASES], ids=[id_ for id_, _ in CASES])


@every_case
def test_the_engine_answers_as_dynamodb_does(engine: InProcess, case: Case) -> None:
    create_tables(engine, case)
    play(engine, case)


reworded_cases = pytest.mark.parametrize(
    "case",
    [case for _, case in CASES if case.reworded],
    ids=[id_ for id_, case in CASES if case.reworded],
)


@reworded_cases
def test_the_engine_answers_as_dynamodb_did_in_2025(engine_of_2025: InProcess, case: Case) -> None:
    create_tables(engine_of_2025, case)
    play(engine_of_2025, case, "2025")


@every_case
def test_the_server_answers_as_dynamodb_does(server: Boto3, case: Case) -> None:
    drop_every_table(server.plain)
    create_tables(server.plain, case)
    play(server, case)


@every_case
def test_dynamodb_local_answers_as_the_case_says(local: Server, case: Case) -> None:
    drop_every_table(local.target)
    create_tables(local.target, case)
    try:
        # The texts of its newest release, 3.3.1, are those of 2025.
        play(local.target, case, "2025")
    except (OSError, http.client.HTTPException):
        raise
    except Exception as difference:
        if case.local:
            pytest.xfail(f"DynamoDB Local {case.local}")
        if local.outdated:
            pytest.xfail(f"{local.version} {TOO_OLD}: {difference}")
        raise
    if case.local and not local.outdated:
        pytest.fail(f"DynamoDB Local agrees with this case now; remove its note: local={case.local!r}")


def test_case_names_are_unique() -> None:
    repeated = [name for name, times in Counter(name for name, _ in CASES).items() if times > 1]
    assert repeated == []


def test_every_case_expects_something() -> None:
    assert [name for name, case in CASES if all(step.expect is None for step in case.steps)] == []


def test_every_text_that_aws_has_changed_names_its_evidence() -> None:
    refusals = [
        (name, step.expect) for name, case in CASES for step in case.steps if isinstance(step.expect, Fails)
    ]
    changed = [(name, refusal) for name, refusal in refusals if refusal.older is not None]
    assert len(changed) >= 200
    assert [name for name, refusal in changed if not refusal.evidence] == []
    assert [name for name, refusal in changed if refusal.older == refusal.message] == []


def test_there_are_at_least_600_cases() -> None:
    assert len(CASES) >= 600


def test_cases_name_only_standard_tables() -> None:
    unknown = {name: set(case.tables) - TABLES.keys() for name, case in CASES}
    assert {name: tables for name, tables in unknown.items() if tables} == {}


def create_tables(target: Target, case: Case) -> None:
    """Create the standard tables that the case names, and wait until they can be used."""
    for name in case.tables:
        target.call("CreateTable", TABLES[name])
    for name in case.tables:
        wait_until_active(target, name)


def wait_until_active(target: Target, table: str) -> None:
    def states() -> set[str]:
        description = target.call("DescribeTable", {"TableName": table})["Table"]
        indexes = description.get("GlobalSecondaryIndexes", [])
        return {description["TableStatus"], *(index["IndexStatus"] for index in indexes)}

    wait_until(lambda: states() == {"ACTIVE"}, seen=lambda: (table, states()))


def drop_every_table(target: Target) -> None:
    """Leave no table behind, whatever state the last case left it in."""

    def names() -> list[str]:
        found: list[str] = target.call("ListTables", {})["TableNames"]
        return found

    def dropped() -> bool:
        for name in names():
            drop(target, name)
        return not names()

    wait_until(dropped, seen=names)


def drop(target: Target, name: str) -> None:
    try:
        target.call("DeleteTable", {"TableName": name})
    except Refused as refused:
        match refused.code:
            case "ResourceNotFoundException" | "ResourceInUseException" | "LimitExceededException":
                pass  # gone, or to be asked again
            case _:
                target.call("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})
