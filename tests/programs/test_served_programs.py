"""Unchanged programs of other projects against a real `solotable serve`: they get only its URL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Served, environment, served
from tests.waiting import HANG_SECONDS

from . import installed
from .installed import JAVASCRIPT, Unavailable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Served]:
    with served("--access-key", "AKID", "--secret-key", "secret", str(tmp_path / "shop.db")) as running:
        yield running


@pytest.fixture(scope="session")
def node_modules() -> Path:
    try:
        return installed.node_modules()
    except Unavailable as reason:
        pytest.skip(f"The AWS SDK for JavaScript is not available: {reason}.")


@pytest.fixture(scope="session")
def aws_packages() -> Path:
    try:
        return installed.aws_cli()
    except Unavailable as reason:
        pytest.skip(f"The AWS CLI is not available: {reason}.")


def aws_environment(database: Served, **more: str) -> dict[str, str]:
    return environment(
        AWS_ENDPOINT_URL=database.url,
        AWS_REGION="eu-central-1",
        AWS_DEFAULT_REGION="eu-central-1",
        AWS_ACCESS_KEY_ID="AKID",
        AWS_SECRET_ACCESS_KEY="secret",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE="absent",
        AWS_SHARED_CREDENTIALS_FILE="absent",
        **more,
    )


def run(command: list[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - programs of this folder
        command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS, env=env, cwd=cwd
    )


def test_a_javascript_program_runs_unchanged(database: Served, node_modules: Path, tmp_path: Path) -> None:
    program = tmp_path / "library.mjs"
    program.write_bytes((JAVASCRIPT / "library.mjs").read_bytes())
    (tmp_path / "node_modules").symlink_to(node_modules)
    done = run(["node", "--no-warnings", program.name], aws_environment(database), tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "table Library is ACTIVE, made true",
        "Tove's Æventyr 🐉, 321 pages, fantasy,nordic, 0,1,255",
        '{"room":2,"lent":false,"notes":[null,"worn",1.5]} false',
        "ConditionalCheckFailedException 400 The conditional request failed 321",
        "due: 6,5,4,3",
        "pages: 20,20,10",
        "updated: 322 true",
        "TransactionCanceledException: ConditionalCheckFailed,None",
        "items: 52",
        "changes: 54, first INSERT of BOOK#1",
        "ResourceNotFoundException: Requested resource not found",
        "tables: 0",
    ]


def test_the_aws_cli_works(database: Served, aws_packages: Path, tmp_path: Path) -> None:
    def aws(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = aws_environment(database) | {"PYTHONPATH": str(aws_packages)}
        return run([sys.executable, "-m", "awscli", "dynamodb", *arguments], env, tmp_path)

    def answer(*arguments: str) -> Any:
        done = aws(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout or "{}")

    definition = (
        "--table-name Notes --attribute-definitions AttributeName=pk,AttributeType=S "
        "--key-schema AttributeName=pk,KeyType=HASH --billing-mode PAY_PER_REQUEST"
    )
    assert answer("create-table", *definition.split())["TableDescription"]["TableName"] == "Notes"
    assert answer("list-tables") == {"TableNames": ["Notes"]}
    item = {"pk": {"S": "1"}, "text": {"S": "Grüße"}, "n": {"N": "1.5"}}
    answer("put-item", "--table-name", "Notes", "--item", json.dumps(item))
    key = ("--table-name", "Notes", "--key", '{"pk":{"S":"1"}}')
    assert answer("get-item", *key) == {"Item": item}
    refused = aws("get-item", "--table-name", "Absent", "--key", '{"pk":{"S":"1"}}')
    assert refused.returncode > 0
    assert "ResourceNotFoundException" in refused.stderr


def test_a_boto3_program_runs_unchanged(database: Served, tmp_path: Path) -> None:
    program = "from tests.programs import boto3_tasks; print('\\n'.join(boto3_tasks.main()))"
    env = aws_environment(database)
    env["PYTHONPATH"] += f":{ROOT}"
    done = run([sys.executable, "-c", program], env, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "status ACTIVE, 0 items"
    assert done.stdout.splitlines()[-1] == "tables: []"
