"""Pages: content with its former versions, and its routes.

Corrections of the written design:

- C0.1: `v<N>` sorts as text, v10 before v9. Versions have six digits: `CONTENT#<id>#v000010`.
- C0.3: with separate reads, copies and writes two editors lose each other's work. One transaction stores the
  snapshot and replaces LATEST, on the condition that the version is the one that was read.
- C0.5: a route stores its former names, so a rename redirects all of them to the new one, and a page can take
  back its own old name. Chains and loops cannot occur.
- C0.14: the newest 200 versions are stored. They outlive a delete, so that a page can be restored, until a
  purge.
- A scheduled page needs no job to appear: `is_public` compares its time with the clock at each read.
- The blocks of a page are one JSON text: they are read and written together, and floats stay floats.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import (
    FROM_SCOPE,
    Created,
    Entity,
    History,
    Json,
    Key,
    Names,
    Outbox,
    Query,
    Updated,
    Version,
    new_id,
    pattern,
)
from solotable.systems.cms.table import OF_TENANT, cms
from solotable.systems.formats.json_sizes import max_json_bytes

ContentStatus = Literal["draft", "review", "scheduled", "published", "archived"]
ContentKind = Literal["page", "post"]
#: Hard rule 4: these can be changed, but neither renamed nor deleted.
PROTECTED = ("/", "/contact")
MAX_VERSIONS = 200

Title = Annotated[str, Field(min_length=1, max_length=200)]
Slug = Annotated[str, Field(min_length=1, max_length=400)]
Description = Annotated[str, Field(max_length=1000)]
#: DynamoDB: an item has at most 400 KB; the other attributes of a page need some of them.
Blocks = Annotated[list[dict[str, Any]], max_json_bytes(350_000)]
Seo = Annotated[dict[str, Any], max_json_bytes(10_000)]


def is_public(page: Content | ContentSummary | PageLinks, now: datetime) -> bool:
    """Return whether visitors see a page: it is published, or its scheduled time has come."""
    if page.status == "scheduled":
        return page.publish_at is not None and page.publish_at <= now
    return page.status == "published"


class Content(Entity, table=cms):
    """The current version of a page."""

    key = Key(OF_TENANT, "CONTENT#{node_id}#LATEST")
    by_type = Key("TENANT#{tenant_id}#TYPE#CONTENT", "{node_id}", index="GSI_Type")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "CONTENT#{node_id}", index="GSI_Status")
    history = History(
        "CONTENT#{node_id}#v{version:06d}",
        keep=MAX_VERSIONS,
        on_delete="keep",
        restored_from="restored_from",
    )
    events = Outbox(title="title", snapshot=("title", "slug", "status", "kind", "restored_from"))

    tenant_id: str = FROM_SCOPE
    node_id: str = Field(default_factory=new_id)
    slug: Slug
    title: Title
    kind: ContentKind = "page"
    status: ContentStatus = "draft"
    #: The time from which a page with the status `scheduled` is public; it stays as the date of publication.
    publish_at: datetime | None = None
    description: Description = ""
    blocks: Annotated[Blocks, Json()] = Field(default_factory=list)
    seo: Annotated[Seo, Json()] = Field(default_factory=dict)
    restored_from: int | None = None
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def listed(cls) -> Query[ContentSummary]:
        """The pages of a tenant, newest first, without their blocks."""
        return cls.by_type.query().descending().select(ContentSummary)

    @pattern
    @classmethod
    def summary_of(cls, node_id: str) -> Query[ContentSummary]:
        """One page as in lists: half a read unit, whatever the size of its blocks."""
        return cls.by_type.query(node_id=node_id).select(ContentSummary)

    @pattern
    @classmethod
    def links_of(cls, node_id: str) -> Query[PageLinks]:
        """The blocks of one page, for the links in them."""
        return cls.key.query(node_id=node_id).select(PageLinks)

    @pattern
    @classmethod
    def in_status(cls, status: ContentStatus) -> Query[ContentSummary]:
        """The pages in a status, oldest first: the work inbox."""
        return cls.by_status.query(status=status).select(ContentSummary)


class ContentSummary(BaseModel):
    """A page in a list; the index holds all of it."""

    node_id: str
    slug: str
    title: str
    kind: ContentKind = "page"
    status: ContentStatus = "draft"
    publish_at: datetime | None = None
    created: datetime | None = None
    updated: datetime | None = None
    version: int = 0


class PageLinks(BaseModel):
    """The attributes of a page that the link graph reads."""

    node_id: str
    status: ContentStatus
    publish_at: datetime | None = None
    blocks: list[dict[str, Any]] = []


class Route(Entity, table=cms):
    """The page of a path; the former paths of a page redirect to it."""

    key = Key(OF_TENANT, "ROUTE#{slug}")
    names = Names("slug", protected=PROTECTED)

    tenant_id: str = FROM_SCOPE
    slug: Slug
    node_id: str
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The routes of a tenant by path, with all attributes, for their redirects."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[RouteSummary]:
        """The routes of a tenant, by path."""
        return cls.key.query().select(RouteSummary)


class RouteSummary(BaseModel):
    """A route in a list."""

    slug: str
    node_id: str
    version: int = 0
