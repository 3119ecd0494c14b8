"""`solotable limiter usage` and `audit`: what was consumed and what was changed, on a real file."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable._connect import over
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, limiter

from .conftest import Ran, Run

#: Rows expire 90 days after their window, so they are of the day before yesterday and not of a fixed one.
DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)


@pytest.fixture
def lim(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `solotable limiter` over a file."""
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///l.db")

    def run_(*arguments: str) -> Ran:
        return run("limiter", *arguments)

    return run_


@pytest.fixture
def used(lim: Run) -> Run:
    """The same, after an entity has used some tokens at 10, at 11 and at 13 o'clock."""
    now = DAY.timestamp()
    engine = sqlite.open("l.db")
    caller = Limiter(
        over(engine, [limiter], clock=lambda: now),
        limits=[Limit.per_hour("rpm", 1000), Limit.per_hour("tpm", 100_000)],
    )
    for hour, rpm, tpm in ((10, 10, 1500), (11, 20, 3000), (13, 5, 0.5)):
        now = (DAY + timedelta(hours=hour, minutes=30)).timestamp()
        with caller.acquire("u-1", "gpt-4", {"rpm": rpm, "tpm": tpm}):
            pass
    engine.close()
    return lim


def test_usage_is_counted_once(used: Run) -> None:
    empty = used("usage", "summary", "--entity", "u-1")
    assert (empty.code, empty.out) == (
        0,
        "No usage in this time. Count what was just consumed with: solotable limiter usage aggregate\n",
    )
    assert used("usage", "list", "--entity", "u-1").out == empty.out
    assert used("usage", "aggregate").out == "Counted 3 changes of buckets.\n"
    assert used("usage", "aggregate", "--json").json == {
        "records": 0,
        "skipped": 0,
        "rows": 0,
        "transactions": 0,
    }


def test_a_summary_looks_like_this(used: Run) -> None:
    used("usage", "aggregate")
    until = (DAY + timedelta(hours=14)).isoformat()
    told = used("usage", "summary", "--entity", "u-1", "--until", until)
    day = f"{DAY:%Y-%m-%d}"
    assert (told.code, told.out) == (
        0,
        f"""\
u-1: {day} 10:00 to {day} 14:00 UTC, by hour

limit  total    mean     peak   peak at
-----  -------  -------  -----  ----------------
rpm    35       8.8      20     {day} 11:00
tpm    4,500.5  1,125.1  3,000  {day} 11:00

rpm: 35 tokens
{day} 10:00  ████████████████████                      10
{day} 11:00  ████████████████████████████████████████  20
{day} 12:00                                             0
{day} 13:00  ██████████                                 5
tpm: 4,500.5 tokens
{day} 10:00  ████████████████████                      1,500
{day} 11:00  ████████████████████████████████████████  3,000
{day} 12:00                                                0
{day} 13:00                                              0.5
""",
    )
    plain = used("usage", "summary", "--entity", "u-1", "--until", until, "--no-chart")
    assert told.out.startswith(plain.out)
    assert "█" not in plain.out


def test_usage_is_of_an_entity_a_resource_or_both_by_window(used: Run) -> None:
    used("usage", "aggregate")
    rows = used("usage", "list", "--entity", "u-1", "--json").json
    assert [(row["start"][11:13], row["tokens"]["rpm"]) for row in rows] == [
        ("10", 10),
        ("11", 20),
        ("13", 5),
    ]
    (day,) = used("usage", "list", "--resource", "gpt-4", "--window", "day", "--json").json
    assert day["tokens"] == {"rpm": 35, "tpm": 4500.5}
    some = used("usage", "list", "--entity", "u-1", "-n", "2", "--csv")
    assert some.out.splitlines()[0] == "start,entity,resource,events,rpm,tpm"
    assert (len(some.out.splitlines()), some.err[:21]) == (3, "There are more rows; ")
    since = (DAY + timedelta(hours=11)).isoformat()
    assert len(used("usage", "list", "--entity", "u-1", "--since", since, "--jsonl").out.splitlines()) == 2
    assert used("usage", "list", "--entity", "u-1", "--resource", "gpt-5", "--json").json == []
    assert used("usage", "list", "--entity", "u-1", "--since", "24h", "--json").json == []
    found = used("usage", "summary", "--resource", "gpt-4", "--since", "7d", "--window", "day", "--json").json
    assert (found["windows"], found["limits"]["rpm"]["total"]) == (8, 35)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--entity", "a#b"),
        ("--entity", "u-1", "--since", "yesterday"),
        ("--entity", "u-1", "--since", "2030-01-02", "--until", "2030-01-01"),
        ("--entity", "u-1", "--window", "week"),
        ("--entity", "u-1", "--since", "99999999d"),
        ("--entity", "u-1", "--since", "0001-01-01T00:00+12:00"),
        ("--entity", "u-1", "--until", "9999-12-31T23:30"),
    ],
)
@pytest.mark.parametrize("verb", ["list", "summary"])
def test_bad_ranges_are_one_sentence(used: Run, verb: str, arguments: tuple[str, ...]) -> None:
    ran = used("usage", verb, *arguments)
    assert (ran.code, ran.out, ran.err.count("Error: ")) == (2, "", 1)
    assert "Traceback" not in ran.err


def test_the_trail_tells_who_changed_what(lim: Run) -> None:
    assert lim("entity", "create", "u-1", "--name", "Ann").code == 0
    assert lim("entity", "set-limits", "u-1", "rpm=5/minute").code == 0
    assert lim("entity", "set-limits", "u-1", "rpm=9/minute").code == 0
    assert lim("system", "set-defaults", "rpm=1/minute").code == 0
    assert lim("entity", "delete-limits", "u-1").code == 0
    assert lim("audit", "list").out.startswith("The trail is empty.")
    assert lim("system", "set-defaults", "rpm=1", "--on-unavailable", "allow").code == 0
    assert lim("audit", "deliver", "--json").json == {"delivered": 6, "dead": 0}
    assert lim("audit", "deliver").out == "Added 0 changes to the trail.\n"

    lines = lim("audit", "list").out.splitlines()
    assert lines.pop(2).endswith("rpm=1/minute on_unavailable=allow")
    assert [line.split()[2] for line in lines[2:]] == [
        "limits_deleted",
        "limits_set",
        "limits_set",
        "limits_set",
        "entity_created",
    ]
    assert lines[2].endswith("rpm=9/minute -> (none)")
    assert lines[4].endswith("rpm=5/minute -> rpm=9/minute")
    records = lim("audit", "list", "--entity", "u-1", "--json").json
    assert len(records) == 4
    assert records[0]["actor_id"].startswith("cli:")


def test_other_sinks_get_the_same_events(lim: Run, run: Run, tmp_path: Path) -> None:
    assert lim("entity", "create", "u-1").code == 0
    told = run("deliver", "-m", "solotable.systems.limiter:limiter", "--sink", "jsonl:log.jsonl", "--json")
    assert told.json == {"delivered": 1, "dead": 0}
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1
    assert lim("audit", "deliver", "--json").json == {"delivered": 1, "dead": 0}
    assert len(lim("audit", "list", "--json").json) == 1


def test_the_registry_has_its_own_audit_trail(lim: Run) -> None:
    assert lim("namespace", "register", "eu").code == 0
    assert lim("audit", "deliver").code == 0
    (record,) = lim("audit", "list", "--registry", "--json").json
    assert (record["action"], record["title"]) == ("namespace_created", "eu")
    assert record["actor_id"].startswith("cli:")
    assert lim("audit", "list", "--registry", "--entity", "u-1").code == 2


def test_an_archive_is_whole_or_not_there(lim: Run, tmp_path: Path) -> None:
    assert lim("entity", "create", "u-1").code == 0
    assert lim("audit", "deliver").code == 0
    assert lim("audit", "archive", "a.gz").out == "Wrote 1 record to a.gz.\n"
    (line,) = gzip.decompress((tmp_path / "a.gz").read_bytes()).splitlines()
    assert json.loads(line)["action"] == "entity_created"
    assert lim("audit", "archive", "a.gz").code == 2, "nothing is replaced unasked"
    assert lim("audit", "archive", "a.gz", "--force", "--json").json == {"file": "a.gz", "records": 1}
    assert lim("audit", "archive", "none.gz", "--since", "2030-01-02", "--before", "2030-01-01").code == 2
    assert lim("audit", "archive", "nowhere/a.gz").code == 2
    assert sorted(each.name for each in tmp_path.iterdir() if "gz" in each.name) == ["a.gz"]
