"""`solotable patterns`, `explain`, `tables`, `entities` and `indexes`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .conftest import Run

#: Orders and their lines in one partition, where a query of the orders reads the lines, too.
MIXED = """
from solotable import Entity, Key, Query, Table, pattern

shop = Table("Shop")


class Order(Entity, table=shop):
    key = Key("CUSTOMER#{customer}", "ORDER#{number:04d}")
    customer: str
    number: int
    state: str = "done"

    @pattern
    @classmethod
    def of_customer(cls, customer: str) -> Query["Order"]:
        return cls.key.query(customer=customer)

    @pattern
    @classmethod
    def open_of(cls, customer: str) -> Query["Order"]:
        return cls.key.query(customer=customer).where(lambda order: order.state == "open")


class Line(Entity, table=shop):
    key = Key("CUSTOMER#{customer}", "ORDER#{number:04d}#LINE#{line}")
    customer: str
    number: int
    line: str
"""


def patterns(run: Run) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in run("patterns", "--json").json}


def test_key_conditions_are_symbolic(run: Run) -> None:
    found = {name: (each["index"], each["key_condition"]) for name, each in patterns(run).items()}
    partition = "GSI2PK = TENANT#{tenant_id}#SURVEY#{survey_id}"
    assert found == {
        "Section.of_survey": ("GSI2", f'{partition} AND begins_with(GSI2SK, "SECTION#")'),
        "Section.between_orders": (
            "GSI2",
            f'{partition} AND GSI2SK BETWEEN "SECTION#{{low}}" AND "SECTION#{{high}}$"',
        ),
        "Section.after_order": (
            "GSI2",
            f'{partition} AND GSI2SK BETWEEN "SECTION#{{computed order}}" AND "SECTION$"',
        ),
        "Section.named": ("GSI3", 'GSI3PK = TENANT#{tenant_id}#NAMES AND begins_with(GSI3SK, "NAME#")'),
        "Section.with_notes": (
            None,
            'PK = TENANT#{tenant_id} AND begins_with(SK, "SURVEY#{survey_id}#SECTION#")',
        ),
        "Room.open_on": ("GSI1", "house = {house} AND state = 'open' AND floor = {floor}"),
        "Room.closed_since": ("GSI1", "house = {house} AND state = 'closed' AND floor >= {computed floor}"),
    }


def test_the_rest_of_the_table(run: Run) -> None:
    found = patterns(run)
    assert found["Section.between_orders"]["arguments"] == ["survey_id: str", "low: int", "high: int"]
    assert found["Section.between_orders"]["direction"] == "descending"
    assert found["Section.of_survey"]["summary"] == "The sections of a survey, in order."
    assert found["Section.after_order"]["projection"] == "Names (name)"
    assert found["Section.named"]["projection"] == "KEYS_ONLY, then whole items"
    assert found["Section.named"]["cost"] == "0.5 RCU per 4 KB read, and 0.5 RCU per item fetched"
    assert found["Section.with_notes"]["filters"] == ["notes"]
    assert found["Section.with_notes"]["cost"] == "0.5 RCU per 4 KB read, dropped rows included"


def test_patterns_as_text_and_markdown(run: Run) -> None:
    text = run("patterns").out
    assert "Section.of_survey" in text
    assert "begins_with" in text
    lines = run("patterns", "--format", "markdown").out.splitlines()
    assert lines[0].startswith("| pattern | arguments | index | key condition |")
    assert len(lines) == 2 + 7
    assert all(line.count(" | ") == 7 for line in lines[2:])


def test_a_pattern_is_explained_without_a_database(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOLOTABLE_URL")
    monkeypatch.delenv("SOLOTABLE_TENANT")
    options = ("--items", "40", "--item-size", "1000", "--rate", "50/s", "--json")
    found = run("explain", "Section.of_survey", *options).json
    (sent,) = found["requests"]
    assert sent["operation"] == "Query"
    assert sent["request"]["Limit"] == 40
    assert "ReturnConsumedCapacity" not in sent["request"]
    assert list(sent["request"]["ExpressionAttributeValues"].values()) == [
        {"S": "TENANT#{tenant_id}#SURVEY#{survey_id}"},
        {"S": "SECTION#"},
    ]
    # 40,000 bytes are 10 steps of 4 KB, halved.
    assert found["estimated"] == {"units": 5.0, "kind": "read", "by": {"table": 0.0, "GSI2": 5.0}}
    assert found["measured"] is None
    cost = found["cost"]
    assert (cost["region"], cost["prices_of"], cost["basis"]) == ("us-east-1", "2025-07-21", "estimated")
    assert cost["dollars_per_million"] == 0.625
    # 50 a second in 730 hours are 131.4 million.
    assert cost["dollars_per_month"] == pytest.approx(82.125)
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_is_measured_on_a_database(filled: Run) -> None:
    filled("update", "Section", "survey_id=s1", "section_id=roof", "--set", "notes=Clay")
    found = filled("explain", "Section.with_notes", "survey_id=s1", "notes=Clay", "--json").json
    measured = found["measured"]
    assert (measured["units"], measured["requests"]) == (0.5, 1)
    assert (measured["items_read"], measured["items_returned"]) == (3, 1)
    assert (measured["items_filtered"], measured["items_of_others"]) == (2, 0)
    assert found["cost"]["basis"] == "measured"
    assert found["cost"]["dollars_per_million"] == 0.0625
    text = filled("explain", "Section.with_notes", "survey_id=s1", "notes=Clay", "--rate", "1/s").out
    assert "3 read, 1 returned, 2 removed by the filter\n" in text
    assert "prices of 2025-07-21" in text


def test_items_of_other_entities_are_counted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mixed_models.py").write_text(MIXED)
    monkeypatch.setenv("SOLOTABLE_MODELS", "mixed_models.py")
    monkeypatch.delenv("SOLOTABLE_TENANT")
    assert run("put", "Order", "customer=c", "number=1").code == 0
    assert run("put", "Order", "customer=c", "number=2", "state=open").code == 0
    for line in ("a", "b", "c"):
        assert run("put", "Line", "customer=c", "number=1", f"line={line}").code == 0
    orders = ("explain", "Order.of_customer", "customer=c")
    measured = run(*orders, "--json").json["measured"]
    counts = {name: measured[name] for name in measured if name.startswith("items_")}
    assert counts == {"items_read": 5, "items_filtered": 0, "items_of_others": 3, "items_returned": 2}
    text = run(*orders).out
    assert "items     5 read, 2 returned, 3 of other entities\n" in text
    assert "(1 request at sqlite:///survey.db)" in text
    filtered = run("explain", "Order.open_of", "customer=c").out
    assert "items     5 read, 1 returned, 4 removed by the filter\n" in filtered


def test_fetches_of_unprojected_items_are_measured(filled: Run) -> None:
    found = filled("explain", "Section.named", "--items", "3", "--json").json
    assert "BatchGetItem" in found["then"]
    assert found["measured"]["by"] == {"table": 1.5, "GSI3": 0.5}
    assert found["estimated"]["by"] == {"table": 1.5, "GSI3": 0.5}


def test_a_put_pays_for_the_indexes_of_its_item(run: Run, tmp_path: Path) -> None:
    found = run("explain", "put", "Section", "label=x", "--json").json
    assert found["estimated"]["by"] == {"table": 1.0, "GSI2": 1.0, "GSI3": 1.0, "LSI1": 1.0}
    assert found["measured"]["units"] == 4.0
    assert found["estimated"]["by"] == found["measured"]["by"]
    without = run("explain", "put", "Section", "--json").json
    assert "LSI1" not in without["estimated"]["by"]
    size = ("--item-size", "3000", "--rate", "1/s")
    large = run("explain", "put", "Section", "label=x", *size, "--json").json
    # 2,628,000 items of 3,100 bytes.
    storage = 2_628_000 * 3100 / 2**30 * 0.25
    assert large["cost"]["storage_dollars_per_month"] == pytest.approx(storage, abs=1e-4)
    assert large["estimated"]["by"] == {"table": 3.0, "GSI2": 3.0, "GSI3": 1.0, "LSI1": 1.0}
    assert large["measured"] is None
    assert large["cost"]["dollars_per_million"] == 8 * 0.625
    versioned = run("explain", "put", "Survey", "--json").json
    assert "ConditionExpression" in versioned["requests"][0]["request"]
    assert versioned["assumed"]["sample_values"] == ["survey_id", "title"]
    assert list(tmp_path.iterdir()) == []


def test_a_large_put_is_estimated_as_it_is_measured(run: Run) -> None:
    notes = "x" * 5000
    found = run("explain", "put", "Section", "label=x", f"notes={notes}", "--json").json
    assert found["estimated"]["units"] > 10
    assert found["estimated"]["by"] == found["measured"]["by"]


def test_derived_writes_are_counted(run: Run) -> None:
    found = run("explain", "put", "Task", "--json").json
    sent = found["requests"][-1]
    assert sent["operation"] == "TransactWriteItems"
    assert len(sent["request"]["TransactItems"]) == 2
    assert found["estimated"]["by"] == found["measured"]["by"] == {"table": 4.0}
    first = [each["operation"] for each in found["requests"][:-1]]
    read = found["measured"].get("read_first", 0)
    assert found["estimated"].get("read_first", 0) == read == len(first)
    assert found["cost"]["dollars_per_million"] == 4 * 0.625 + read * 0.125
    child = run("explain", "put", "Step", "--json").json
    assert child["requests"][-1]["operation"] == "TransactWriteItems"
    assert child["estimated"]["units"] == 4.0
    # The engine in memory has no parent, so it rejects the transaction.
    assert child["measured"] is None


def test_a_narrow_terminal_gets_cards(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("patterns").out.splitlines()
    assert lines[0] == "Section.of_survey(survey_id: str)  The sections of a survey, in order."
    assert lines[1].startswith("  GSI2: GSI2PK = TENANT#{tenant_id}")
    assert lines[2] == "  ascending, ALL, 0.5 RCU per 4 KB read"
    monkeypatch.setenv("COLUMNS", "250")
    assert "│" in run("patterns").out


def test_a_get(filled: Run) -> None:
    assert filled("explain", "get", "Survey").code == 2
    found = filled("explain", "get", "Survey", "survey_id=s1", "--item-size", "9000", "--json").json
    assert found["estimated"]["units"] == 1.5
    assert found["measured"]["units"] == 0.5
    assert found["requests"][0]["operation"] == "GetItem"


def test_a_price_table_of_the_user(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLOTABLE_URL")
    prices = {"read_per_million": 1, "write_per_million": 2.5, "storage_per_gb_month": 0.3}
    table = {"date": "2035-01-01", "regions": {"eu-west-1": prices}}
    (tmp_path / "prices.json").write_text(json.dumps(table))
    found = run("explain", "put", "Survey", "--region", "eu-west-1", "--prices", "prices.json", "--json").json
    assert found["cost"]["prices_of"] == "2035-01-01"
    assert found["cost"]["dollars_per_million"] == 2.5
    elsewhere = run("explain", "put", "Survey", "--region", "eu-west-1")
    assert elsewhere.code == 2
    assert "has no eu-west-1; it has us-east-1" in elsewhere.err
    (tmp_path / "prices.json").write_text("[]")
    assert run("explain", "put", "Survey", "--prices", "prices.json").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "Section.of_surveys"), "did you mean 'Section.of_survey'?"),
        (("explain", "put"), "Missing entity; write: solotable explain put ENTITY"),
        (("explain", "put", "Sektion"), "did you mean 'Section'?"),
        (("explain", "put", "Survey", "--rate", "often"), "write it like 50/s"),
        (("explain", "Section.of_survey", "order=1"), "has no 'order'"),
    ],
)
def test_it_explains_usage_errors(run: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert message in ran.err


def test_listings(run: Run) -> None:
    tables = run("tables", "--json").json
    assert [(row["table"], row["indexes"], row["entities"], row["patterns"]) for row in tables] == [
        ("SurveyorData", 3, 5, 5),
        ("Building", 1, 1, 2),
    ]
    entities = {row["entity"]: row for row in run("entities", "--json").json}
    assert entities["Setting"]["scope"] == "global"
    assert entities["Survey"]["version"] == "version"
    assert entities["Room"]["key"] == "PK=HOUSE#{house}, SK=ROOM#{room_id}"
    indexes = {(row["table"], row["index"]): row for row in run("indexes", "--json").json}
    assert indexes["Building", "GSI1"]["key"] == "(house, state), (floor, door)"
    assert indexes["SurveyorData", "LSI1"]["kind"] == "local"
    assert indexes["SurveyorData", "GSI2"]["used by"] == ["Section.by_order"]
