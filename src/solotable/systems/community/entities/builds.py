"""Builds of sites, their files, the lines of their logs, and custom templates (S2.7).

- C2.3: every build has a `created_at`, and GSI4 has builds only.
- C2.8: the key of a build is a ULID, so two builds of one second are two items.
- S2.23: the lines of a log expire after 90 days; reads hide them from that moment (C2.9).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field

from solotable import TTL, Created, Entity, Json, Key, Query, Retention, Updated, Version, new_id, pattern
from solotable.systems.community.table import SHARDS, community
from solotable.systems.formats.json_sizes import max_json_bytes
from solotable.systems.texts import clean_line

from .values import Did, Id, Line, Link

LOG_DAYS = 90
BuildStatus = Literal["pending", "running", "completed", "failed", "cancelled"]
BuildTrigger = Literal["manual", "content", "schedule"]
LogLevel = Literal["info", "warning", "error"]
TemplateStatus = Literal["pending", "ready", "rejected"]


class Build(Entity, table=community, tag="BUILD"):
    """A build of a site, from its request to its end."""

    key = Key("BUILD#{site_id}", "JOB#{job_id}")
    by_site = Key("SITE#{site_id}", "{created_at:us}#{job_id}", index="GSI4")
    #: What a worker has to do: builds that wait, and running ones whose worker may have died.
    queue = Key(
        "BUILDS",
        "{created_at:us}#{job_id}",
        index="GSI6",
        shards=SHARDS,
        when={"status": {"pending", "running"}},
    )

    #: The owner of the site.
    did: Did
    site_id: Id
    job_id: Id = Field(default_factory=new_id)
    status: BuildStatus = "pending"
    trigger: BuildTrigger = "manual"
    stage: str | None = None
    error: Annotated[str, Field(max_length=2000)] | None = None
    error_stage: str | None = None
    attempts: int = 0
    #: The fencing token of the worker that runs it.
    token: int = 0
    content_count: int | None = None
    #: Seconds of each stage that ended.
    stages: Annotated[dict[str, float], Json()] = Field(default_factory=dict)
    log_url: Link | None = None
    cancel_requested: bool = False
    #: No worker takes it before; set after an attempt that failed for a moment.
    retry_at: datetime | None = None
    created_at: Annotated[datetime | None, Created()] = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def history(cls, site_id: str) -> Query[BuildSummary]:
        """The builds of a site, newest first (S2.11)."""
        return cls.by_site.query(site_id=site_id).descending().select(BuildSummary)

    @pattern
    @classmethod
    def of_site(cls, site_id: str) -> Query[Self]:
        """The builds of a site in whole, newest first; consistent if asked."""
        return cls.key.query(site_id=site_id).descending()

    @pattern
    @classmethod
    def waiting(cls) -> Query[BuildReference]:
        """The builds that are pending or running, the oldest first."""
        return cls.queue.query().select(BuildReference)


class BuildReference(BaseModel):
    """The key of a build."""

    site_id: str
    job_id: str


class BuildSummary(BaseModel):
    """A build in a list."""

    site_id: str
    job_id: str
    status: BuildStatus
    trigger: BuildTrigger = "manual"
    stage: str | None = None
    error: str | None = None
    error_stage: str | None = None
    content_count: int | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class SiteFiles(Entity, table=community, tag="SITE_FILES"):
    """The files of one attempt to build a site, from before their upload until they are removed.

    A worker looks at them when they are due: files that are not live any more, or that belong to a site that
    was purged, are removed. So an upload that a dead worker left is removed too.
    """

    key = Key("FILES#{site_id}", "{job_id}#{token:09d}")
    queue = Key("FILES", "{due_at:us}#{job_id}#{token:09d}", index="GSI6", shards=SHARDS)

    site_id: Id
    job_id: Id
    #: The fencing token of the worker that uploads them.
    token: int
    live: bool = False
    due_at: datetime

    @property
    def prefix(self) -> str:
        """Where the files are in the storage."""
        return self.prefix_of(self.site_id, self.job_id, self.token)

    @staticmethod
    def prefix_of(site_id: str, job_id: str, token: int) -> str:
        """Return where the files of an attempt are."""
        return f"sites/{site_id}/{job_id}-{token}"

    @pattern
    @classmethod
    def due(cls, until: datetime) -> Query[FilesReference]:
        """The files that a worker has to look at."""
        return cls.queue.query().until(due_at=until).select(FilesReference)


class FilesReference(BaseModel):
    """The key of the files of an attempt."""

    site_id: str
    job_id: str
    token: int


class BuildLog(Entity, table=community, tag="BUILD_LOG"):
    """A line of a build's log."""

    key = Key("BUILDLOG#{site_id}", "{job_id}#{number:06d}")
    retention = Retention(timedelta(days=LOG_DAYS), since="created_at")

    did: Did
    site_id: Id
    job_id: Id
    number: Annotated[int, Field(ge=0, lt=1_000_000)]
    level: LogLevel = "info"
    stage: str | None = None
    text: Annotated[str, Field(max_length=1000), BeforeValidator(clean_line)]
    created_at: Annotated[datetime | None, Created()] = None
    expires_at: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_build(cls, site_id: str, job_id: str) -> Query[Self]:
        """The log of a build, in order."""
        return cls.key.query(site_id=site_id, job_id=job_id)


class CustomTemplate(Entity, table=community, tag="TEMPLATE"):
    """A template that a user gave, and the result of its analysis."""

    key = Key("USER#{did}", "TEMPLATE#{template_id}")
    #: What a worker has to analyse.
    queue = Key(
        "TEMPLATES",
        "{created_at:us}#{template_id}",
        index="GSI6",
        shards=SHARDS,
        when={"status": {"pending"}},
    )

    did: Did
    template_id: Id = Field(default_factory=new_id)
    name: Line
    status: TemplateStatus = "pending"
    #: The manifest as the user gave it.
    manifest: Annotated[dict[str, Any], Json(), max_json_bytes(64_000)] = Field(default_factory=dict)
    #: The JSON Schema of its configuration, after the analysis.
    config_schema: Annotated[dict[str, Any], Json()] = Field(default_factory=dict)
    problems: list[str] = Field(default_factory=list)
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_user(cls, did: str) -> Query[Self]:
        """The custom templates of a user."""
        return cls.key.query(did=did)

    @pattern
    @classmethod
    def waiting(cls) -> Query[TemplateReference]:
        """The templates that wait for their analysis, the oldest first."""
        return cls.queue.query().select(TemplateReference)


class TemplateReference(BaseModel):
    """The key of a custom template."""

    did: str
    template_id: str
