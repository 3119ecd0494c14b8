"""`solotable community worker`: builds what waits, in its own process, until a signal."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from solotable import connect
from solotable.systems.community.entities.builds import Build
from solotable.systems.community.table import community
from tests.killing import Start
from tests.systems.community.builds.workshop import add_site
from tests.waiting import HANG_SECONDS, wait_until

from .conftest import Run


@pytest.fixture
def site(tmp_path: Path) -> Build:
    """A site with a build that waits."""
    (tmp_path / "files").mkdir()
    with connect(f"sqlite:///{tmp_path}/app.db", community) as db:
        made = add_site(db)
        return db.create(Build(did=made.did, site_id=made.site_id))


def test_a_worker_builds_what_waits_and_exits(run: Run, site: Build) -> None:
    options = ("community", "worker", "-d", "app.db", "--storage", "files", "--once")
    assert run(*options).out == "1 build: live\n"
    assert run(*options).out == ""


def test_a_worker_prints_json(run: Run, site: Build) -> None:
    ran = run("community", "worker", "-d", "app.db", "--storage", "files", "--once", "--json")
    assert ran.json["live"] == 1


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("-d", "app.db"), 2, "No storage given; pass --storage FOLDER"),
        (("-d", "app.db", "--storage", "none"), 3, "--storage none: no such folder."),
        (
            ("-d", "none.db", "--storage", "files"),
            3,
            "No such file: none.db. Create it with: solotable schema",
        ),
        (("-d", "app.db", "--storage", "files", "--site-url", "https://a.example"), 2, "--site-url: write"),
    ],
)
def test_a_worker_names_what_is_missing(
    run: Run, site: Build, options: tuple[str, ...], code: int, text: str
) -> None:
    ran = run("community", "worker", *options)
    assert ran.code == code
    assert text in ran.err


def test_a_worker_runs_until_a_signal_ends_it(start: Start, site: Build, tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    program = start(
        *("-m", "solotable", "community", "worker", "-d", str(path)),
        *("--storage", str(tmp_path / "files"), "--poll", "0.05"),
    )
    program.wait_for_lines(1)
    with connect(f"sqlite:///{path}", community) as db:
        again = db.create(Build(did=site.did, site_id=site.site_id))

        def ended() -> bool:
            return db.require(Build, site_id=again.site_id, job_id=again.job_id).status == "completed"

        wait_until(ended)
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(HANG_SECONDS) == 0
