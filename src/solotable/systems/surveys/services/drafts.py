"""What callers give: drafts of new things, and patches in which an absent field keeps its value."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from pydantic import Field

from solotable import new_id
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.access import MemberRole, TenantId, UserId
from solotable.systems.surveys.entities.files import Sha256
from solotable.systems.surveys.entities.library import Material, PhraseKind, TargetIds
from solotable.systems.surveys.entities.stored import Condition, Id
from solotable.systems.surveys.entities.surveys import Measurements, PhotoIds, PhraseIds, SurveyStatus
from solotable.systems.surveys.formats.texts import (
    Address,
    ClientName,
    Name,
    Notes,
    PhraseText,
    ShortText,
    Title,
)

Materials = Annotated[list[Material], Field(max_length=100)]


class SurveyDraft(Input):
    """A new survey. A client that works offline chooses the id."""

    survey_id: Id = Field(default_factory=new_id)
    title: Title = "Untitled"
    address: Address = ""
    client_name: ClientName = ""
    survey_date: date | None = None


class SurveyPatch(Input):
    """A change of a survey's metadata."""

    title: Title = "Untitled"
    address: Address = ""
    client_name: ClientName = ""
    survey_date: date | None = None
    status: SurveyStatus = "draft"


class SectionDraft(Input):
    """A new section; `after` is the section that it follows, by default the last one."""

    section_id: Id = Field(default_factory=new_id)
    name: Name
    notes: Notes = ""
    condition: Condition = "N/A"
    photos: PhotoIds = Field(default_factory=list)
    after: Id | None = None


class SectionPatch(Input):
    """A change of a section."""

    name: Name = "-"
    notes: Notes = ""
    condition: Condition = "N/A"
    photos: PhotoIds = Field(default_factory=list)
    completed_at: datetime | None = None
    completed_by: ShortText | None = None


class ElementDraft(Input):
    """A new element of a section."""

    element_id: Id = Field(default_factory=new_id)
    section_id: Id
    name: Name
    condition: Condition = "N/A"
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)
    measurements: Measurements = Field(default_factory=dict)
    after: Id | None = None


class ElementPatch(Input):
    """A change of an element."""

    name: Name = "-"
    condition: Condition = "N/A"
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)
    measurements: Measurements = Field(default_factory=dict)


class ComponentDraft(Input):
    """A new component of an element."""

    component_id: Id = Field(default_factory=new_id)
    element_id: Id
    name: Name
    material: ShortText = "Unknown"
    condition: Condition = "N/A"
    age: ShortText = "Unknown"
    last_maintenance: ShortText = ""
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)
    after: Id | None = None


class ComponentPatch(Input):
    """A change of a component."""

    name: Name = "-"
    material: ShortText = "Unknown"
    condition: Condition = "N/A"
    age: ShortText = "Unknown"
    last_maintenance: ShortText = ""
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)


class LibrarySectionDraft(Input):
    """A new section of the library."""

    section_id: Id = Field(default_factory=new_id)
    name: Name
    description: PhraseText = ""
    after: Id | None = None


class LibrarySectionPatch(Input):
    """A change of a section of the library."""

    name: Name = "-"
    description: PhraseText = ""


class LibraryElementDraft(Input):
    """A new element of the library."""

    element_id: Id = Field(default_factory=new_id)
    section_id: Id
    name: Name
    description: PhraseText = ""
    after: Id | None = None


class LibraryElementPatch(LibrarySectionPatch):
    """A change of an element of the library."""


class LibraryComponentDraft(Input):
    """A new component of the library."""

    component_id: Id = Field(default_factory=new_id)
    element_id: Id
    name: Name
    materials: Materials = Field(default_factory=list)
    after: Id | None = None


class LibraryComponentPatch(Input):
    """A change of a component of the library."""

    name: Name = "-"
    materials: Materials = Field(default_factory=list)


class PhraseDraft(Input):
    """A new phrase."""

    phrase_id: Id = Field(default_factory=new_id)
    kind: PhraseKind
    name: Name
    text: PhraseText
    level2: ShortText = ""
    element_ids: TargetIds = Field(default_factory=list)
    component_ids: TargetIds = Field(default_factory=list)
    material_ids: TargetIds = Field(default_factory=list)


class PhrasePatch(Input):
    """A change of a phrase."""

    kind: PhraseKind = "Defect"
    name: Name = "-"
    text: PhraseText = ""
    level2: ShortText = ""
    element_ids: TargetIds = Field(default_factory=list)
    component_ids: TargetIds = Field(default_factory=list)
    material_ids: TargetIds = Field(default_factory=list)


class ImageDraft(Input):
    """A new image, before its bytes are uploaded."""

    image_id: Id = Field(default_factory=new_id)
    sha256: Sha256
    name: Name
    caption: ShortText = ""
    mime: str
    size: Annotated[int, Field(ge=1)]


class ImagePatch(Input):
    """A change of an image."""

    name: Name = "-"
    caption: ShortText = ""


class TenantDraft(Input):
    """A new tenant."""

    id: TenantId
    name: Name


class TenantPatch(Input):
    """A change of a tenant."""

    name: Name = "-"


class MemberDraft(Input):
    """A new member of a tenant."""

    user_id: UserId
    name: Name
    role: MemberRole = "member"
