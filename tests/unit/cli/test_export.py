"""`solotable export` and `solotable import` on real files."""

from __future__ import annotations

import json
from pathlib import Path

from solotable import connect
from solotable.cli.options.models import load_tables
from solotable.exports.daily import LEASE

from .conftest import MODELS, Run


def test_a_table_is_exported_verified_and_imported_into_another_file(filled: Run) -> None:
    done = filled("export", "SurveyorData", "out")
    assert done.code == 0
    assert done.out.startswith("SurveyorData: 4 items, ")
    verified = filled("import", "out", "--verify")
    assert verified.code == 0
    assert "is complete: 4 items in 1 file." in verified.out
    imported = filled("import", "out", "-d", "copy.db", "--create")
    assert imported.code == 0, imported.err
    assert imported.out == "SurveyorData: 4 items read, 4 written.\n"
    listed = filled("list", "Section", "-d", "copy.db", "--json")
    assert {each["name"] for each in listed.json} == {"Roof", "Loft", "Hall"}
    again = filled("import", "out", "-d", "copy.db", "--json")
    assert (again.json["written"], again.json["unchanged"]) == (0, 4)


def test_one_of_several_exports_is_named_by_its_folder(filled: Run) -> None:
    filled("export", "SurveyorData", "out")
    filled("export", "SurveyorData", "out")
    several = filled("import", "out", "--verify")
    assert (several.code, "has 2 exports; name one" in several.err) == (1, True)
    folder = next(each for each in Path("out/AWSDynamoDB").iterdir())
    assert f"Export {folder.name} of table" in filled("import", str(folder), "--verify").out


def test_an_import_into_another_table_takes_its_name(filled: Run) -> None:
    filled("export", "SurveyorData", "out")
    assert filled("import", "out", "Copy", "--create").code == 0
    assert filled("export", "Copy", "again", "--json").json["item_count"] == 4


def test_a_conflict_is_reported_and_exits_with_1(filled: Run) -> None:
    filled("export", "SurveyorData", "out")
    assert filled("update", "Section", "survey_id=s1", "section_id=roof", "--set", "name=New").code == 0
    done = filled("import", "out")
    assert done.code == 1
    assert "1 not imported" in done.out
    assert "The table has another item under this key." in done.err
    assert filled("import", "out", "--on-conflict", "replace").code == 0


def test_files_for_analysis_have_one_entity_each(filled: Run) -> None:
    done = filled("export", "SurveyorData", "flat", "--format", "jsonl", "--json")
    assert done.json == {"Section.jsonl": 3, "Survey.jsonl": 1}
    lines = Path("flat/Section.jsonl").read_text().splitlines()
    assert {json.loads(line)["name"] for line in lines} == {"Roof", "Loft", "Hall"}


def test_a_damaged_export_is_named_and_nothing_is_created(filled: Run) -> None:
    filled("export", "SurveyorData", "out")
    (data,) = Path("out").rglob("*.json.gz")
    data.write_bytes(data.read_bytes()[:-1])
    done = filled("import", "out", "-d", "copy.db", "--create")
    assert done.code != 0
    assert data.name in done.err
    assert "does not match its MD5" in done.err


def test_missing_tables_files_and_exports_are_named(filled: Run) -> None:
    assert "Table Nope does not exist" in filled("export", "Nope", "out").err
    assert filled("export", "SurveyorData", "out", "-d", "none.db").code == 3
    assert not Path("none.db").exists()
    assert "has no finished export" in filled("import", "empty").err
    assert "s3:// needs dynamodb-json" in filled("export", "Nope", "s3://b/x", "--format", "csv").err


def test_s2_17_the_daily_export_is_made_once_and_says_where(filled: Run) -> None:
    first = filled("export-daily", "daily")
    assert first.code == 0, first.err
    (folder,) = Path("daily").glob("*/SurveyorData/AWSDynamoDB/*")
    assert f"SurveyorData: 5 items, in {folder.as_posix()}\n" in first.out
    again = filled("export-daily", "daily", "--keep", "7")
    assert f"SurveyorData: exported before, in {folder.parent.parent.as_posix()}\n" in again.out
    shown = filled("export-daily", "daily", "--json").json
    assert (shown["complete"], shown["exported"], shown["deleted"]) == (True, {}, [])
    assert filled("import", str(folder.parent.parent), "--verify").code == 0
    assert filled("export-daily", "daily", "--keep", "0").code == 2


def test_s2_17_a_daily_export_that_another_worker_makes_is_reported(filled: Run) -> None:
    tables = load_tables(MODELS)
    with connect("sqlite:///survey.db", *tables) as db, db.lease(LEASE, owner="other", table=tables[0]):
        held = filled("export-daily", "daily")
    assert (held.code, held.out) == (0, "")
    assert "Worker other exports at the moment; run the command again later." in held.err
    assert not Path("daily").exists()


def test_a_table_that_does_not_exist_is_named_with_a_hint_that_helps(filled: Run) -> None:
    missing = filled("export", "Absent", "out")
    assert (missing.code, missing.err) == (3, "Error: Table Absent does not exist at sqlite:///survey.db.\n")
    filled("export", "SurveyorData", "out")
    assert "; --create creates it." in filled("import", "out", "Absent").err
