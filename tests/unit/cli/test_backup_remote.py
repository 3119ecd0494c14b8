"""`solotable backup remote` against a server of solotable with buckets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3 as aws
import pytest

from tests.serving import Served, served

from .conftest import Run

KEYS: dict[str, Any] = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "vault").mkdir()
    with served("--memory", "--buckets", str(folder), cwd=Path(folder)) as running:
        client = aws.client(
            "dynamodb",
            endpoint_url=running.url,
            region_name="us-east-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        client.create_table(TableName="Shop", Tags=[{"Key": "owner", "Value": "shop"}], **KEYS)
        client.put_item(TableName="Shop", Item={"id": {"S": "a"}})
        yield running


@pytest.fixture
def remote(run: Run, server: Served, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")

    def run_(command: str, *arguments: str) -> Any:
        return run("backup", "remote", command, f"{server.url}/Shop?region=us-east-1", *arguments)

    return run_


def test_a_table_is_exported_restored_and_rehearsed_over_http(remote: Run) -> None:
    assert remote("status").out.startswith("Shop: continuous backups are disabled.")
    refused = remote("export", "vault")
    assert (refused.code, "Point in time recovery is not enabled" in refused.err) == (1, True)
    assert remote("enable", "--dry-run").out.endswith("would be enabled for 35 days.\n")
    assert remote("enable").code == 0
    assert remote("export", "vault", "--dry-run").out == "1 export of Shop to vault would start.\n"
    done = remote("export", "vault", "--prefix", "daily", "--poll", "0", "--json")
    assert done.code == 0, done.err
    assert (done.json[0]["status"], done.json[0]["items"]) == ("COMPLETED", 1)
    assert done.json[0]["manifest"].startswith("daily/AWSDynamoDB/")
    again = remote("export", "vault", "--prefix", "daily", "--poll", "0", "--json")
    assert again.json[0]["arn"] == done.json[0]["arn"]
    failed = remote("export", "absent", "--poll", "0")
    assert (failed.code, "S3NoSuchBucket" in failed.err) == (1, True)
    found = remote("status", "--json").json
    assert [each["ExportStatus"] for each in found["exports"]] == ["FAILED", "COMPLETED"]
    restored = remote("restore", "Restored", "--poll", "0", "--json")
    assert restored.code == 0, restored.err
    assert {each["name"]: each["outcome"] for each in restored.json["settings"]}["tags"] == "applied"
    assert restored.json["is_equal"] is True
    drilled = remote("drill", "--poll", "0", "--json")
    assert drilled.code == 0, drilled.err
    assert drilled.json["differences"] == []
    assert "takes about 0 read units, and a restore of Shop, which AWS bills" in drilled.err
    priced = remote("drill", "--items", "100", "--dry-run")
    assert priced.out.startswith("The drill takes about 3 read units, and a restore of Shop")
    compared = remote("drill", "--items", "100", "--poll", "0.05")
    assert compared.code == 0, compared.err
    assert compared.out.endswith("1 item compared, 0 wrong, 0 changed during the drill.\n")
    planned = remote("plan")
    assert planned.code == 0
    assert "gives back: tags, point-in-time recovery." in planned.out


def test_a_file_and_a_url_without_a_table_are_rejected(run: Run, server: Served) -> None:
    for url in ("survey.db", server.url):
        done = run("backup", "remote", "status", url)
        assert done.code == 2
        assert "Pass the URL of a table" in done.err


def test_times_of_an_incremental_export_need_the_option(remote: Run) -> None:
    assert "need --incremental" in remote("export", "vault", "--since", "2026-01-01").err
