"""One attempt to build a site: it holds the lease of the site, and runs the stages."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from solotable import ANY, Database, Lease
from solotable.errors import ConditionFailed, LeaseLost, NotFound, TransactionFailed
from solotable.systems.community.entities.builds import Build, CustomTemplate, SiteFiles
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.sites import Post, Site
from solotable.systems.errors import first_error
from solotable.systems.storage import Storage

from .build_log import LogWriter
from .publish import Publication, PublishedFile, announce_upload, make_live, upload
from .render.content import NeighbourhoodLink, PostContent, SiteContent, file_names
from .render.site_files import render_site
from .spool import Piece, Spool
from .stages import (
    STAGES,
    BuildCancelled,
    BuildRejected,
    BuildSettings,
    Progress,
    Stage,
    StageTimedOut,
)
from .templates.analysis import analyse
from .templates.manifest import SiteTemplate, checked_config, shipped_templates


@dataclass(frozen=True, slots=True)
class _StoredPost:
    """A post in the spool, and where it stands among the others."""

    published_at: datetime | None
    rkey: str
    slug: str
    piece: Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTools:
    """What every build of a worker uses."""

    db: Database
    storage: Storage
    settings: BuildSettings
    runner: asyncio.Runner
    now: Callable[[], datetime]
    progress: Progress | None = None


class BuildRun:
    """Runs the stages of a build that this worker has claimed."""

    def __init__(self, tools: BuildTools, build: Build, lease: Lease) -> None:
        self._tools = tools
        self._db = tools.db
        self._settings = tools.settings
        self._build = build
        self._lease = lease
        self.log = LogWriter(tools.db, build)
        self.stage: Stage = "fetch"
        self.seconds: dict[str, float] = {}
        self.content_count = 0
        self._began = self._renewed = time.monotonic()

    def run(self) -> bool:
        """Build and publish; return whether readers see the result, which is False after a newer build."""
        with Spool() as spool:
            work = _Work(spool)
            stages = {
                "fetch": self._fetch,
                "inject": self._inject,
                "render": self._render,
                "upload": self._upload,
                "invalidate": self._invalidate,
            }
            for stage in STAGES:
                self._enter(stage)
                stages[stage](work)
                self.seconds[stage] = round(time.monotonic() - self._began, 3)
            return work.live

    def _enter(self, stage: Stage) -> None:
        """Store the stage, unless the build was cancelled or another worker has it."""
        self.stage = stage
        self._began = time.monotonic()
        try:
            with self._db.transaction() as tx:
                tx.update(
                    Build,
                    site_id=self._build.site_id,
                    job_id=self._build.job_id,
                    version=ANY,
                    set={"stage": stage, "stages": dict(self.seconds), "content_count": self.content_count},
                    where=lambda build: (
                        (build.token == self._lease.token) & (build.cancel_requested == False)  # noqa: E712 - a condition
                    ),
                )
                tx.check_lease(self._lease)
        except TransactionFailed as failed:
            raise self._reason(first_error(failed)) from failed
        self._report(0)

    def _tick(self, done: int) -> float:
        """Report a step and return the seconds that are left; raise if the stage has to stop."""
        left = self._settings.stage_seconds[self.stage] - (time.monotonic() - self._began)
        if left <= 0:
            limit = self._settings.stage_seconds[self.stage]
            raise StageTimedOut(f"The stage {self.stage!r} took longer than {limit:g} seconds.")
        if time.monotonic() - self._renewed > self._settings.lease_seconds / 3:
            self._lease.renew()
            self._renewed = time.monotonic()
            current = self._db.get(Build, site_id=self._build.site_id, job_id=self._build.job_id)
            if current is None or current.cancel_requested:
                raise BuildCancelled("The build was cancelled.")
        if done:
            self._report(done)
        return left

    def _report(self, done: int) -> None:
        if self._tools.progress is not None:
            self._tools.progress(self.stage, done)

    def _reason(self, error: Exception) -> Exception:
        """Return what a failed condition on the build means."""
        if isinstance(error, LeaseLost):
            return error
        current = self._db.get(Build, site_id=self._build.site_id, job_id=self._build.job_id, consistent=True)
        if current is None:
            return BuildRejected("The site was deleted.")
        if current.token != self._lease.token:
            return LeaseLost(
                f"Build {self._build.job_id!r} was taken by another worker.",
                name=self._lease.name,
                token=self._lease.token,
            )
        return BuildCancelled("The build was cancelled.") if current.cancel_requested else error

    def _fetch(self, work: _Work) -> None:
        """Read the site, its template and its posts."""
        site = self._db.get(Site, did=self._build.did, site_id=self._build.site_id, consistent=True)
        if site is None:
            raise BuildRejected("The site was deleted.")
        work.site, work.template = site, self._template(site)
        for number, post in enumerate(
            self._db.all(Post.of_site(site.site_id).consistent(), unknown="skip"), 1
        ):
            if post.status == "published":
                piece = work.spool.add(post.model_dump_json(include=_POST_FIELDS).encode())
                work.posts.append(_StoredPost(post.published_at, post.rkey, post.slug, piece))
            self._tick(number)
        # The newest first; one without a date is the first, and stops the rendering.
        work.posts.sort(key=lambda post: (_sort_time(post.published_at), post.rkey), reverse=True)
        self.content_count = len(work.posts)
        template = work.template
        self.log.write(
            f"template {template.name} {template.version}, layout {template.layout}", stage="fetch"
        )
        self.log.write(f"{self.content_count} posts", stage="fetch")

    def _template(self, site: Site) -> SiteTemplate:
        if site.template in shipped_templates():
            return shipped_templates()[site.template]
        custom = self._db.get(CustomTemplate, did=site.did, template_id=site.template, consistent=True)
        if custom is None:
            raise BuildRejected(f"The template {site.template!r} does not exist; choose another one.")
        found = analyse(custom.manifest, allowed_hosts=self._settings.template_hosts).template
        if custom.status != "ready" or found is None:
            raise BuildRejected(f"The template {custom.name!r} is not ready: {custom.status}.")
        return found

    def _inject(self, work: _Work) -> None:
        """Check the config against the schema of the template."""
        site, template = work.site, work.template
        assert site is not None
        assert template is not None
        work.content = SiteContent(
            title=site.title,
            layout=template.layout,
            base_url=self._url(site),
            config=checked_config(template, site.config),
            neighbourhood=self._neighbourhood(site),
        )
        self.log.write(f"config accepted, accent {work.content.config['accent_color']}", stage="inject")

    def _neighbourhood(self, site: Site) -> NeighbourhoodLink | None:
        if site.neighbourhood_id is None or not self._settings.neighbourhood_url:
            return None
        found = self._db.get(Neighbourhood, neighbourhood_id=site.neighbourhood_id)
        # A site is public, so it does not name a private neighbourhood.
        if found is None or found.privacy != "public":
            return None
        member = self._db.get(Membership, neighbourhood_id=found.neighbourhood_id, user_did=site.did)
        if member is None or not member.is_active:
            return None
        return NeighbourhoodLink(
            name=found.name, url=self._settings.neighbourhood_url.format(slug=found.slug)
        )

    def _render(self, work: _Work) -> None:
        """Write every file to the spool."""
        assert work.content is not None
        for number, file in enumerate(render_site(work.content, work.contents(), len(work.posts)), 1):
            work.files[file.path] = work.spool.add(file.data)
            self._tick(number)
        size = sum(piece.size for piece in work.files.values())
        self.log.write(f"rendered {len(work.files)} files, {size} bytes", stage="render")

    def _upload(self, work: _Work) -> None:
        """Store every file under the prefix of this attempt."""
        work.stored = announce_upload(self._db, self._build, self._lease, self._tools.now())
        files = {path: PublishedFile(piece.digest, piece.size) for path, piece in work.files.items()}
        self._tools.runner.run(
            upload(
                self._tools.storage,
                work.stored.prefix,
                files,
                lambda path: work.spool.read(work.files[path]),
                at_once=self._settings.uploads_at_once,
                done=self._tick,
            )
        )
        self.log.write(f"uploaded {len(files)} files", stage="upload")

    def _invalidate(self, work: _Work) -> None:
        """Switch readers to the new files, and let the old ones be removed."""
        assert work.site is not None
        assert work.stored is not None
        publication = Publication(
            files=work.stored,
            now=self._tools.now(),
            public_url=self._url(work.site),
            stages={**self.seconds, "invalidate": round(time.monotonic() - self._began, 3)},
            content_count=self.content_count,
            grace_seconds=self._settings.grace_seconds,
        )
        try:
            work.live = make_live(self._db, self._lease, self._build, publication)
        except NotFound as error:
            raise BuildRejected("The site was deleted.") from error
        except ConditionFailed as error:
            raise self._reason(error) from error
        text = (
            f"live at {self._url(work.site)}" if work.live else "a newer build is live; this one is replaced"
        )
        self.log.write(text, stage="invalidate")

    def _url(self, site: Site) -> str:
        return self._settings.site_url.format(subdomain=site.subdomain)


_POST_FIELDS = {"rkey", "title", "body", "published_at", "updated_at", "summary"}


class _Work:
    """What stages hand to the next one."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.site: Site | None = None
        self.template: SiteTemplate | None = None
        self.content: SiteContent | None = None
        self.posts: list[_StoredPost] = []
        self.files: dict[str, Piece] = {}
        self.stored: SiteFiles | None = None
        self.live = False

    def contents(self) -> Iterator[PostContent]:
        """Read the posts from the spool, one after the other."""
        names = file_names((post.rkey, post.slug) for post in self.posts)
        for post in self.posts:
            fields = json.loads(self.spool.read(post.piece))
            updated = fields["updated_at"]
            yield PostContent(
                rkey=post.rkey,
                name=names[post.rkey],
                title=fields["title"],
                body=fields["body"],
                summary=fields["summary"],
                published_at=post.published_at,
                updated_at=None if updated is None else datetime.fromisoformat(updated),
            )


def _sort_time(when: datetime | None) -> float:
    return float("inf") if when is None else when.timestamp()
