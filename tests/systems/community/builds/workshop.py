"""A site and its builds for one test, on a recording engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from solotable import Database
from solotable.systems.community.builds.requests import Builds
from solotable.systems.community.builds.stages import BuildSettings, Progress
from solotable.systems.community.builds.worker import BuildWorker, WorkDone
from solotable.systems.community.entities.builds import Build, BuildLog, SiteFiles
from solotable.systems.community.entities.sites import Post, Site, SiteOwner
from solotable.systems.community.entities.users import User
from solotable.systems.storage import Storage
from tests.systems.harness import Harness

ADA = "did:plc:ada"
SETTINGS = BuildSettings(site_url="https://{subdomain}.nbhd.example/")


def add_site(db: Database, subdomain: str = "ada", posts: int = 2, **fields: Any) -> Site:
    """Store a site with its owner and some posts."""
    if db.get(User, did=ADA) is None:
        db.create(User(did=ADA, display_name="Ada"))
    given = {"title": "Notes", "template": "blog", "config": {"author": "Ada"}, **fields}
    site = db.create(Site(did=ADA, subdomain=subdomain, **given))
    db.create(SiteOwner(did=ADA, site_id=site.site_id))
    for number in range(posts):
        add_post(db, site, number)
    return site


def add_post(db: Database, site: Site, number: int, **fields: Any) -> Post:
    """Store a post; a higher number is newer."""
    given = {
        "title": f"Post {number}",
        "slug": f"post-{number}",
        "body": f"Text of **post {number}**.",
        "published_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
        **fields,
    }
    return db.create(Post(did=ADA, site_id=site.site_id, rkey=f"3k{number:06}", **given))


@dataclass
class Workshop(Harness):
    """Sites, builds and workers."""

    storage: Storage = field(init=False)
    folder: Path = field(init=False)

    @property
    def builds(self) -> Builds:
        return Builds(self.db, now=self.now)

    def worker(self, *, settings: BuildSettings = SETTINGS, progress: Progress | None = None) -> BuildWorker:
        return BuildWorker(self.blocking, self.storage, settings, now=self.now, progress=progress)

    def work(self, **options: Any) -> WorkDone:
        """Let a worker do what waits."""
        with self.worker(**options) as worker:
            return worker.run_once()

    def site(self, subdomain: str = "ada", posts: int = 2, **fields: Any) -> Site:
        return add_site(self.blocking, subdomain, posts, **fields)

    def request(self, site: Site) -> Build:
        return self.run(self.builds.request(site.site_id))

    def build(self, site: Site, **options: Any) -> Build:
        """Request a build, let a worker run it, and return how it ended."""
        build = self.request(site)
        self.work(**options)
        return self.again(build)

    def again(self, build: Build) -> Build:
        return self.run(self.builds.get(build.site_id, build.job_id))

    def log(self, build: Build) -> list[BuildLog]:
        return self.run(self.builds.log(build.site_id, build.job_id))

    def live(self, site: Site) -> Site:
        return self.blocking.require(Site, did=site.did, site_id=site.site_id, consistent=True)

    def stored(self, site: Site) -> list[SiteFiles]:
        return list(self.blocking.all(SiteFiles.key.query(site_id=site.site_id).consistent()))

    def files(self, site: Site) -> dict[str, bytes]:
        """Return what readers see."""
        live = self.live(site)
        prefix = f"sites/{live.site_id}/{live.live_job_id}-{live.live_token}"
        return self.run(self._read(prefix))

    async def _read(self, prefix: str) -> dict[str, bytes]:
        from solotable.systems.community.builds.publish import MANIFEST, decode_manifest

        paths = decode_manifest(await self.storage.get(f"{prefix}/{MANIFEST}"))
        return {path: await self.storage.get(f"{prefix}/{path}") for path in paths}

    def pass_time(self, **amount: float) -> None:
        """Move the clock."""
        self.clock.seconds += timedelta(**amount).total_seconds()
