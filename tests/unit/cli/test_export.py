"""`solotable export` and `solotable import` on real files."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


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
