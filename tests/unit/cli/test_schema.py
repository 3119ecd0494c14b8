"""`schema show`, `diff`, `apply` and `export` on a real file."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable import Table
from solotable._entities.schema.export import cloudformation, requests, terraform
from solotable._protocol.requests import Control
from solotable.cli.design import schema
from solotable.engines import sqlite
from solotable.urls import Url

from .conftest import MODELS, Run
from .surveys import surveyor

ONE = ("-m", f"{MODELS}:surveyor")


def handle(path: Path, operation: str, **members: Any) -> Any:
    with sqlite.open(str(path)) as engine:
        return engine.handle(Control(operation=operation, members=members))


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """A table without GSI2, with another projection of GSI3, an index too many, and no TTL."""
    path = tmp_path / "survey.db"
    wanted = surveyor.definition()
    by_name = {each["IndexName"]: each for each in wanted["GlobalSecondaryIndexes"]}
    extra = {**by_name["GSI2"], "IndexName": "Old"}
    other = {**by_name["GSI3"], "Projection": {"ProjectionType": "ALL"}}
    handle(path, "CreateTable", **{**wanted, "GlobalSecondaryIndexes": [other, extra]})
    return path


def test_diff_reports_a_missing_table_and_creates_nothing(run: Run, tmp_path: Path) -> None:
    ran = run("schema", "diff", *ONE)
    assert (ran.code, ran.out) == (1, "SurveyorData: the table is missing: PK, SK\n")
    assert list(tmp_path.iterdir()) == []


def test_apply_creates_tables_with_time_to_live(run: Run, tmp_path: Path) -> None:
    assert run("schema", "apply").code == 0
    assert run("schema", "diff").out == "SurveyorData: as declared\nBuilding: as declared\n"
    reply = handle(tmp_path / "survey.db", "DescribeTimeToLive", TableName="SurveyorData")
    assert reply["TimeToLiveDescription"]["AttributeName"] == "expires"
    again = run("schema", "apply")
    assert (again.code, again.err) == (0, "SurveyorData: as declared\nBuilding: as declared\n")


def test_diff_names_every_difference(run: Run, drifted: Path) -> None:
    assert drifted.exists()
    ran = run("schema", "diff", "--json", *ONE)
    assert ran.code == 1
    found = {
        each["subject"]: (each["declared"], each["live"], each["remedy"]) for each in ran.json["SurveyorData"]
    }
    assert found == {
        "index GSI2": ("GSI2PK, GSI2SK; ALL", None, "add"),
        "index GSI3": ("GSI3PK, GSI3SK; KEYS_ONLY", "GSI3PK, GSI3SK; ALL", "replace"),
        "index Old": (None, "GSI2PK, GSI2SK; ALL", "delete"),
        "time to live": ("expires", None, "enable-ttl"),
    }


def test_apply_deletes_only_with_delete_extra(
    run: Run, drifted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    first = run("schema", "apply", *ONE)
    assert first.code == 1
    assert "index GSI2 is being added" in first.err
    assert "left unchanged: index Old is not in the model" in first.err
    left = {each["subject"] for each in run("schema", "diff", "--json", *ONE).json["SurveyorData"]}
    assert left == {"index GSI3", "index Old"}
    unanswered = run("schema", "apply", "--delete-extra", *ONE)
    assert unanswered.code == 2
    assert len(run("schema", "diff", "--json", *ONE).json["SurveyorData"]) == 2
    second = run("schema", "apply", "--delete-extra", "--yes", *ONE)
    assert second.code == 0, second.err
    assert "index Old is gone" in second.err
    assert run("schema", "diff", *ONE).code == 0
    live = handle(drifted, "DescribeTable", TableName="SurveyorData")["Table"]
    assert {each["IndexName"] for each in live["GlobalSecondaryIndexes"]} == {"GSI2", "GSI3"}


def test_apply_asks_before_it_changes_aws(run: Run, drifted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def confirm(text: str, **_: Any) -> Iterator[bool] | bool:
        asked.append(text)
        return False

    monkeypatch.setattr(schema, "is_remote", lambda url: isinstance(url, Url))
    monkeypatch.setattr("click.confirm", confirm)
    declined = run("schema", "apply", *ONE)
    assert (declined.code, asked) == (1, ["Apply these changes?"])
    assert "index GSI2" in {e["subject"] for e in run("schema", "diff", "--json", *ONE).json["SurveyorData"]}
    run("schema", "apply", "--yes", *ONE)
    assert len(asked) == 1


def test_diff_says_which_differences_need_a_new_table(run: Run, tmp_path: Path) -> None:
    wanted = surveyor.definition()
    wanted["KeySchema"] = [{"AttributeName": "PK", "KeyType": "HASH"}]
    wanted["AttributeDefinitions"] = [{"AttributeName": "PK", "AttributeType": "N"}]
    del wanted["GlobalSecondaryIndexes"], wanted["LocalSecondaryIndexes"]
    handle(tmp_path / "survey.db", "CreateTable", **wanted)
    ran = run("schema", "diff", *ONE)
    assert "the key is PK; the model says PK, SK (only a new table can change it)" in ran.out
    assert "the type of PK is N; the model says S" in ran.out
    assert "local index LSI1 is missing" in ran.out
    assert run("schema", "apply", *ONE).code == 1


def test_show(run: Run) -> None:
    shown = run("schema", "show").out
    assert "index       GSI3: GSI3PK, GSI3SK; KEYS_ONLY" in shown
    assert "local index LSI1: PK, label; INCLUDE _type, expires, order" in shown
    assert "index       GSI1: (house, state), (floor, door); INCLUDE _type, size" in shown
    assert "ttl         expires" in shown
    tables = run("schema", "show", "--json").json["Tables"]
    assert [table["CreateTable"]["TableName"] for table in tables] == ["SurveyorData", "Building"]


def test_exported_requests_create_the_declared_table(run: Run, tmp_path: Path) -> None:
    for table in run("schema", "export").json["Tables"]:
        for operation, members in table.items():
            handle(tmp_path / "survey.db", operation, **members)
    assert run("schema", "diff").code == 0


def test_cloudformation_has_the_same_members(run: Run) -> None:
    resources = run("schema", "export", "--format", "cfn").json["Resources"]
    made = resources["SurveyorData"]
    assert (made["Type"], made["DeletionPolicy"]) == ("AWS::DynamoDB::Table", "Retain")
    properties = dict(made["Properties"])
    assert properties.pop("TimeToLiveSpecification") == {"AttributeName": "expires", "Enabled": True}
    assert properties == surveyor.definition()


def test_terraform(run: Run) -> None:
    ran = run("schema", "export", "--format", "terraform", "-d", "sqlite:///x.db?prefix=dev-")
    made = ran.json["resource"]["aws_dynamodb_table"]
    survey, house = made["dev-SurveyorData"], made["dev-Building"]
    assert (survey["name"], survey["hash_key"], survey["range_key"]) == ("dev-SurveyorData", "PK", "SK")
    assert survey["ttl"] == {"attribute_name": "expires", "enabled": True}
    assert {"name": "label", "type": "S"} in survey["attribute"]
    gsi2, gsi3 = survey["global_secondary_index"]
    assert gsi2 == {"name": "GSI2", "hash_key": "GSI2PK", "range_key": "GSI2SK", "projection_type": "ALL"}
    assert gsi3["projection_type"] == "KEYS_ONLY"
    assert survey["local_secondary_index"] == [
        {
            "name": "LSI1",
            "range_key": "label",
            "projection_type": "INCLUDE",
            "non_key_attributes": ["_type", "expires", "order"],
        }
    ]
    (several,) = house["global_secondary_index"]
    assert [each["attribute_name"] for each in several["key_schema"]] == ["house", "state", "floor", "door"]
    assert "hash_key" not in several
    assert "GSI1: keys of several attributes need the AWS provider 6.29" in ran.err


def test_a_model_of_nosql_workbench_has_the_entities_as_facets(run: Run) -> None:
    ran = run("schema", "export", "--format", "workbench")
    assert (ran.json["ModelMetadata"]["AWSService"], ran.json["ModelMetadata"]["Version"]) == (
        "Amazon DynamoDB",
        "3.0",
    )
    survey, house = ran.json["DataModel"]
    assert survey["KeyAttributes"] == {
        "PartitionKey": {"AttributeName": "PK", "AttributeType": "S"},
        "SortKey": {"AttributeName": "SK", "AttributeType": "S"},
    }
    named = [each["AttributeName"] for each in survey["NonKeyAttributes"]]
    assert len(named) == len(set(named))
    assert {"_type", "expires", "GSI2PK"} <= set(named)
    assert not {"PK", "SK"} & set(named)
    assert [each["IndexName"] for each in survey["GlobalSecondaryIndexes"]] == ["GSI2", "GSI3"]
    facet = survey["TableFacets"][0]
    assert facet["FacetName"] == next(iter(surveyor.plans))
    assert "{" in facet["KeyAttributeAlias"]["SortKeyAlias"]
    # Every attribute of a facet is one of the table.
    for table in (survey, house):
        known = {each["AttributeName"] for each in table["NonKeyAttributes"]}
        assert all(set(each["NonKeyAttributes"]) <= known for each in table["TableFacets"])
        keys = [each["KeyAttributes"].values() for each in table["GlobalSecondaryIndexes"]]
        key_names = {part["AttributeName"] for each in keys for part in each}
        assert key_names <= known | {"PK", "SK"}
    assert "LSI1, GSI1: left out" in ran.err


def test_the_stream_is_exported_in_the_form_of_each_tool() -> None:
    """Terraform: stream_enabled and stream_view_type. CloudFormation: StreamViewType alone."""
    table = Table("Feed", stream=True)
    [created] = requests([(table, "Feed")])["Tables"]
    assert created["CreateTable"]["StreamSpecification"] == {
        "StreamEnabled": True,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    made = terraform([(table, "Feed")])["resource"]["aws_dynamodb_table"]["Feed"]
    assert (made["stream_enabled"], made["stream_view_type"]) == (True, "NEW_AND_OLD_IMAGES")
    properties = cloudformation([(table, "Feed")])["Resources"]["Feed"]["Properties"]
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    without = [(Table("Plain"), "Plain")]
    assert not any(
        name.startswith("stream") for name in terraform(without)["resource"]["aws_dynamodb_table"]["Plain"]
    )
    assert "StreamSpecification" not in cloudformation(without)["Resources"]["Plain"]["Properties"]
