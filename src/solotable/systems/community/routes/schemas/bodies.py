"""Bodies of requests and responses that no service has."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, Field, model_validator

from solotable.systems.community.builds.templates.manifest import SiteTemplate
from solotable.systems.community.entities.builds import (
    Build,
    BuildStatus,
    BuildSummary,
    BuildTrigger,
    LogLevel,
    TemplateStatus,
)
from solotable.systems.community.entities.neighbourhoods import Membership
from solotable.systems.community.entities.values import Did, MemberStatus, Role
from solotable.systems.community.services.users import OwnProfile
from solotable.systems.formats.inputs import Input


class JoinResult(BaseModel):
    """Where a user stands in a neighbourhood."""

    neighbourhood_id: str
    did: str
    role: Role
    status: MemberStatus
    joined_at: datetime | None = None

    @classmethod
    def of(cls, member: Membership) -> JoinResult:
        """Return the body of a membership."""
        return cls(
            neighbourhood_id=member.neighbourhood_id,
            did=member.user_did,
            role=member.role,
            status=member.status,
            joined_at=member.joined_at,
        )


class InvitationCode(Input):
    """The code of an invitation."""

    code: Annotated[str, Field(min_length=1, max_length=100)]


class MemberInvitation(Input):
    """A user to invite."""

    did: Did


class MemberChange(Input):
    """A new role, or the approval of a request."""

    role: Role | None = None
    status: Literal["active"] | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if self.role is None and self.status is None:
            raise ValueError("give a role or a status")
        return self


class InvitationDraft(Input):
    """The role that a code gives."""

    role: Literal["admin", "member"] = "member"


class InvitationSummary(BaseModel):
    """An invitation that is not used; `digest` names it."""

    digest: str
    role: Literal["admin", "member"]
    created_by: str
    created_at: datetime | None = None
    expires_at: datetime | None = None


class DidList(Input):
    """The users whose profiles are wanted."""

    dids: Annotated[list[Did], Field(min_length=1, max_length=100)]


class EmailAddress(Input):
    """An e-mail address to verify."""

    email: Annotated[str, Field(min_length=3, max_length=254)]


class EmailToken(Input):
    """The token of a message."""

    token: Annotated[str, Field(min_length=1, max_length=2000)]


class Health(BaseModel):
    """Whether the app answers."""

    status: Literal["ok"]


class BuildView(BaseModel):
    """A build as its owner sees it (S2.7)."""

    job_id: str
    site_id: str
    status: BuildStatus
    trigger: BuildTrigger
    stage: str | None = None
    #: Seconds of each stage that ended.
    stages: dict[str, float] = Field(default_factory=dict)
    error: str | None = None
    error_stage: str | None = None
    content_count: int | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_seconds: float | None = None
    log_url: str

    @classmethod
    def of(cls, build: Build | BuildSummary) -> BuildView:
        """Return the body of a build."""
        names = set(cls.model_fields) - {"duration_seconds", "log_url", "stages"}
        fields = {name: getattr(build, name) for name in names}
        if isinstance(build, Build):
            fields["stages"] = build.stages
        if build.started_at is not None and build.completed_at is not None:
            fields["duration_seconds"] = (build.completed_at - build.started_at).total_seconds()
        return cls(log_url=f"/api/sites/{build.site_id}/build/{build.job_id}/log", **fields)


class LogLine(BaseModel):
    """A line of a build's log."""

    number: int
    level: LogLevel
    stage: str | None = None
    text: str
    created_at: datetime | None = None


class SiteDocument(BaseModel):
    """A site and its posts, for a file under version control (S2.18)."""

    site: dict[str, Any]
    posts: list[dict[str, Any]]


class Prefill(BaseModel):
    """A config for a site's template, with what is known of its owner."""

    template: str
    config: dict[str, Any]


class TemplateView(BaseModel):
    """A template of sites."""

    template_id: str
    version: str
    title: str
    description: str
    layout: str
    content_types: list[str]

    @classmethod
    def of(cls, template_id: str, template: SiteTemplate) -> TemplateView:
        """Return the body of a template."""
        return cls(
            template_id=template_id,
            version=template.version,
            title=template.title,
            description=template.description,
            layout=template.layout,
            content_types=list(template.content_types),
        )


class TemplatePreview(BaseModel):
    """A site of the template with sample posts: its files, and the text of its front page."""

    template_id: str
    files: list[str]
    html: str


class TemplateManifest(Input):
    """The manifest of a custom template; its analysis says what is wrong with it."""

    manifest: dict[str, Any]


class CustomTemplateView(BaseModel):
    """A custom template, and where its analysis stands."""

    template_id: str
    name: str
    status: TemplateStatus
    problems: list[str]
    created_at: datetime | None = None


class RestoreRequest(Input):
    """The moment to restore; the newest one without it."""

    at: AwareDatetime | None = None
    #: The table to create.
    table: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{3,255}$")]


class DeletionTicket(BaseModel):
    """A deleted account: until when it can be recovered, and the id of the later receipt."""

    receipt_id: str
    requested_at: datetime
    due_at: datetime


class LoginResult(BaseModel):
    """A new session; send the token as `Authorization: Bearer`."""

    token: str
    expires_at: datetime
    did: str
    #: Whether the account was deleted, and can be recovered.
    deleted: bool


class Me(BaseModel):
    """The user of a session."""

    did: str
    #: Whether the account was deleted, and can be recovered.
    deleted: bool
    profile: OwnProfile | None
