"""`solotable backup ship`, `recover`, `verify` and `prune` on real files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

from .conftest import Run


def names(run: Run, db: str) -> set[str]:
    return {each["name"] for each in run("list", "Section", "-d", db, "--json").json}


def test_a_shipped_file_is_verified_and_recovered(filled: Run) -> None:
    before = signal.getsignal(signal.SIGINT)
    shipped = filled("backup", "ship", "survey.db", "kept", "--once")
    assert shipped.code == 0, shipped.err
    assert "Shipping survey.db to kept\n" in shipped.out
    assert "is stored" in shipped.out
    assert signal.getsignal(signal.SIGINT) is before
    verified = filled("backup", "verify", "kept")
    assert verified.code == 0
    assert verified.out.startswith("kept can be restored: ")
    recovered = filled("backup", "recover", "kept", "copy.db", "--json")
    assert recovered.code == 0, recovered.err
    assert recovered.json["bytes"] == Path("copy.db").stat().st_size
    assert names(filled, "copy.db") == {"Roof", "Loft", "Hall"}


def test_a_second_ship_adds_what_changed(filled: Run) -> None:
    filled("backup", "ship", "survey.db", "kept", "--once")
    assert filled("update", "Section", "survey_id=s1", "section_id=roof", "--set", "name=New").code == 0
    again = filled("backup", "ship", "survey.db", "kept", "--once", "--keep", "35d", "--json")
    assert json.loads(again.out.splitlines()[-1])["generation"]
    assert filled("backup", "recover", "kept", "copy.db").code == 0
    assert names(filled, "copy.db") == {"New", "Loft", "Hall"}


def test_prune_counts_before_it_deletes(filled: Run) -> None:
    filled("backup", "ship", "survey.db", "kept", "--once")
    files = sorted(Path("kept").rglob("*"))
    counted = filled("backup", "prune", "kept", "--keep", "35d", "--dry-run")
    assert counted.out == "To delete: 0 segments, 0 snapshots, 0 whole generations.\n"
    pruned = filled("backup", "prune", "kept", "--keep", "1s", "--json")
    assert set(pruned.json) >= {"segments", "snapshots", "generations"}
    assert filled("backup", "verify", "kept").code == 0
    assert sorted(Path("kept").rglob("*")) == files


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ship", "absent.db", "kept"), 3, "No such file: absent.db."),
        (("ship", "survey.db", "ftp://host"), 1, "pass a folder or s3://BUCKET/PREFIX"),
        (("ship", "survey.db", "kept", "--interval", "soon"), 2, "'soon' is not a period"),
        (("prune", "kept"), 2, "Missing option '--keep'"),
        (("prune", "kept", "--keep", "0d"), 2, "'0d' is not a period"),
        (("recover", "kept", "survey.db"), 1, "survey.db exists; restore to another name"),
        (("recover", "nothing", "copy.db"), 1, "nothing"),
        (("recover", "kept", "copy.db", "--at", "noon"), 2, "'noon' is not a time"),
        (("recover", "kept", "copy.db", "--at", "2001-01-01"), 1, "kept"),
        (("verify", "nothing"), 1, "nothing"),
    ],
)
def test_errors_say_what_is_wrong(filled: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    filled("backup", "ship", "survey.db", "kept", "--once")
    done = filled("backup", *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
    assert not Path("copy.db").exists()


def test_damage_is_named_and_nothing_is_restored(filled: Run) -> None:
    filled("backup", "ship", "survey.db", "kept", "--once")
    largest = max(
        (each for each in Path("kept").rglob("*") if each.is_file()), key=lambda each: each.stat().st_size
    )
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    for command in (("verify", "kept"), ("recover", "kept", "copy.db")):
        done = filled("backup", *command)
        assert done.code == 1
        assert largest.name in done.err
    assert not Path("copy.db").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ships_the_rest_and_ends(filled: Run, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "solotable", "backup", "ship", "survey.db", "kept", "--json"]
    # The long interval shows that the last round is the signal's.
    with subprocess.Popen([*command, "--interval", "1d"], stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["generation"]
        assert filled("update", "Section", "survey_id=s1", "section_id=roof", "--set", "name=New").code == 0
        process.send_signal(number)
        process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert filled("backup", "recover", "kept", "copy.db").code == 0
    assert names(filled, "copy.db") == {"New", "Loft", "Hall"}


def test_another_file_is_not_shipped(filled: Run) -> None:
    Path("notes.txt").write_text("not a database")
    refused = filled("backup", "ship", "notes.txt", "kept", "--once")
    assert refused.code == 1
    assert "notes.txt is not a solotable database; nothing was changed." in refused.err
    assert not Path("kept").exists()
