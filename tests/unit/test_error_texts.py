"""The setting `error_texts` at every door: the engine, the URL, boto3 in process, and the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

import solotable.boto3
from solotable._connect import open_engine
from solotable._protocol import wire
from solotable.engines import sqlite
from solotable.errors import DeclarationError, ServiceError
from solotable.testing import RecordingEngine
from solotable.urls import Url
from tests.serving import command, served

OLDER = "Invalid UpdateExpression: The expression can not be empty;"
TEXTS = {"2025": OLDER, "2026": f"1 validation error detected: {OLDER}"}
REQUEST: dict[str, Any] = {"TableName": "Things", "Key": {"pk": {"S": "1"}}, "UpdateExpression": ""}

every_year = pytest.mark.parametrize("year", ["2025", "2026"])


def told(engine: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        engine.call("UpdateItem", REQUEST)
    return refused.value.message


def told_by(client: Any) -> str:
    with pytest.raises(ClientError) as refused:
        client.update_item(**REQUEST)
    message: str = refused.value.response["Error"]["Message"]
    return message


@every_year
def test_an_engine_refuses_in_the_texts_of_its_year(year: Any) -> None:
    with sqlite.open(":memory:", error_texts=year) as engine:
        assert told(engine) == TEXTS[year]
        _, body = wire.answer(engine, "DynamoDB_20120810.UpdateItem", json.dumps(REQUEST).encode())
        assert json.loads(body)["message"] == TEXTS[year]


def test_the_texts_of_2026_are_the_default(tmp_path: Path) -> None:
    with sqlite.open(tmp_path / "a.db") as engine:
        assert told(engine) == TEXTS["2026"]


def test_the_setting_is_the_opener_s_and_not_kept_in_the_file(tmp_path: Path) -> None:
    with sqlite.open(tmp_path / "a.db", error_texts="2025") as engine:
        assert told(engine) == TEXTS["2025"]
    with sqlite.open(tmp_path / "a.db") as engine:
        assert told(engine) == TEXTS["2026"]


@every_year
def test_a_url_names_the_year(year: str, tmp_path: Path) -> None:
    for url in (f"sqlite://?error_texts={year}", f"sqlite:///{tmp_path}/a.db?error_texts={year}"):
        engine: Any = open_engine(Url.parse(url))
        try:
            assert told(engine) == TEXTS[year]
        finally:
            engine.close()


def test_an_unknown_year_is_rejected_before_a_file_is_made(tmp_path: Path) -> None:
    texts: Any = "2024"
    with pytest.raises(DeclarationError, match="error_texts is 2025 or 2026, got '2024'"):
        sqlite.open(tmp_path / "a.db", error_texts=texts)
    with pytest.raises(DeclarationError, match="error_texts is 2025 or 2026, got '2024'"):
        open_engine(Url.parse(f"sqlite:///{tmp_path}/a.db?error_texts=2024"))
    assert list(tmp_path.iterdir()) == []


@every_year
def test_boto3_in_process_is_refused_in_the_texts_of_its_engine(year: Any) -> None:
    with sqlite.open(":memory:", error_texts=year) as engine:
        assert told_by(solotable.boto3.client(engine)) == TEXTS[year]
        with solotable.boto3.routed(engine):
            assert told_by(boto3.client("dynamodb", region_name="us-east-1")) == TEXTS[year]


def test_an_engine_around_an_engine_has_its_texts() -> None:
    with sqlite.open(":memory:", error_texts="2025") as engine:
        assert told(RecordingEngine(engine)) == TEXTS["2025"]


@every_year
def test_a_server_refuses_in_the_texts_of_its_option(year: str) -> None:
    with served("--memory", "--error-texts", year) as running:
        client = boto3.client(
            "dynamodb",
            endpoint_url=running.url,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )
        assert told_by(client) == TEXTS[year]
        client.close()


def test_a_server_knows_two_years() -> None:
    refused = command("serve", "--memory", "--error-texts", "2024")
    assert refused.returncode == 2
    assert "'2025', '2026'" in refused.stderr
