"""`adopt` on tables that another program wrote, and on a table of solotable's own."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from solotable._values import dump_item
from solotable.engines import sqlite
from solotable.systems.cms.entities import AuditEvent
from solotable.testing import seed

from .conftest import Run
from .published_designs import DESIGNS

FILE = "live.db"
EXAMPLES = Path(__file__).parents[3] / "examples"


def create(
    rows: Iterable[dict[str, Any]],
    *,
    name: str = "Live",
    keys: tuple[str, str] = ("PK", "SK"),
    indexes: dict[str, tuple[str, str]] | None = None,
) -> None:
    """Write items as boto3 would, without any model."""

    def schema(names: tuple[str, str]) -> list[dict[str, str]]:
        return [
            {"AttributeName": each, "KeyType": kind}
            for each, kind in zip(names, ("HASH", "RANGE"), strict=True)
        ]

    every = {each for names in (keys, *(indexes or {}).values()) for each in names}
    with sqlite.open(FILE) as engine:
        definition: dict[str, Any] = {
            "TableName": name,
            "KeySchema": schema(keys),
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in sorted(every)],
            "BillingMode": "PAY_PER_REQUEST",
        }
        if indexes:
            definition["GlobalSecondaryIndexes"] = [
                {"IndexName": index, "KeySchema": schema(names), "Projection": {"ProjectionType": "ALL"}}
                for index, names in indexes.items()
            ]
        engine.call("CreateTable", definition)
        for row in rows:
            engine.call("PutItem", {"TableName": name, "Item": dump_item(row)})


def photos() -> list[dict[str, Any]]:
    """Return users, photos and followers without a type attribute; ids are only in some keys."""
    users = [
        {"PK": f"USER#{name}", "SK": f"#METADATA#{name}", "username": name, "followers": number}
        for number, name in enumerate(("ana", "ben", "Eric Johnson", "dora"))
    ]
    taken = [
        {
            "PK": f"USER#{name}",
            "SK": f"PHOTO#{name}#2026-01-0{day}T10:00:00.000Z",
            "username": name,
            "timestamp": f"2026-01-0{day}T10:00:00.000Z",
            "size": day * 1000,
        }
        for name in ("ana", "ben")
        for day in (1, 2, 3)
    ]
    follows = [
        {"PK": f"USER#{one}", "SK": f"FOLLOWER#{other}"}
        for one, other in (("ana", "ben"), ("ben", "dora"), ("dora", "ana"))
    ]
    return [*users, *taken, *follows]


def test_entities_of_a_table_without_a_type_attribute_are_found_by_their_keys(run: Run) -> None:
    create(photos())
    found = run("adopt", FILE, "--json").json
    assert found["library"] is None
    assert found["tag"] is None
    assert {each["name"]: each["items"] for each in found["entities"]} == {
        "Photo": 6,
        "User": 4,
        "Follower": 3,
    }
    assert (found["unchanged"], found["problems"], found["unknown"]) == (13, [], [])


def test_the_written_file_is_python_that_reads_the_items(run: Run, tmp_path: Path) -> None:
    create(photos())
    assert run("adopt", FILE, "--out", "models.py").code == 0
    models = runpy.run_path(str(tmp_path / "models.py"))
    with models["table"].open(f"sqlite:///{FILE}") as db:
        eric = db.require(models["User"], username="Eric Johnson")
        assert eric.followers == 2
        assert db.put(eric) == eric
    with sqlite.open(FILE) as engine:
        assert engine.call("Scan", {"TableName": "Live", "Select": "COUNT"})["Count"] == 13
    linted = run("lint", "models.py:table")
    assert linted.code == 0, linted.out


@pytest.mark.parametrize(
    ("marker", "stored"),
    [
        ('Iso("s", offset="")', "2026-01-0{}T10:00:00"),
        ('Iso("ms", offset="")', "2026-01-0{}T10:00:00.123"),
        ('Iso("us", offset="")', "2026-01-0{}T10:00:00.123456"),
        ('Iso("s", offset="+00:00")', "2026-01-0{}T10:00:00+00:00"),
        ('Iso("ms", offset="+0000")', "2026-01-0{}T10:00:00.123+0000"),
        ('Epoch("s")', "176722560{}"),
        ('Epoch("ms")', "176722560{}123"),
    ],
)
def test_times_are_inferred_as_they_are_stored_and_in_keys(
    run: Run, tmp_path: Path, marker: str, stored: str
) -> None:
    texts = [stored.format(day) for day in (1, 2, 3)]
    create(
        {
            "PK": "USER#ana",
            "SK": f"VISIT#{text}",
            "user": "ana",
            "seenAt": int(text) if text.isdigit() else text,
        }
        for text in texts
    )
    found = run("adopt", FILE, "--out", "models.py")
    assert found.code == 0, found.out
    written = (tmp_path / "models.py").read_text()
    assert f"Annotated[datetime, {marker}, " in written
    assert '"VISIT#{seen_at}"' in written
    assert ("read as UTC" in written) == ('offset=""' in marker)
    assert "3 items of 3 and would write them back unchanged" in found.out


def test_a_file_is_not_replaced_without_force(run: Run, tmp_path: Path) -> None:
    create(photos())
    (tmp_path / "models.py").write_text("mine", encoding="utf-8")
    refused = run("adopt", FILE, "--out", "models.py")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (tmp_path / "models.py").read_text(encoding="utf-8") == "mine"
    assert run("adopt", FILE, "--out", "models.py", "--force").code == 0


def test_the_sample_is_bounded_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    create(photos())
    before = {path.name: path.read_bytes() for path in tmp_path.glob("live.db")}
    assert run("adopt", FILE, "--sample", "5", "--json").json["sampled"] == 5
    assert {path.name: path.read_bytes() for path in tmp_path.glob("live.db")} == before


def test_a_type_attribute_and_an_index_are_found(run: Run) -> None:
    create(
        (
            {
                "pk": f"c|{number % 3}",
                "sk": f"o|{number:04d}",
                "entityType": "order",
                "customer": str(number % 3),
                "number": number,
                "status": ("open", "sent")[number % 2],
                "placed": 1_767_225_600 + number,
                "ix1pk": f"s|{('open', 'sent')[number % 2]}",
                "ix1sk": f"{number:04d}",
                **({"note": "x"} if number % 4 else {}),
            }
            for number in range(8)
        ),
        keys=("pk", "sk"),
        indexes={"ix1": ("ix1pk", "ix1sk")},
    )
    found = run("adopt", FILE, "--json").json
    assert found["unchanged"] == 8
    (order,) = found["entities"]
    assert order["key"] == "pk = c|{customer}, sk = o|{number}"
    assert order["indexes"][0]["key"] == "ix1pk = s|{status}, ix1sk = {number}"
    assert 'key_format=KeyFormat(delimiter="|", escape=False)' in found["models"]
    assert "note: str | None = None  # in 6 of 8" in found["models"]


def test_an_index_that_some_items_are_left_out_of_is_not_declared(run: Run) -> None:
    create(
        (
            {
                "PK": f"ORDER#{number}",
                "SK": "ORDER",
                "id": str(number),
                **({"GSI1PK": "LARGE", "GSI1SK": str(number)} if number > 4 else {}),
            }
            for number in range(8)
        ),
        indexes={"GSI1": ("GSI1PK", "GSI1SK")},
    )
    found = run("adopt", FILE, "--json").json
    assert found["entities"][0]["indexes"][0]["problem"] == (
        "5 of 8 items have its fields but are not in the index"
    )
    assert found["unchanged"] == 8, "keys of an index that is not declared are kept"
    assert "# The index GSI1 is not declared" in found["models"]


def test_a_table_without_items_and_several_tables_are_errors(run: Run) -> None:
    create([])
    assert "has no items" in run("adopt", FILE).err
    create([], name="Other")
    assert "pass --table" in run("adopt", FILE).err
    assert run("adopt", "absent.db").code == 3


def test_models_of_an_example_are_inferred_from_its_table(run: Run, tmp_path: Path) -> None:
    """Items of other kinds, such as locks, are counted and left alone."""
    module = runpy.run_path(str(EXAMPLES / "surveys.py"))
    with module["surveyor"].open(f"sqlite:///{FILE}") as base:
        db = base.tenant("50% #1")
        for number in range(4):
            db.put(module["Survey"](survey_id=f"s{number}", title=f"House {number}"))
            for order in range(3):
                db.put(
                    module["Section"](survey_id=f"s{number}", section_id=f"x{order}", name="A", order=order)
                )
    found = run("adopt", FILE, "--json").json
    assert {each["name"]: each["items"] for each in found["entities"]} == {"Section": 12, "Survey": 4}
    assert found["internal_items"] >= 4, "locks of unique titles"
    assert found["unchanged"] == 16
    assert 'Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")' in found["models"]
    assert 'index="GSI1"' in found["models"]
    assert (tmp_path / FILE).exists()


@pytest.mark.parametrize("name", DESIGNS)
def test_a_published_design_is_adopted_without_a_change(run: Run, name: str) -> None:
    design = DESIGNS[name]
    rows = design.rows()
    create(rows, keys=design.keys, indexes=dict(design.indexes))
    found = run("adopt", FILE, "--json").json
    assert (found["unchanged"], found["problems"], found["unknown"]) == (len(rows), [], [])
    assert {each["name"]: each["items"] for each in found["entities"]} == design.entities
    assert all(each["declared"] and not each["problem"] for each in found["entities"])
    assert [each for each in found["findings"] if each["severity"] == "error"] == []


def test_an_index_may_contain_a_value_that_only_the_primary_key_has(run: Run) -> None:
    create(
        (
            {
                "PK": f"USER#{name}",
                "SK": "PROFILE",
                "city": "Oslo",
                "GSI1PK": "CITY#Oslo",
                "GSI1SK": name,
            }
            for name in ("ana", "ben", "eric j")
        ),
        indexes={"GSI1": ("GSI1PK", "GSI1SK")},
    )
    found = run("adopt", FILE, "--json").json
    assert found["unchanged"] == 3
    assert 'Key("CITY#{city}", "{user_id}", index="GSI1")' in found["models"]
    assert "user_id: Annotated[str, Attr(stored=False)]" in found["models"]


def test_a_value_that_both_parts_of_the_primary_key_have_is_one_field(run: Run) -> None:
    create([{"PK": f"USER#{name}", "SK": f"USER#{name}", "age": age} for age, name in enumerate("abcde")])
    text = run("adopt", f"sqlite:///{FILE}", "--out", "models.py").out
    assert "read 5 items" in text
    written = Path("models.py").read_text(encoding="utf-8")
    assert 'key = Key("USER#{user_id}", "USER#{user_id}")' in written
    assert written.count("Attr(stored=False)") == 1


def test_an_index_of_an_entity_that_cannot_be_declared_is_left_out(run: Run) -> None:
    rows = [{"PK": f"A#{number}", "SK": "S", "G1": f"K#{number}", "G2": "x"} for number in range(10)]
    # A key without a prefix is declared by its attributes, which every other key may equal.
    rows += [{"PK": f"weird{number}", "SK": f"{{x}}{number}"} for number in range(10)]
    create(rows, indexes={"GSI1": ("G1", "G2")})
    report = run("adopt", f"sqlite:///{FILE}", "--json").json
    assert [each["declared"] for each in report["entities"]].count(True) == 1
    assert any("can have the same key" in (each["problem"] or "") for each in report["entities"])


def test_type_values_that_no_class_can_be_named_after(run: Run) -> None:
    types = ("None", "True", "Entity", "Table", "order", "")
    create(
        {"PK": f"{prefix}#{item}", "SK": "S", "type": of}
        for prefix, of in zip("ABCDEF", types, strict=True)
        for item in range(5)
    )
    report = run("adopt", f"sqlite:///{FILE}", "--json").json
    named = {each["tag"]: each["name"] for each in report["entities"] if each["declared"]}
    assert named == {
        "None": "ItemNone",
        "True": "ItemTrue",
        "Entity": "ItemEntity",
        "Table": "ItemTable",
        "order": "Order",
    }
    (left_out,) = (each for each in report["entities"] if not each["declared"])
    assert "tag= must not be empty" in left_out["problem"]


def test_settings_of_the_table_are_declared(run: Run) -> None:
    with sqlite.open(FILE) as engine:
        attributes = {"id": "S", "number": "N", "rank": "N", "kind": "S"}
        engine.call(
            "CreateTable",
            {
                "TableName": "Live",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": each, "AttributeType": kind} for each, kind in attributes.items()
                ],
                "KeySchema": [
                    {"AttributeName": "id", "KeyType": "HASH"},
                    {"AttributeName": "number", "KeyType": "RANGE"},
                ],
                "LocalSecondaryIndexes": [
                    {
                        "IndexName": "ByRank",
                        "KeySchema": [
                            {"AttributeName": "id", "KeyType": "HASH"},
                            {"AttributeName": "rank", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    }
                ],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "ByKind",
                        "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["rank"]},
                    }
                ],
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            },
        )
        engine.call(
            "UpdateTimeToLive",
            {
                "TableName": "Live",
                "TimeToLiveSpecification": {"AttributeName": "gone", "Enabled": True},
            },
        )
        for number in range(3):
            row = {"id": f"i{number}", "number": number, "rank": -number, "gone": 1_900_000_000}
            row |= {"kind": "a"} if number else {}
            engine.call("PutItem", {"TableName": "Live", "Item": dump_item(row)})
    found = run("adopt", FILE, "--json").json
    assert found["unchanged"] == 3
    for text in (
        'sort="number:N"',
        'ttl="gone"',
        "stream=True",
        'Index("ByRank", sort="rank:N", projection="KEYS_ONLY", local=True)',
        'Index("ByKind", partition="kind", sort=None, projection=["rank"])',
        'key = Key(("id",), ("number",))',
        "gone: Annotated[datetime, TTL()]",
    ):
        assert text in found["models"]


def test_the_report_shows_counts_examples_and_what_it_left_out(run: Run) -> None:
    create([*photos(), {"PK": "odd", "SK": "a#b#c#d"}, {"PK": "odd", "SK": "a#b"}])
    done = run("adopt", FILE, "--out", "models.py")
    assert "Table Live: 15 items sampled of about 15." in done.out
    assert "No library recognised." in done.out
    assert "Photo: 6 items (40 %)" in done.out
    assert re.search(
        r"^  for example PK = USER#\w+, SK = PHOTO#\w+#2026-01-0\dT10:00:00.000Z$", done.out, re.MULTILINE
    )
    assert "high confidence" in done.out
    assert "low confidence" in done.out
    assert "Wrote models.py" in done.err


def test_fields_with_names_that_python_or_the_library_reserves_are_renamed(run: Run, tmp_path: Path) -> None:
    names = ("class", "plan", "key", "date", "copy", "model_dump", "version", "where", "by-x", "2nd")
    create({"PK": f"USER#{n}", "SK": "PROFILE", "id": str(n)} | dict.fromkeys(names, "x") for n in range(3))
    found = run("adopt", FILE, "--json", "--out", "models.py").json
    assert found["unchanged"] == 3
    assert all(each["declared"] for each in found["entities"])
    models = runpy.run_path(str(tmp_path / "models.py"))
    attributes = models["User"].plan().attributes.values()
    assert set(names) <= {attribute.wire for attribute in attributes}


def test_names_and_values_of_the_table_are_only_data_in_the_file(run: Run) -> None:
    text = '"""); raise SystemExit("ran") #'
    create(
        {"PK": f"A#{text}", "SK": f"{text}#{n}\n#x", text: "x", "a\nraise SystemExit": {"b": text}}
        for n in range(3)
    )
    done = run("adopt", FILE, "--json")
    assert done.json["sampled"] == 3


def test_the_inferred_keys_of_a_large_table_are_the_declared_ones(run: Run, tmp_path: Path) -> None:
    cms: Any = AuditEvent.plan().table
    with cms.open(f"sqlite:///{FILE}") as db:
        for plan in cms.plans.values():
            for tenant in ("acme", "zeta") if plan.tenant else ("",):
                seed(db.tenant(tenant) if tenant else db, plan.entity, count=6)
    found = run("adopt", FILE, "--json", "--out", "models.py").json
    assert (found["problems"], found["unchanged"]) == ([], sum(found["recognised"].values()))
    assert all(each["confidence"] == "high" for each in found["entities"])
    inferred = runpy.run_path(str(tmp_path / "models.py"))["table"].plans
    # A time that is marked Iso("us") has the same text with and without the format.
    assert {tag: plan.describe() for tag, plan in inferred.items()} == {
        tag: plan.describe().replace("{at:us}", "{at}") for tag, plan in cms.plans.items()
    }
    assert {tag: index_templates(plan) for tag, plan in inferred.items()} == {
        tag: index_templates(plan) for tag, plan in cms.plans.items()
    }


def index_templates(plan: Any) -> set[tuple[str, ...]]:
    return {
        (path.index.name, *(each.template.text for each in (path.partition, path.sort) if each is not None))
        for path in plan.indexes
    }
