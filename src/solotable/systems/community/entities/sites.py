"""Personal sites, their owners and their posts (S2.6).

- C2.8: `SiteOwner` finds the owner by the id of a site alone, consistently.
- C2.11: a post is an item; the configuration of a site has no posts, so it does not grow.
- S2.25: a deleted site is purged after 7 days, with its posts, builds and logs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field

from solotable import Created, Entity, Json, Key, Query, SoftDelete, Unique, Updated, Version, new_id, pattern
from solotable.systems.community.table import community
from solotable.systems.formats.json_sizes import max_json_bytes
from solotable.systems.texts import clean_line, clean_value

from .values import Did, Id, Line, Link, RecordKey, Title

#: S2.25: how long a deleted or exported site can be restored.
DELETED_DAYS = 7
#: Of a configuration as JSON (S2.27).
MAX_CONFIG_BYTES = 64_000
#: Characters of a post, at most 4 bytes each: an item has at most 400 KB.
MAX_BODY = 90_000
SiteStatus = Literal["draft", "published"]
PostStatus = Literal["draft", "published"]
#: Of a template of the package, or a custom one.
TemplateId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
SiteConfig = Annotated[dict[str, Any], Json(), max_json_bytes(MAX_CONFIG_BYTES)]
Body = Annotated[str, Field(max_length=MAX_BODY), BeforeValidator(clean_value)]
Summary = Annotated[str, Field(max_length=500), BeforeValidator(clean_value)]
Tag = Annotated[str, Field(min_length=1, max_length=50), BeforeValidator(clean_line)]


class Site(Entity, table=community, tag="SITE"):
    """A site of a user."""

    key = Key("USER#{did}", "SITE#{site_id}")
    by_subdomain = Key("SUBDOMAIN#{subdomain}", "{site_id}", index="GSI2")
    by_neighbourhood = Key("NBHD#{neighbourhood_id}", "{created_at:us}#{site_id}", index="GSI3")
    deletion = SoftDelete(
        grace=timedelta(days=DELETED_DAYS), cascade=("SiteOwner", "Post", "Build", "BuildLog")
    )

    did: Did
    site_id: Id = Field(default_factory=new_id)
    title: Title
    template: TemplateId
    status: SiteStatus = "draft"
    #: Normalised by `formats.names.normalise_subdomain`: a DNS label.
    subdomain: Annotated[str, Unique(normalise="exact")]
    #: Plain JSON (S2.18): author, accent colour and what the template's schema declares.
    config: SiteConfig = Field(default_factory=dict)
    #: The neighbourhood that shows the site.
    neighbourhood_id: Id | None = None
    #: The job of the build that readers see.
    live_job_id: Id | None = None
    #: The fencing token of the worker that published it; names its files.
    live_token: int | None = None
    built_at: datetime | None = None
    public_url: Link | None = None
    #: When the owner exported the site to close it (S2.25).
    exported_at: datetime | None = None
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_user(cls, did: str) -> Query[Self]:
        """The sites of a user (S2.15)."""
        return cls.key.query(did=did)

    @pattern
    @classmethod
    def with_subdomain(cls, subdomain: str) -> Query[Self]:
        """The site at a subdomain."""
        return cls.by_subdomain.query(subdomain=subdomain)

    @pattern
    @classmethod
    def of_neighbourhood(cls, neighbourhood_id: str) -> Query[Self]:
        """The sites that a neighbourhood shows, newest first."""
        return cls.by_neighbourhood.query(neighbourhood_id=neighbourhood_id).descending()


class SiteOwner(Entity, table=community, tag="SITE_OWNER"):
    """The owner of a site, by the id of the site alone (C2.8); created together with the site."""

    key = Key("SITE#{site_id}", "OWNER")

    site_id: Id
    did: Did


class Post(Entity, table=community, tag="POST"):
    """A post of a site; its key is a TID, so posts are in the order of their creation."""

    key = Key("SITE#{site_id}", "POST#{rkey}")
    by_site = Key("SITE#{site_id}", "{rkey}", index="GSI7")

    did: Did
    site_id: Id
    rkey: RecordKey
    title: Title
    #: The last part of the post's address.
    slug: Annotated[str, Field(min_length=1, max_length=100)]
    summary: Summary = ""
    #: Plain text with Markdown; the renderer escapes it.
    body: Body = ""
    status: PostStatus = "published"
    author: Line | None = None
    image: Link | None = None
    tags: Annotated[list[Tag], Field(max_length=20)] = Field(default_factory=list)
    published_at: datetime | None = None
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_site(cls, site_id: str) -> Query[Self]:
        """The posts of a site with their texts, newest first."""
        return cls.key.query(site_id=site_id).descending()

    @pattern
    @classmethod
    def listed(cls, site_id: str) -> Query[PostSummary]:
        """The posts of a site without their texts, newest first."""
        return cls.by_site.query(site_id=site_id).descending().select(PostSummary)


class PostSummary(BaseModel):
    """A post in a list."""

    site_id: str
    rkey: str
    title: str
    slug: str
    summary: str = ""
    status: PostStatus
    tags: list[str] = Field(default_factory=list)
    published_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 0
