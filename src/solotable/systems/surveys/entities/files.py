"""Images and documents: metadata here, bytes in a storage.

Corrections of the written design:

- An image is found by its SHA-256, which is unique in a tenant, so the same photo is stored once.
- Each photo of a part is an `ImageUse`, written in the transaction of the part: it says where an image is
  shown, lists the photos of a survey, and keeps an image that is shown from being deleted.
- C4.18: the key of a document is derived from the tenant of the caller, never taken from the request.
- A document keeps its newest ten versions; the bodies of the others are removed from the storage.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Entity, History, Key, Query, SoftDelete, Unique, new_id, pattern
from solotable.systems.surveys.formats.texts import Name, ShortText
from solotable.systems.surveys.table import OF_TENANT, surveyor

from .stored import Id, Stored
from .surveys import PartKind

FileStatus = Literal["pending", "stored"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
MAX_DOCUMENT_BYTES = 10_000_000
MAX_IMAGE_BYTES = 25_000_000
KEPT_VERSIONS = 10


class Image(Stored, table=surveyor):
    """A photo; its bytes and its thumbnail are in the storage."""

    key = Key(OF_TENANT, "IMAGE#{image_id}")
    by_type = Key("TENANT#{tenant_id}#TYPE#IMAGE", "{image_id}", index="GSI1")
    by_time = Key(OF_TENANT, "{updated:us}#IMAGE#{image_id}", index="GSI4")
    deletion = SoftDelete(grace=timedelta(days=30))

    image_id: Id = Field(default_factory=new_id)
    sha256: Annotated[Sha256, Unique()]
    name: Name
    caption: ShortText = ""
    mime: str
    size: Annotated[int, Field(ge=0, le=MAX_IMAGE_BYTES)]
    width: int = 0
    height: int = 0
    status: FileStatus = "pending"
    has_thumbnail: bool = False

    @property
    def storage_key(self) -> str:
        """The storage key of the bytes."""
        return f"{self.tenant_id}/images/{self.image_id}"

    @property
    def thumbnail_key(self) -> str:
        """The storage key of the thumbnail."""
        return f"{self.tenant_id}/thumbnails/{self.image_id}"

    @pattern
    @classmethod
    def listed(cls) -> Query[ImageSummary]:
        """The images of a tenant, newest first (Q7)."""
        return cls.by_type.query().descending().select(ImageSummary)


class ImageSummary(BaseModel):
    """An image in a list."""

    image_id: str
    name: str
    caption: str = ""
    mime: str
    size: int
    status: FileStatus
    created: datetime | None = None
    version: int = 0


class ImageUse(Entity, table=surveyor):
    """A photo of a part of a survey."""

    key = Key(OF_TENANT, "IMAGEUSE#{image_id}#{survey_id}#{part_kind}#{part_id}")
    by_survey = Key(
        "TENANT#{tenant_id}#SURVEY#{survey_id}", "PHOTO#{part_kind}#{part_id}#{image_id}", index="GSI2"
    )

    tenant_id: str = FROM_SCOPE
    image_id: Id
    survey_id: Id
    part_kind: PartKind
    part_id: Id

    @pattern
    @classmethod
    def of_image(cls, image_id: str) -> Query[Self]:
        """Where an image is shown."""
        return cls.key.query(image_id=image_id)

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The photos of a survey."""
        return cls.by_survey.query(survey_id=survey_id)


class Document(Stored, table=surveyor):
    """The newest version of a document; its body is in the storage (S4.35)."""

    key = Key("TENANT#{tenant_id}#DOCUMENT#{document_id}", "LATEST")
    by_type = Key("TENANT#{tenant_id}#TYPE#DOCUMENT", "{document_id}", index="GSI1")
    by_time = Key(OF_TENANT, "{updated:us}#DOCUMENT#{document_id}", index="GSI4")
    by_owner = Key("TENANT#{tenant_id}#USER#{owner}", "DOCUMENT#{document_id}", index="GSI5")
    history = History("V{version:06d}", keep=KEPT_VERSIONS - 1)

    document_id: Id = Field(default_factory=new_id)
    name: Name
    mime: str
    size: Annotated[int, Field(ge=0, le=MAX_DOCUMENT_BYTES)]
    owner: str
    #: The storage key of the body of this version.
    body_id: Id = Field(default_factory=new_id)
    sha256: Sha256

    @property
    def storage_key(self) -> str:
        """The storage key of the body of this version."""
        return f"{self.tenant_id}/documents/{self.document_id}/{self.body_id}"

    @pattern
    @classmethod
    def listed(cls) -> Query[DocumentSummary]:
        """The documents of a tenant, newest first."""
        return cls.by_type.query().descending().select(DocumentSummary)

    @pattern
    @classmethod
    def of_owner(cls, owner: str) -> Query[DocumentSummary]:
        """The documents of a user."""
        return cls.by_owner.query(owner=owner).select(DocumentSummary)


class DocumentSummary(BaseModel):
    """A document in a list."""

    document_id: str
    name: str
    mime: str
    size: int
    owner: str
    updated: datetime | None = None
    version: int = 0
