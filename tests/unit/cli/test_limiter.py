"""`solotable limiter`: entities, defaults, tokens and namespaces, on a real file."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from solotable._protocol.requests import PutItem
from solotable.systems.limiter import Bucket, Limit, Limiter, limiter

from .conftest import Ran, Run


@pytest.fixture
def lim(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `solotable limiter` over a file that is not there yet."""
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///l.db")

    def run_(*arguments: str) -> Ran:
        return run("limiter", *arguments)

    return run_


def done(lim: Run, *arguments: str) -> str:
    ran = lim(*arguments)
    assert ran.code == 0, ran.err
    return ran.out


def test_a_read_makes_no_file_and_a_write_does(lim: Run, tmp_path: Path) -> None:
    ran = lim("entity", "list")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("Error: l.db does not exist. A command that writes creates it")
    assert not (tmp_path / "l.db").exists()
    done(lim, "system", "set-defaults", "rpm=100/minute")
    assert lim("system", "get-defaults", "--json").json == {
        "entity": None,
        "resource": None,
        "limits": [
            {"name": "rpm", "kind": "token_bucket", "capacity": 100, "refill": 100, "period_seconds": 60}
        ],
        "schedule": None,
        "on_unavailable": None,
        "mode": "enforce",
    }


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("rpm=100/60+150", (150, 100, 60)),
        ("rpm=100/min", (100, 100, 60)),
        ("rpm=5/second", (5, 5, 1)),
        ("rpm=5/hours", (5, 5, 3600)),
        ("rpm=1_000/day+2_000", (2000, 1000, 86_400)),
        ("rpm=7", (7, 7, 60)),
    ],
)
def test_limits_are_written_as_people_do(lim: Run, text: str, stored: tuple[int, int, int]) -> None:
    told = lim("entity", "set-limits", "u-1", text, "--json")
    (limit,) = told.json["limits"]
    assert (limit["capacity"], limit["refill"], limit["period_seconds"]) == stored


def test_a_schedule_is_set_shown_and_deleted(lim: Run) -> None:
    windows = ["--window", "mon-sun rpm=10/minute", "--timezone", "Europe/Berlin"]
    line = "rpm=100/minute; mon-sun (Europe/Berlin): rpm=10/minute"
    for level in (
        ["entity", "set-limits", "u-1"],
        ["resource", "set-defaults", "r"],
        ["system", "set-defaults"],
    ):
        assert line in done(lim, *level, "rpm=100/minute", *windows)
    told = lim("system", "get-defaults", "--json").json
    assert told["schedule"]["windows"][0]["when"] == "mon-sun"
    assert "rpm=10/minute" in done(lim, "entity", "show", "u-1", "--resource", "r")
    assert "9" in done(lim, "acquire", "u-1", "r", "rpm=1")
    assert line in done(lim, "system", "delete-defaults")
    done(lim, "audit", "deliver")
    assert line in done(lim, "audit", "list", "--entity", "u-1")
    for wrong in ("someday rpm=1", "mon", "mon rpm"):
        ran = lim("entity", "set-limits", "u-1", "rpm=1", "--window", wrong)
        assert (ran.code, "--window" in ran.err) == (2, True)
    assert lim("system", "set-defaults", "--window", "mon rpm=1").code == 2


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x=100/fixed:minute", "fixed_window"),
        ("x=100/sliding:90", "sliding_window"),
        ("x=100/session:hour", "session"),
        ("x=100/concurrency:minute", "concurrency"),
        ("x=100/calendar:month", "calendar"),
        ("x=100/calendar:day:06:30,Europe/Berlin", "calendar"),
        ("x=100/calendar:week:sunT12:00~soft", "calendar"),
    ],
)
def test_every_kind_of_limit_is_written_and_printed_the_same(lim: Run, text: str, kind: str) -> None:
    told = lim("resource", "set-defaults", "gpt-4", text, "--json")
    assert [limit["kind"] for limit in told.json["limits"]] == [kind]
    assert text in done(lim, "resource", "get-defaults", "gpt-4")
    assert "99" in done(lim, "acquire", "u-1", "gpt-4", "x=1")
    assert f"Counted by {text}." in lim("bucket", "show", "u-1", "gpt-4").err


@pytest.mark.parametrize(
    "texts",
    [("rpm",), ("rpm=",), ("rpm=a/60",), ("rpm=1/week",), ("rpm=1/60~hard",), ("r#m=1/60",), ("a=1", "a=2")],
)
def test_an_invalid_limit_is_rejected_in_one_sentence(
    lim: Run, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    ran = lim("entity", "set-limits", "u-1", *texts)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert ran.err.count("Error: ") == 1
    assert not (tmp_path / "l.db").exists()


def test_entities_are_made_listed_and_removed(lim: Run) -> None:
    done(lim, "entity", "create", "acme", "--name", "Acme Inc", "--metadata", '{"plan": "pro"}')
    told = done(lim, "entity", "create", "key-7", "--parent", "acme", "--cascade")
    assert told == "Created key-7, a child of acme, which is charged too.\n"
    assert [row["entity_id"] for row in lim("entity", "list", "--json").json] == ["acme", "key-7"]
    (child,) = lim("entity", "children", "acme", "--json").json
    assert (child["entity_id"], child["parent_id"], child["cascade"]) == ("key-7", "acme", True)
    shown = lim("entity", "show", "acme", "--json").json
    assert (shown["name"], shown["metadata"], shown["limits"]) == ("Acme Inc", {"plan": "pro"}, [])

    again = lim("entity", "create", "key-7")
    assert (again.code, again.err) == (4, "Error: Entity 'key-7' already exists.\n")
    assert lim("entity", "delete", "acme", "--yes").code == 4
    done(lim, "entity", "delete", "key-7", "--yes")
    assert lim("entity", "delete", "key-7", "--yes").code == 3
    assert lim("entity", "show", "key-7").code == 3
    assert lim("entity", "children", "nobody").code == 3


def test_no_name_makes_a_terminal_obey(lim: Run) -> None:
    done(lim, "entity", "create", "u", "--name", "a\x1b[2J\nb", "--metadata", '{"plan": "\x9b2J\u202e"}')
    for ran in (lim("entity", "show", "u"), lim("entity", "list")):
        assert r"a\x1b[2J b" in ran.out
        assert all(each.isprintable() for each in ran.out.splitlines())
    assert r'{"plan": "\x9b2J\u202e"}' in lim("entity", "show", "u").out


def test_a_list_says_when_there_is_more(lim: Run) -> None:
    for number in range(4):
        done(lim, "entity", "create", f"u-{number}")
    some = lim("entity", "list", "-n", "3", "--jsonl")
    assert len(some.out.splitlines()) == 3
    assert some.err == "There are more entities; --all prints them, -n 30 prints more.\n"
    everyone = lim("entity", "list", "--all", "--jsonl")
    assert (len(everyone.out.splitlines()), everyone.err) == (4, "")
    exact = lim("entity", "list", "-n", "4", "--csv")
    assert (len(exact.out.splitlines()), exact.err) == (5, "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "a#b"), 2),
        (("create", ""), 2),
        (("create", "ü"), 2),
        (("create", "u-1", "--parent", "nobody"), 3),
        (("create", "u-1", "--parent", "u-1"), 2),
        (("create", "u-1", "--cascade"), 2),
        (("create", "u-1", "--metadata", "[1]"), 2),
        (("create", "u-1", "--metadata", "{"), 2),
        (("create", "u-1", "--metadata", '{"a": "' + "x" * 3000 + '"}'), 2),
        (("set-limits", "u-1", "rpm=1", "--resource", "1x"), 2),
        (("create", "u-1", "-N", "_"), 2),
    ],
)
def test_bad_input_is_one_sentence_and_an_exit_code(lim: Run, arguments: tuple[str, ...], code: int) -> None:
    ran = lim("entity", *arguments)
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert ran.err.count("Error: ") == 1
    assert "Traceback" not in ran.err


def test_show_tells_which_limits_hold_and_whose_they_are(lim: Run) -> None:
    done(lim, "system", "set-defaults", "rpm=100/minute")
    done(lim, "resource", "set-defaults", "gpt-4", "rpm=50/minute")
    done(lim, "entity", "create", "u-1")
    done(lim, "entity", "set-limits", "u-1", "rpm=3/hour+5", "--resource", "gpt-5")
    lines = done(lim, "entity", "show", "u-1").splitlines()
    assert lines[-5:] == [
        "resource     limits          set for",
        "-----------  --------------  ----------------------------",
        "gpt-4        rpm=50/minute   the resource",
        "gpt-5        rpm=3/hour+5    this entity on this resource",
        "(any other)  rpm=100/minute  the system",
    ]
    done(lim, "entity", "set-limits", "u-1", "rpm=9/minute")
    sources = {
        row["resource"]: row["source"] for row in lim("entity", "show", "u-1", "--json").json["limits"]
    }
    assert sources == {"gpt-4": "entity", "gpt-5": "entity-resource", None: "entity"}
    (one,) = lim("entity", "show", "u-1", "--resource", "gpt-5", "--json").json["limits"]
    assert one["source"] == "entity-resource"


def test_limits_of_every_level_are_set_shown_and_removed(lim: Run) -> None:
    done(lim, "entity", "set-limits", "u-1", "rpm=1/minute")
    done(lim, "entity", "set-limits", "u-1", "rpm=2/minute", "--resource", "gpt-4")
    assert done(lim, "entity", "get-limits", "u-1").splitlines()[2:] == [
        "u-1     (all)     rpm=1/minute",
        "u-1     gpt-4     rpm=2/minute",
    ]
    assert "u-1" in done(lim, "entity", "show", "u-1"), "it was never made, and has limits"
    told = done(lim, "entity", "delete-limits", "u-1", "--resource", "gpt-4")
    assert told == "Deleted the limits of u-1 on gpt-4: rpm=2/minute\n"
    assert lim("entity", "delete-limits", "u-1", "--resource", "gpt-4").code == 3
    assert lim("entity", "get-limits", "u-1", "--resource", "gpt-4").code == 3

    done(lim, "resource", "set-defaults", "gpt-4", "rpm=5/minute")
    assert lim("resource", "get-defaults", "gpt-4", "--json").json["resource"] == "gpt-4"
    assert [each["resource"] for each in lim("resource", "get-defaults", "--json").json] == ["gpt-4"]
    done(lim, "resource", "delete-defaults", "gpt-4")
    assert lim("resource", "delete-defaults", "gpt-4").code == 3
    assert lim("resource", "get-defaults", "gpt-4").code == 3

    assert lim("system", "set-defaults").code == 2
    told = done(lim, "system", "set-defaults", "--on-unavailable", "allow", "--json")
    assert '"on_unavailable": "allow"' in told
    done(lim, "system", "delete-defaults")
    assert lim("system", "get-defaults").code == 3
    assert lim("system", "delete-defaults").code == 3


def test_the_effects_of_new_system_defaults_are_shown(lim: Run) -> None:
    assert lim("system", "set-defaults", "rpm=5", "--on-unavailable", "block").err == ""
    assert lim("system", "set-defaults", "rpm=6").err == "Deleted: --on-unavailable block\n"
    gone = lim("system", "set-defaults", "--on-unavailable", "allow")
    assert gone.err == "Deleted the limits of the system: rpm=6/minute\n"


def test_acquire_takes_tokens_and_exits_with_1_when_refused(lim: Run) -> None:
    done(lim, "entity", "set-limits", "u-1", "rpm=3/hour")
    assert done(lim, "available", "u-1", "gpt-4").splitlines()[2].split() == [
        "u-1",
        "rpm",
        "3",
        "3",
        "3/hour",
    ]
    assert done(lim, "acquire", "u-1", "gpt-4", "rpm=2").splitlines()[:1] == ["Taken: rpm=2"]
    assert [row["available"] for row in lim("available", "u-1", "gpt-4", "--json").json] == [1]

    refused = lim("acquire", "u-1", "gpt-4", "rpm=2")
    assert refused.code == 1
    assert refused.out.startswith("Refused: 'u-1' asks for 2 rpm of 'gpt-4' and has 1 left; try again in ")
    told = lim("acquire", "u-1", "gpt-4", "rpm=2", "--json")
    assert (told.code, told.json["acquired"]) == (1, False)
    assert 1100 < told.json["retry_after_seconds"] <= 1200
    assert lim("acquire", "u-1", "gpt-4", "rpm=0.5", "--json").json["acquired"] is True


@pytest.mark.parametrize(
    ("amounts", "code"),
    [
        (("rpm=4",), 2),
        (("nope=1",), 2),
        (("rpm=-1",), 2),
        (("rpm=x",), 2),
        (("rpm",), 2),
        (("rpm=0.0001",), 2),
        (("rpm=1e400",), 2),
        (("rpm=1e99999999",), 2),
        (("rpm=-1e99999999",), 2),
        (("rpm=nan",), 2),
        (("rpm=1", "rpm=1"), 2),
        ((), 2),
    ],
)
def test_impossible_amounts_are_not_refusals(lim: Run, amounts: tuple[str, ...], code: int) -> None:
    done(lim, "entity", "set-limits", "u-1", "rpm=3/hour")
    ran = lim("acquire", "u-1", "gpt-4", *amounts)
    assert ran.code == code
    assert ran.err.count("Error: ") == 1
    assert lim("available", "u-1", "gpt-4", "--json").json[0]["available"] == 3


def test_without_limits_the_output_says_how_to_set_them(lim: Run) -> None:
    done(lim, "entity", "create", "u-1")
    ran = lim("acquire", "u-1", "gpt-4", "rpm=1")
    assert (ran.code, ran.err) == (
        3,
        "Error: No limits are set for 'u-1' and 'gpt-4', nor for the system; "
        "set some: solotable limiter system set-defaults rpm=100/minute\n",
    )


def test_a_bucket_is_shown_shard_by_shard(lim: Run) -> None:
    done(lim, "entity", "set-limits", "u-1", "rpm=80/day")
    assert lim("bucket", "show", "u-1", "gpt-4").code == 3
    done(lim, "acquire", "u-1", "gpt-4", "rpm=30")
    (shard,) = lim("bucket", "show", "u-1", "gpt-4", "--json").json
    assert (shard["shard"], shard["level"], shard["writes"]) == (0, 0, 1)
    (limit,) = shard["limits"]
    assert (limit["limit"], limit["consumed"]) == ("rpm", 30)
    assert 50 <= limit["available"] < 51

    split("sqlite:///l.db", "u-1", "gpt-4")
    shards = lim("bucket", "show", "u-1", "gpt-4", "--json").json
    assert [(each["shard"], each["level"]) for each in shards] == [(0, 1), (1, 1)]
    assert sum(each["limits"][0]["available"] for each in shards) <= 51
    table = done(lim, "bucket", "show", "u-1", "gpt-4").splitlines()
    assert table[0].split()[:5] == ["shard", "level", "limit", "available", "consumed"]
    assert len(table) == 4


def split(url: str, entity: str, resource: str) -> None:
    """Halve a bucket's only shard, as load does."""
    from solotable._store.runner import run
    from solotable.systems.limiter.buckets import shards

    limiter = Limiter.open(url, limits=[Limit.per_day("rpm", 80)])
    writer = limiter._context.writer
    known = writer.cache.bucket(entity, resource)
    run(shards.read_shards(writer, known), limiter._engine)
    run(shards.split(writer, known, 0, known.shards[0]), limiter._engine)
    limiter.close()


def test_namespaces_are_apart_and_go_through_their_lives(lim: Run) -> None:
    made = lim("namespace", "register", "eu", "--json").json
    assert (made["name"], made["status"]) == ("eu", "active")
    assert lim("namespace", "register", "eu").code == 4
    done(lim, "system", "set-defaults", "rpm=5/s", "-N", "eu")
    assert lim("system", "get-defaults").code == 3, "another namespace"
    assert [row["name"] for row in lim("namespace", "list", "--json").json] == ["eu"]
    limiter = Limiter.open("sqlite:///l.db", made["id"])
    assert limiter.get_limits() is not None, "its id is what the library opens"
    limiter.close()

    early = lim("namespace", "purge", "eu", "--yes")
    assert early.code == 2
    assert "delete it first" in early.err
    done(lim, "namespace", "delete", "eu", "--yes")
    assert lim("system", "get-defaults", "-N", "eu").code == 3
    done(lim, "namespace", "recover", "eu")
    done(lim, "system", "get-defaults", "-N", "eu")
    done(lim, "namespace", "delete", "eu", "--yes")
    assert lim("namespace", "purge", "eu", "--yes", "--json").json["removed"] >= 1
    assert lim("namespace", "show", "eu").code == 3


def test_orphans_are_counted_and_removed_when_asked(lim: Run) -> None:
    done(lim, "namespace", "register", "eu")
    assert "belong to registered namespaces" in done(lim, "namespace", "orphans")
    done(lim, "entity", "create", "u-1", "-N", "stray")
    (stray,) = lim("namespace", "orphans", "--json").json
    assert stray["id"] == "stray"
    removed = lim("namespace", "orphans", "--purge", "stray", "--yes", "--json").json
    assert removed == {"id": "stray", "removed": stray["items"]}
    assert lim("namespace", "orphans", "--json").json == []


def test_what_cannot_be_asked_about_is_not_done(lim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done(lim, "entity", "create", "u-1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = lim("entity", "delete", "u-1")
    assert ran.code == 2
    assert ran.err.endswith("No confirmation received; pass --yes to skip the prompt.\n")
    assert lim("entity", "show", "u-1").code == 0


def test_nothing_listens_and_no_database_have_their_codes(lim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    ran = lim("available", "u-1", "gpt-4", "-d", "http://127.0.0.1:9/Limiter")
    assert ran.code == 5, ran.err
    assert "Traceback" not in ran.err
    monkeypatch.delenv("SOLOTABLE_URL")
    assert lim("available", "u-1", "gpt-4").code == 2


def test_help_imports_neither_the_limiter_nor_pydantic() -> None:
    code = (
        "import sys\nfrom solotable.cli import main\n"
        "for words in (['--help'], ['limiter', '--help'], ['limiter', 'entity', 'show', '--help']):\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        "heavy = ('pydantic', 'rich', 'yaml', 'solotable.systems', 'solotable._flows', 'solotable.engines')\n"
        "assert not [name for name in sys.modules if name.startswith(heavy)], sys.modules.keys()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert ended.returncode == 0, ended.stderr
    assert "limiter" in ended.stdout


def test_an_item_that_is_not_a_bucket_is_one_sentence_and_an_exit_code(lim: Run, tmp_path: Path) -> None:
    done(lim, "system", "set-defaults", "rpm=100/minute")
    done(lim, "acquire", "u", "r", "rpm=1")
    db = limiter.open(f"sqlite:///{tmp_path / 'l.db'}")
    good = db.tenant("default").get(Bucket, entity="u", resource="r", shard=0)
    assert good is not None
    stored = Bucket.plan().encode(good.__dict__, {})
    for broken in (
        {"PK": stored["PK"], "SK": stored["SK"], "data": {"M": {"level": {"N": "0"}}}},
        {**stored, **good.unknown_attributes, "used_rpm": {"S": "x"}},
    ):
        db.engine.handle(PutItem(table=limiter.name, item=broken))
        for arguments in (
            ("acquire", "u", "r", "rpm=1"),
            ("available", "u", "r"),
            ("bucket", "show", "u", "r"),
        ):
            ran = lim(*arguments)
            assert ran.code not in (0, 1), ran.out
            assert ran.err.startswith("Error: "), ran.err
            assert "BUCKET#u#r#00" in ran.err
            assert "Traceback" not in ran.err
    db.close()
