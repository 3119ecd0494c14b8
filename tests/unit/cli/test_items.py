"""`get`, `query`, `count`, `put`, `update` and `delete` on a real file, and once over HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from concurrent.futures import Future, wait
from pathlib import Path

import pytest

from solotable import errors as e
from solotable.cli import main
from solotable.cli.data import writes
from solotable.cli.exit_codes import exit_code
from solotable.cli.main import every_command
from tests.serving import environment, served

from .conftest import MODELS, Run

RELAXED = "sqlite:///survey.db?durability=relaxed"
SURVEYS = {"SOLOTABLE_MODELS": MODELS, "SOLOTABLE_URL": "sqlite:///survey.db", "SOLOTABLE_TENANT": "acme"}
SECRET = "a secret of sixteen bytes or more"


def test_get_returns_what_put_stored(run: Run) -> None:
    put = run("put", "Survey", "survey_id=s1", "title=Main", "due=2035-01-02", 'tags=["a"]', "--json")
    assert (put.code, put.json["version"], put.json["due"]) == (0, 1, "2035-01-02")
    got = run("get", "Survey", "survey_id=s1", "--json")
    assert got.code == 0
    assert got.json == put.json


def test_output_formats(filled: Run) -> None:
    query = ("query", "Section.of_survey", "survey_id=s1")
    assert [row["name"] for row in filled(*query, "--json").json["items"]] == ["Roof", "Loft", "Hall"]
    lines = filled(*query, "--jsonl").out.splitlines()
    assert [json.loads(line)["order"] for line in lines] == [1, 2, 3]
    rows = filled(*query, "--csv").out.splitlines()
    assert rows[0].startswith("tenant_id,survey_id,section_id,name,order")
    assert rows[1].startswith("acme,s1,roof,Roof,1")
    text = filled(*query).out.splitlines()
    assert text[0].split()[:3] == ["tenant_id", "survey_id", "section_id"]
    assert text[2].split()[:4] == ["acme", "s1", "roof", "Roof"]


def test_a_terminal_gets_a_drawn_table(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    out = filled("get", "Survey", "survey_id=s1").out
    assert "│" in out
    assert "12 Main Street" in out


def test_only_a_terminal_needs_rich() -> None:
    program = (
        "import sys, solotable.cli.data.reads, solotable.cli.output as output\n"
        "output.print_table([{'a': 1}])\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "False"


def test_pages_and_cursors(filled: Run) -> None:
    query = ("query", "Section.of_survey", "survey_id=s1", "--json", "--cursor-secret", SECRET)
    first = filled(*query, "--limit", "2").json
    assert [row["name"] for row in first["items"]] == ["Roof", "Loft"]
    rest = filled(*query, "--cursor", first["cursor"]).json
    assert ([row["name"] for row in rest["items"]], rest["cursor"], rest["more"]) == (["Hall"], None, False)
    forged = filled(*query, "--cursor", first["cursor"][:-2] + "xx")
    assert forged.code == 2
    other = filled(*query, "--cursor", first["cursor"], "--reverse")
    assert other.code == 2


def test_a_second_page_needs_no_secret_on_this_machine(filled: Run) -> None:
    query = ("query", "Section.of_survey", "survey_id=s1", "--json")
    first = filled(*query, "--limit", "2")
    assert (first.json["more"], first.err) == (True, "")
    second = filled(*query, "--cursor", first.json["cursor"])
    assert [row["name"] for row in second.json["items"]] == ["Hall"]


def test_without_a_place_for_a_secret_there_is_a_note_instead_of_a_cursor(
    filled: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", MODELS)  # a file, so that no folder can be created in it
    query = ("query", "Section.of_survey", "survey_id=s1", "--limit", "2")
    ran = filled(*query, "--json")
    assert (ran.json["cursor"], ran.json["more"]) == (None, True)
    assert "SOLOTABLE_CURSOR_SECRETS" in ran.err
    assert filled(*query, "--cursor", "abc").code == 2


def test_the_environment_may_set_the_cursor_secret(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOTABLE_CURSOR_SECRETS", SECRET)
    query = ("query", "Section.of_survey", "survey_id=s1")
    notes = filled(*query, "--limit", "2", "--jsonl").err
    cursor = notes.split("--cursor ")[1].strip()
    assert [
        json.loads(line)["name"] for line in filled(*query, "--jsonl", "--cursor", cursor).out.splitlines()
    ] == ["Hall"]


def test_all_reverse_count_and_views(filled: Run) -> None:
    query = ("query", "Section.of_survey", "survey_id=s1", "--jsonl", "--all", "--reverse")
    assert [json.loads(line)["name"] for line in filled(*query).out.splitlines()] == ["Hall", "Loft", "Roof"]
    assert filled("count", "Section.of_survey", "survey_id=s1").out == "3\n"
    assert filled("count", "of_survey", "survey_id=s1", "--json").json == {"count": 3}
    assert filled("query", "Section.after_order", "survey_id=s1", "order=1", "--json").json["items"] == [
        {"name": "Loft"},
        {"name": "Hall"},
    ]
    assert [row["name"] for row in filled("query", "Section.named", "--json").json["items"]] == [
        "Hall",
        "Loft",
        "Roof",
    ]


def test_show_request_prints_to_standard_error(filled: Run) -> None:
    ran = filled("query", "Section.of_survey", "survey_id=s1", "--show-request", "--json")
    operation, _, text = ran.err.partition(" ")
    request = json.loads(text)
    assert operation == "Query"
    assert request["IndexName"] == "GSI2"
    assert {"S": "TENANT#acme#SURVEY#s1"} in request["ExpressionAttributeValues"].values()
    assert len(ran.json["items"]) == 3


def test_put_reads_json_files(run: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": f"s{n}", "title": "T", "due": "2035-01-01", "tags": ["x"]} for n in range(3)]
    (tmp_path / "one.json").write_text(json.dumps(rows[0]))
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows[1:]))
    assert run("put", "Survey", "--json-input", "one.json", "--json").json["due"] == "2035-01-01"
    many = run("put", "Survey", "--json-input", "rows.jsonl", "--json").json
    assert [row["survey_id"] for row in many] == ["s1", "s2"]
    assert run("get", "Survey", "survey_id=s2", "--json").json["tags"] == ["x"]
    assert run("put", "Survey", "--json-input", "one.json").code == 4
    (tmp_path / "bad.json").write_text("{not json")
    assert run("put", "Survey", "--json-input", "bad.json").code == 2


def test_create_does_not_replace(filled: Run) -> None:
    again = ("put", "Section", "survey_id=s1", "section_id=roof", "name=Roof 2", "order=1")
    assert filled(*again, "--create").code == 4
    assert filled(*again, "--json").json["name"] == "Roof 2"


def test_updates_and_versions(filled: Run) -> None:
    update = ("update", "Survey", "survey_id=s1", "--json")
    changed = filled(*update, "--set", "title=New", "--set", 'tags:=["a","b"]', "--if-version", "1")
    assert (changed.json["title"], sorted(changed.json["tags"]), changed.json["version"]) == (
        "New",
        ["a", "b"],
        2,
    )
    stale = filled(*update, "--set", "title=Old", "--if-version", "1")
    assert stale.code == 4
    assert "expected version 1, found version 2" in stale.err
    assert filled(*update, "--set", "title=Old").code == 2
    assert filled(*update, "--remove", "due", "--any-version").json["version"] == 3
    assert filled(*update, "--any-version").code == 2
    moved = filled("update", "Section", "survey_id=s1", "section_id=roof", "--add", "order=10", "--json")
    assert moved.json["order"] == 11
    names = filled("query", "Section.of_survey", "survey_id=s1", "--json").json["items"]
    assert [row["name"] for row in names] == ["Loft", "Hall", "Roof"]
    assert filled("update", "Section", "survey_id=s1", "section_id=no", "--set", "name=x").code == 3


def test_deletes(filled: Run) -> None:
    assert filled("delete", "Survey", "survey_id=s1").code == 2
    assert filled("delete", "Survey", "survey_id=s1", "--if-version", "7").code == 4
    assert (
        filled("delete", "Survey", "survey_id=s1", "--if-version", "1", "--json").json["title"]
        == "12 Main Street"
    )
    missing = ("Survey", "survey_id=s1")
    update = ("--set", "title=x", "--any-version")
    for ran in (
        filled("delete", *missing, "--any-version"),
        filled("get", *missing),
        filled("update", *missing, *update),
    ):
        assert (ran.code, ran.err) == (3, "Error: Survey not found: tenant_id='acme', survey_id='s1'.\n")


def test_unique_fields_are_enforced(run: Run) -> None:
    assert run("put", "Task", "task_id=a", "slug=x").code == 0
    taken = run("put", "Task", "task_id=b", "slug=x")
    assert taken.code == 4
    assert "Traceback" not in taken.err
    assert run("put", "Step", "task_id=a", "step_id=1").code == 0
    assert run("get", "Task", "task_id=a", "--json").json["step_count"] == 1
    assert run("put", "Step", "task_id=none", "step_id=1").code in (3, 4)


def test_tenants_are_isolated(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    get = ("get", "Survey", "survey_id=s1")
    assert filled(*get, "--tenant", "other").code == 3
    assert filled("put", "Setting", "name=a", "value=b").code == 2
    monkeypatch.delenv("SOLOTABLE_TENANT")
    assert filled(*get).code == 2
    assert filled("put", "Setting", "name=a", "value=b").code == 0
    assert filled(*get, "tenant_id=acme", "--admin").code == 0
    assert filled("count", "Section.of_survey", "survey_id=s1", "tenant_id=acme", "--admin").out == "3\n"
    assert filled(*get, "--admin", "--tenant", "acme").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "Surveys", "survey_id=s1"), "did you mean 'Survey'?"),
        (("get", "Survey", "survey=s1"), "did you mean 'survey_id'?"),
        (("get", "Survey"), "survey_id is missing"),
        (("get", "Survey", "survey_id=s1", "title=x"), "title is not part of it"),
        (("get", "Survey", "s1"), "write name=value"),
        (("get", "Survey", "survey_id=s1", "survey_id=s2"), "Duplicate argument 'survey_id'."),
        (
            ("put", "Section", "survey_id=s1", "section_id=a", "name=A", "order=x"),
            "Section.order = 'x': input should be",
        ),
        (("put", "Survey", "survey_id=s1"), "Survey.title is missing."),
        (("put", "Survey", "survey_id=s1", "title="), "Survey.title = '': string should have at least 1"),
        (("query", "Section.of_surveys", "survey_id=s1"), "did you mean 'Section.of_survey'?"),
        (("query", "Section.of_survey"), "needs survey_id"),
        (
            ("query", "Section.of_survey", "survey_id=s1", "--consistent"),
            "no consistent reads on a global index",
        ),
        (
            ("query", "Section.between_orders", "survey_id=s1", "low=1", "high=many"),
            "Section.between_orders.high",
        ),
        (("update", "Survey", "survey_id=s1", "--set", "titel=x", "--any-version"), "did you mean 'title'?"),
        (("get", "Survey", "survey_id=s1", "-d", "mysql://x"), "is not a database URL"),
        (("get", "Survey", "survey_id=s1", "-d", "."), "'.' is a folder; pass the path of a file."),
        (("put", "Survey", "survey_id=s1", "title=x", "-d", "sqlite:///."), "'.' is a folder"),
        (
            ("query", "Section.of_survey", "survey_id=s1", "--cursor-secret", "short"),
            "--cursor-secret has 5 bytes",
        ),
    ],
)
def test_usage_errors_are_one_sentence(filled: Run, arguments: tuple[str, ...], message: str) -> None:
    ran = filled(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_reading_does_not_create_a_file(run: Run, tmp_path: Path) -> None:
    ran = run("get", "Survey", "survey_id=s1")
    assert ran.code == 3
    assert (
        "No such file: survey.db. Create it with: solotable schema apply -d sqlite:///survey.db\n" in ran.err
    )
    assert list(tmp_path.iterdir()) == []


def test_the_same_commands_over_http(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with served("wire.db", cwd=tmp_path) as running:
        monkeypatch.setenv("SOLOTABLE_URL", f"{running.url}/Elsewhere")
        monkeypatch.setenv("SOLOTABLE_MODELS", f"{MODELS}:surveyor")
        get = ("get", "Survey", "survey_id=s1", "--json")
        missing = run(*get)
        assert missing.code == 3
        assert "solotable schema apply" in missing.err
        assert run("schema", "diff").code == 1
        applied = run("schema", "apply")
        assert applied.code == 0, applied.err
        assert run("schema", "diff").out == "Elsewhere: as declared\n"
        assert run("put", "Survey", "survey_id=s1", "title=Wire").code == 0
        assert run(*get).json["title"] == "Wire"
        measured = run("explain", "get", "Survey", "survey_id=s1", "--json").json["measured"]
        assert (measured["units"], measured["items_read"]) == (0.5, 1)


def test_an_unreachable_endpoint_exits_with_5(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    ran = run("get", "Survey", "survey_id=s1", "-d", f"http://127.0.0.1:{port}", "-m", f"{MODELS}")
    assert ran.code == 5
    assert str(port) in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (e.DataError("x"), 1),
        (e.ServiceError("ValidationException", "x"), 1),
        (e.CursorRejected("x"), 2),
        (e.NotFound("x"), 3),
        (e.TableNotFound(), 3),
        (e.ConditionFailed(), 4),
        (e.AlreadyExists("x"), 4),
        (e.TransactionCancelled([{"Code": "ConditionalCheckFailed"}]), 4),
        (e.Throttled("ThrottlingException", "x"), 5),
        (e.TransportError("x"), 5),
        (e.BatchIncomplete("x", leftovers=[]), 5),
        (e.ServiceError("InternalServerError", "x", status=500), 5),
    ],
)
def test_exit_codes(error: e.SolotableError, code: int) -> None:
    assert exit_code(error) == code


def test_a_closed_pipe_prints_no_error(filled: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": "s2", "section_id": f"{n:04}", "name": "n" * 200, "order": n} for n in range(1000)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert filled("put", "Section", "--json-input", "rows.json", "--jsonl", "-d", RELAXED).code == 0
    command = [
        sys.executable,
        "-m",
        "solotable",
        "query",
        "Section.of_survey",
        "survey_id=s2",
        "--all",
        "--jsonl",
    ]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**SURVEYS), cwd=tmp_path
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())["order"] == 0
        running.stdout.close()
        assert running.stderr.read() == b""


def test_help_and_version_import_little(run: Run) -> None:
    program = (
        "import sys\n"
        "from solotable.cli import main\n"
        "try:\n"
        "    main(['--version'])\n"
        "except SystemExit:\n"
        "    print([name for name in ('pydantic', 'rich', 'botocore', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
    for path, _ in every_command():
        ran = run(*path.split(), "--help")
        assert (ran.code, ran.err) == (0, "")
        assert "Example: solotable" in ran.out


def test_debug_shows_the_traceback(run: Run) -> None:
    quiet = run("get", "Survey", "survey_id=s1", "-d", "sqlite:///")
    assert quiet.code == 3
    with pytest.raises(e.DeclarationError):
        main(["--debug", "put", "Survey", "survey_id=s1", "title=x", "-d", "sqlite:///x.db?durability=never"])
    ran = run("put", "Survey", "survey_id=s1", "title=x", "-d", "sqlite:///x.db?durability=never")
    assert (ran.code, "durability is full or relaxed" in ran.err) == (1, True)


def test_control_characters_of_stored_text_are_escaped(run: Run) -> None:
    put = run("put", "Survey", "survey_id=s1", "title=\x1b]0;mine\x07red \x1b[31m", 'tags=["\\u001b[1m"]')
    assert put.code == 0
    assert "\x1b" not in put.out
    assert "\\x1b]0;mine\\x07red \\x1b[31m" in put.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "Survey", "survey_id=s1"),
        ("put", "Survey", "survey_id=s2", "title=T"),
        ("put", "Survey", "--json-input", "one.json"),
        ("query", "Section.of_survey", "survey_id=s1"),
        ("count", "Section.of_survey", "survey_id=s1"),
        ("update", "Section", "survey_id=s1", "section_id=roof", "--set", "name=x"),
        ("delete", "Section", "survey_id=s1", "section_id=roof"),
        ("explain", "get", "Survey", "survey_id=s1"),
        ("explain", "put", "Survey"),
        ("explain", "Section.of_survey", "survey_id=s1"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_admin_without_a_tenant_is_a_usage_error(
    filled: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOLOTABLE_TENANT")
    (tmp_path / "one.json").write_text(json.dumps({"survey_id": "s2", "title": "T"}))
    ran = filled(*arguments, "--admin")
    assert (ran.code, ran.out) == (2, "")
    assert "as an argument; add tenant_id=...\n" in ran.err


def test_the_database_may_be_a_path(run: Run, tmp_path: Path) -> None:
    put = ("put", "Survey", "survey_id=s1", "title=Main")
    absolute = str(tmp_path / "folder of surveys" / "main 100%.db")
    Path(absolute).parent.mkdir()
    for path in ("other.db", "./sub.db", absolute):
        assert run(*put, "-d", path).code == 0
        assert Path(path).is_file()
        assert run("get", "Survey", "survey_id=s1", "-d", path, "--json").json["title"] == "Main"
    assert run("get", "Survey", "survey_id=s1", "-d", "sqlite:///other.db").code == 0
    missing = run("get", "Survey", "survey_id=s1", "-d", "missing file.db")
    assert missing.code == 3
    assert "Create it with: solotable schema apply -d 'missing file.db'" in missing.err
    assert not Path("missing file.db").exists()


def test_sets_are_sorted_in_every_format(run: Run) -> None:
    tags = [f"tag{number:02}" for number in range(20)]
    given = f"tags={json.dumps(tags[::-1])}"
    assert run("put", "Survey", "survey_id=s1", "title=T", given, "--json").json["tags"] == tags
    get = ("get", "Survey", "survey_id=s1")
    assert ", ".join(tags) in run(*get).out
    assert run(*get, "--json").json["tags"] == tags
    assert json.loads(run(*get, "--jsonl").out)["tags"] == tags
    assert json.dumps(tags).replace('"', '""') in run(*get, "--csv").out


def test_a_file_of_objects_prints_their_number(run: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": f"s{number}", "title": "T"} for number in range(600)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    put = run("put", "Survey", "--json-input", "rows.json", "-d", RELAXED)
    assert (put.code, put.out, put.err) == (0, "Stored 600 Survey.\n", "")
    found = run("list", "Survey", "--all", "--json", "-d", RELAXED).json
    assert sorted(row["survey_id"] for row in found) == sorted(row["survey_id"] for row in rows)


def test_objects_with_one_key_are_stored_in_order(run: Run, tmp_path: Path) -> None:
    rows = [
        {"survey_id": "s1", "section_id": f"x{number % 3}", "name": f"N{number}", "order": number}
        for number in range(300)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    stored = run("put", "Section", "--json-input", "rows.json", "--jsonl", "-d", RELAXED)
    assert [json.loads(line)["order"] for line in stored.out.splitlines()] == list(range(300))
    found = run("list", "Section", "--json", "-d", RELAXED).json
    assert {row["section_id"]: row["order"] for row in found} == {"x0": 297, "x1": 298, "x2": 299}


def test_an_object_that_fails_is_named_with_the_number_of_stored_ones(run: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": f"s{number}", "title": "T"} for number in range(5)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert run("put", "Survey", "survey_id=s2", "title=First").code == 0
    ran = run("put", "Survey", "--json-input", "rows.json", "--create")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("4 of 5 objects were stored; object 3 failed:\nError: ")
    assert len(run("list", "Survey", "--json").json) == 5
    assert run("get", "Survey", "survey_id=s2", "--json").json["title"] == "First"


def test_an_invalid_object_is_named_and_nothing_is_stored(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps([{"survey_id": "s1", "title": "T"}, {"survey_id": "s2"}]))
    ran = run("put", "Survey", "--json-input", "rows.json")
    assert (ran.code, ran.out) == (2, "")
    assert "Object 2: Survey.title is missing. Nothing was stored.\n" in ran.err
    assert not (tmp_path / "survey.db").exists()


def test_an_empty_result_says_so_on_standard_error(filled: Run) -> None:
    query = ("query", "Section.of_survey", "survey_id=none")
    ran = filled(*query)
    assert (ran.code, ran.err) == (0, "0 rows\n")
    assert "0 rows" not in ran.out
    assert (filled(*query, "--jsonl").err, filled(*query, "--csv").err) == ("", "")
    assert filled(*query, "--json").json == {"items": [], "cursor": None, "more": False}


ROW = '{"survey_id": "s1", "title": "T"}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{ROW}\n" * 99 + '{"survey_id": }\n' + ROW, "line 100, column 15: Expecting value"),
        (f"{ROW}\n\n{ROW[:-1]}", "line 3, column 33: Expecting ',' delimiter"),
        (f"[{ROW},\n{ROW},\n]", "line 3, column 1: "),
        (f"[\n{ROW}\n{ROW}\n]", "line 3, column 1: Expecting ',' delimiter"),
        ("title", "line 1, column 1: Expecting value"),
    ],
    ids=["lines", "a cut last line", "a list", "a list without a comma", "no JSON"],
)
def test_an_error_in_json_names_its_line(run: Run, tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "rows.json").write_text(text)
    ran = run("put", "Survey", "--json-input", "rows.json")
    assert (ran.code, ran.out) == (2, "")
    assert f"--json-input is not JSON: {place}" in ran.err
    assert ran.err.endswith("Nothing was stored.\n")
    assert not (tmp_path / "survey.db").exists()


def test_only_a_newline_ends_a_line_of_json(run: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": f"s{number}", "title": "A\u2028B\x85"} for number in range(2)]
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8", newline="")
    assert run("put", "Survey", "--json-input", "rows.jsonl").out == "Stored 2 Survey.\n"


def test_an_empty_list_stores_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("[]")
    ran = run("put", "Survey", "--json-input", "rows.json")
    assert (ran.code, ran.out, ran.err) == (0, "Stored 0 Survey.\n", "")
    assert run("put", "Survey", "--json-input", "rows.json", "--json").json == []
    (tmp_path / "rows.json").write_text("\n")
    assert run("put", "Survey", "--json-input", "rows.json").code == 2


def test_an_interrupted_file_prints_the_number_of_stored_objects(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.json").write_text(
        json.dumps([{"survey_id": f"s{number}", "title": "T"} for number in range(600)])
    )
    waits = 0

    def wait_once(futures: list[Future[object]]) -> object:
        nonlocal waits
        waits += 1
        if waits == 2:
            raise KeyboardInterrupt
        return wait(futures)

    monkeypatch.setattr(writes, "wait", wait_once)
    ran = run("put", "Survey", "--json-input", "rows.json", "-d", RELAXED)
    assert (ran.code, ran.out) == (130, "")
    stored = len(run("list", "Survey", "--all", "--json", "-d", RELAXED).json)
    assert 256 <= stored <= 512
    assert f"Interrupted: {stored} of 600 objects were stored.\n" in ran.err


def test_the_usage_of_put_marks_the_fields_as_optional(run: Run) -> None:
    assert "ENTITY [FIELD=VALUE]...\n" in run("put", "--help").out
