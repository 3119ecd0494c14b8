"""What owners do with builds: request one, follow it, cancel it, and read its log.

Callers check who may do it. A build is in the queue as soon as it is stored; a worker does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from solotable import AsyncDatabase
from solotable.errors import ConditionFailed, NotFound
from solotable.systems.community.entities.builds import (
    Build,
    BuildLog,
    BuildSummary,
    BuildTrigger,
    CustomTemplate,
)
from solotable.systems.community.entities.sites import Site, SiteOwner
from solotable.systems.errors import InvalidInput
from solotable.systems.formats.json_sizes import check_json_size

from .templates.analysis import MAX_MANIFEST_BYTES, analyse
from .templates.manifest import SiteTemplate, shipped_templates

#: S2.11: how many builds a list has.
RECENT_BUILDS = 10
_LONGEST_LOG = 5000
_UNFINISHED = ("pending", "running")


class Builds:
    """Builds of sites, and the custom templates that they use."""

    def __init__(
        self,
        db: AsyncDatabase,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        template_hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._db = db
        self._now = now
        self._template_hosts = template_hosts

    async def request(self, site_id: str, *, trigger: BuildTrigger = "manual") -> Build:
        """Store a build that waits for a worker, or raise NotFound for a site that does not exist.

        The id of the site alone is enough (C2.8), and two requests of one moment are two builds.
        """
        owner = await self._db.get(SiteOwner, site_id=site_id)
        if owner is None or await self._db.get(Site, did=owner.did, site_id=site_id) is None:
            raise NotFound(f"Site not found: site_id={site_id!r}.")
        return await self._db.create(Build(did=owner.did, site_id=site_id, trigger=trigger))

    async def get(self, site_id: str, job_id: str) -> Build:
        """Return a build, or raise NotFound."""
        return await self._db.require(Build, site_id=site_id, job_id=job_id, consistent=True)

    async def recent(self, site_id: str, *, limit: int = RECENT_BUILDS) -> list[BuildSummary]:
        """Return the last builds of a site, newest first (S2.11)."""
        return list(await self._db.page(Build.history(site_id), limit=limit, unknown="skip"))

    async def queue_position(self, build: Build) -> int:
        """Return how many builds precede one that waits; 0 is the next."""
        waiting = [each async for each in self._db.all(Build.waiting(), unknown="skip")]
        return sum(each.job_id < build.job_id for each in waiting)

    async def cancel(self, site_id: str, job_id: str) -> Build:
        """Cancel a build: at once if it waits, at its next step if it runs; ConditionFailed if it has ended.

        A worker cannot publish a build after this.
        """
        while True:
            build = await self.get(site_id, job_id)
            if build.status not in _UNFINISHED:
                raise ConditionFailed(f"The build has ended: {build.status}.")
            waits = build.status == "pending"
            changes = (
                {"status": "cancelled", "completed_at": self._now(), "error": "The build was cancelled."}
                if waits
                else {"cancel_requested": True}
            )
            try:
                return await self._db.update(build, set=changes)
            except ConditionFailed:
                # A worker has claimed it, entered the next stage or ended it since the read.
                continue

    async def log(self, site_id: str, job_id: str) -> list[BuildLog]:
        """Return the log of a build in order; lines older than 90 days are not in it (S2.23)."""
        lines: list[BuildLog] = []
        async for line in self._db.all(BuildLog.of_build(site_id, job_id), unknown="skip"):
            lines.append(line)
            if len(lines) == _LONGEST_LOG:
                break
        return lines

    async def submit_template(self, did: str, manifest: dict[str, object]) -> CustomTemplate:
        """Store a manifest, which a worker analyses; InvalidInput if it is too large or has no name."""
        try:
            check_json_size(MAX_MANIFEST_BYTES)(manifest)
        except ValueError as error:
            raise InvalidInput(f"manifest: {error}.") from None
        name = manifest.get("name")
        if not isinstance(name, str) or not 0 < len(name.strip()) <= 100:
            raise InvalidInput("name: must be a text of 1 to 100 characters.")
        return await self._db.create(CustomTemplate(did=did, name=name, manifest=manifest))

    async def template(self, did: str, template_id: str) -> SiteTemplate:
        """Return a template that a user may use: a shipped one, or an own one that is ready."""
        if template_id in shipped_templates():
            return shipped_templates()[template_id]
        custom = await self._db.get(CustomTemplate, did=did, template_id=template_id)
        found = None
        if custom is not None and custom.status == "ready":
            found = analyse(custom.manifest, allowed_hosts=self._template_hosts).template
        if found is None:
            raise NotFound(f"Template not found: template_id={template_id!r}.")
        return found
