"""Input of callers: new entities, and patches that keep absent fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from solotable.systems.community.entities.neighbourhoods import NeighbourhoodSettings
from solotable.systems.community.entities.records import MAX_VALUE_BYTES
from solotable.systems.community.entities.sites import (
    MAX_CONFIG_BYTES,
    Body,
    PostStatus,
    Summary,
    Tag,
    TemplateId,
)
from solotable.systems.community.entities.users import ProfileImages
from solotable.systems.community.entities.values import (
    Bio,
    Id,
    Line,
    Link,
    Location,
    Privacy,
    RecordKey,
    RecordType,
    Text,
    Title,
)
from solotable.systems.formats.inputs import Input
from solotable.systems.formats.json_sizes import check_json_size


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def _no_posts(config: dict[str, Any]) -> dict[str, Any]:
    if "posts" in config:
        raise ValueError("must not have posts, which are stored one by one; add them as content of the site")
    return config


#: Any text; the service normalises it.
Name = Annotated[str, Field(min_length=1, max_length=400)]
Config = Annotated[
    dict[str, Any], AfterValidator(check_json_size(MAX_CONFIG_BYTES)), AfterValidator(_no_posts)
]
RecordValue = Annotated[dict[str, Any], AfterValidator(check_json_size(MAX_VALUE_BYTES))]
Tags = Annotated[list[Tag], Field(max_length=20)]


class ProfilePatch(Input):
    """A change of a profile; None removes an optional field. A login changes the handle, no user does."""

    display_name: Line = "-"
    bio: Bio = ""
    location: Location = ""
    website: Link | None = None
    profile_images: ProfileImages = Field(default_factory=ProfileImages)
    email: Annotated[str, Field(max_length=254)] | None = None


class NeighbourhoodDraft(Input):
    """A new neighbourhood; without a slug it is made from the name."""

    name: Line
    slug: Name | None = None
    description: Text = ""
    privacy: Privacy = "public"
    settings: NeighbourhoodSettings = Field(default_factory=NeighbourhoodSettings)


class NeighbourhoodPatch(Input):
    """A change of a neighbourhood. The slug stays when the name changes."""

    name: Line = "-"
    slug: Name = "-"
    description: Text = ""
    privacy: Privacy = "public"
    settings: NeighbourhoodSettings = Field(default_factory=NeighbourhoodSettings)


class SiteDraft(Input):
    """A new site; without a subdomain it is made from the title."""

    title: Title
    template: TemplateId
    subdomain: Name | None = None
    config: Config = Field(default_factory=dict)
    neighbourhood_id: Id | None = None


class SitePatch(Input):
    """A change of a site."""

    title: Title = "-"
    template: TemplateId = "-"
    subdomain: Name = "-"
    config: Config = Field(default_factory=dict)
    neighbourhood_id: Id | None = None


class PostDraft(Input):
    """A new post; without a slug it is made from the title."""

    title: Title
    slug: Name | None = None
    summary: Summary = ""
    body: Body = ""
    status: PostStatus = "published"
    author: Line | None = None
    image: Link | None = None
    tags: Tags = Field(default_factory=list)


class PostPatch(Input):
    """A change of a post."""

    title: Title = "-"
    slug: Name = "-"
    summary: Summary = ""
    body: Body = ""
    status: PostStatus = "published"
    author: Line | None = None
    image: Link | None = None
    tags: Tags = Field(default_factory=list)


class RecordDraft(Input):
    """A new record; without a record key it gets a TID."""

    type: RecordType
    rkey: RecordKey | None = None
    value: RecordValue
