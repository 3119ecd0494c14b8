"""Pages: content with its former versions, and the routes that lead to it.

Corrections of the written design, and why:

- C0.1: `v<N>` sorts as text, v10 before v9. Versions have six digits: `CONTENT#<id>#v000010`.
- C0.3: reading, copying and overwriting are three steps in which two editors lose each other's work. The
  snapshot is part of the transaction that replaces LATEST, which is conditional on the version read.
- C0.5: a route knows its former names, so a rename turns all of them to the new one, and an old name of
  one's own can be taken back. There are no chains and no loops.
- C0.14: the newest 200 versions are kept. They outlive a delete, so that a page can be had back, until they
  are purged.
- A page's blocks are one text of JSON: they are read and written as a whole, and floats stay floats.
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
from solotable.systems.cms.formats.json_sizes import at_most
from solotable.systems.cms.table import OF_TENANT, cms

ContentStatus = Literal["draft", "review", "published", "archived"]
ContentKind = Literal["page", "post"]
#: Hard rule 4: these can be written to, but neither renamed nor deleted.
PROTECTED = ("/", "/contact")
KEPT_VERSIONS = 200

Title = Annotated[str, Field(min_length=1, max_length=200)]
Slug = Annotated[str, Field(min_length=1, max_length=400)]
Description = Annotated[str, Field(max_length=1000)]
#: An item of DynamoDB has 400 KB; the rest of a page and of its snapshot fits beside these.
Blocks = Annotated[list[dict[str, Any]], at_most(350_000)]
Seo = Annotated[dict[str, Any], at_most(10_000)]


class Content(Entity, table=cms):
    """A page as it is now."""

    key = Key(OF_TENANT, "CONTENT#{node_id}#LATEST")
    by_type = Key("TENANT#{tenant_id}#TYPE#CONTENT", "{node_id}", index="GSI_Type")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "CONTENT#{node_id}", index="GSI_Status")
    history = History(
        "CONTENT#{node_id}#v{version:06d}",
        keep=KEPT_VERSIONS,
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
    def shown_as(cls, node_id: str) -> Query[ContentSummary]:
        """What lists show of one page: its status costs half a read unit, whatever its blocks weigh."""
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
    """What a list shows of a page; all of it is in the index."""

    node_id: str
    slug: str
    title: str
    kind: ContentKind = "page"
    status: ContentStatus = "draft"
    created: datetime | None = None
    updated: datetime | None = None
    version: int = 0


class PageLinks(BaseModel):
    """What the graph of a site reads of a page."""

    node_id: str
    status: ContentStatus
    blocks: list[dict[str, Any]] = []


class Route(Entity, table=cms):
    """The way from a path to a page; the former paths of a page are redirects beside it."""

    key = Key(OF_TENANT, "ROUTE#{slug}")
    names = Names("slug", protected=PROTECTED)

    tenant_id: str = FROM_SCOPE
    slug: Slug
    node_id: str
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The routes of a tenant, by path, whole: for what leads to them."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[RouteSummary]:
        """The routes of a tenant, by path."""
        return cls.key.query().select(RouteSummary)


class RouteSummary(BaseModel):
    """What a list shows of a route."""

    slug: str
    node_id: str
    version: int = 0
