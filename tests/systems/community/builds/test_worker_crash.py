"""kill -9 of a worker in each stage: another worker takes over, and nothing of the dead one stays."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable import connect
from solotable.systems.community.builds.stages import STAGES
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.entities.builds import Build, BuildLog, SiteFiles
from solotable.systems.community.entities.sites import Site
from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.killing import Start

from .workshop import SETTINGS, add_site

#: A stage, and after how many of its steps the worker is killed.
KILLS = [*((stage, 0) for stage in STAGES), ("upload", 8)]


@pytest.mark.parametrize("stage, at", KILLS, ids=[f"{stage}-{at}" for stage, at in KILLS])
def test_a_worker_killed_in_any_stage_is_replaced_by_another(
    stage: str, at: int, tmp_path: Path, start: Start
) -> None:
    path, folder = tmp_path / "community.db", tmp_path / "files"
    url = f"sqlite:///{path}?durability=relaxed"
    with connect(url, community) as db:
        site = add_site(db, posts=6)
        build = db.create(Build(did=site.did, site_id=site.site_id))
    victim = start(
        "-m", "tests.systems.community.builds.building", str(path), str(folder), stage, str(at), "0"
    )
    victim.wait_for_lines(1)
    assert victim.kill()[0].startswith(stage)
    ahead = timedelta(minutes=2)
    with connect(url, community, clock=lambda: time.time() + ahead.total_seconds()) as db:
        dead = db.require(Build, site_id=site.site_id, job_id=build.job_id)
        assert (dead.status, dead.stage, dead.attempts) == ("running", stage, 1)
        assert db.require(Site, did=site.did, site_id=site.site_id).live_job_id is None
        with BuildWorker(
            db, FolderStorage(folder), SETTINGS, now=lambda: datetime.now(UTC) + ahead
        ) as worker:
            assert worker.run_once().live == 1
            ended = db.require(Build, site_id=site.site_id, job_id=build.job_id)
            assert (ended.status, ended.attempts, ended.content_count) == ("completed", 2, 6)
            ahead = timedelta(hours=2)
            worker.run_once()
        (files,) = db.all(SiteFiles.key.query(site_id=site.site_id))
        assert (files.live, files.token) == (True, 2)
        # The lines of both attempts, in order and each once.
        numbers = [line.number for line in db.all(BuildLog.of_build(site.site_id, build.job_id))]
        assert numbers == sorted(set(numbers))
    # What the dead worker had uploaded is removed.
    stored = {each.relative_to(folder).parts[2] for each in folder.rglob("*") if each.is_file()}
    assert stored == {f"{build.job_id}-2"}
