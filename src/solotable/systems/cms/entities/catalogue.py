"""The catalogue: products, assets, resources, contexts and signals (S0.6, S0.9).

Products and contexts hold long texts, so `GSI_Type` lists them; the others are small, and a prefix of their
key lists them. A product is also found by its slug. An index does not make a slug unique (C0.10), so the slug
is a separate item in the product's transaction. Assets and resources have metadata here, and bytes in a
storage.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import (
    FROM_SCOPE,
    Created,
    Entity,
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

ProductStatus = Literal["draft", "active", "archived"]
SignalStatus = Literal["new", "seen", "done"]
ProductSlug = Annotated[str, Field(min_length=1, max_length=300)]
FileStatus = Literal["pending", "stored"]
Gate = Literal["lead", "purchase"]


class Product(Entity, table=cms):
    """A product for sale."""

    key = Key(OF_TENANT, "PRODUCT#{product_id}")
    by_type = Key("TENANT#{tenant_id}#TYPE#PRODUCT", "{product_id}", index="GSI_Type")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "PRODUCT#{product_id}", index="GSI_Status")
    events = Outbox(title="title", snapshot=("title", "status", "price", "currency"))

    tenant_id: str = FROM_SCOPE
    product_id: str = Field(default_factory=new_id)
    #: The name in URLs; a `ProductRoute` finds the product by it. Products of earlier versions have none.
    slug: ProductSlug | None = None
    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=100_000)] = ""
    price: Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=2)] = Decimal(0)
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "EUR"
    status: ProductStatus = "draft"
    data: Annotated[dict[str, Any], max_json_bytes(20_000), Json()] = Field(default_factory=dict)
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def listed(cls) -> Query[ProductSummary]:
        """The products of a tenant, newest first, without their descriptions."""
        return cls.by_type.query().descending().select(ProductSummary)

    @pattern
    @classmethod
    def in_status(cls, status: ProductStatus) -> Query[ProductSummary]:
        """The products in a status."""
        return cls.by_status.query(status=status).select(ProductSummary)


class ProductSummary(BaseModel):
    """A product in a list."""

    product_id: str
    slug: str | None = None
    title: str
    price: Decimal
    currency: str
    status: ProductStatus
    version: int = 0


class ProductRoute(Entity, table=cms):
    """The product of a slug; the former slugs of a product redirect to it."""

    key = Key(OF_TENANT, "PRODUCTSLUG#{slug}")
    names = Names("slug")

    tenant_id: str = FROM_SCOPE
    slug: ProductSlug
    product_id: str
    version: Annotated[int, Version()] = 0


class Context(Entity, table=cms):
    """A text for writers: a brand's voice, a persona, a strategy."""

    key = Key(OF_TENANT, "CONTEXT#{context_id}")
    by_type = Key("TENANT#{tenant_id}#TYPE#CONTEXT", "{context_id}", index="GSI_Type")
    events = Outbox(title="title", snapshot=("title", "kind"))

    tenant_id: str = FROM_SCOPE
    context_id: str = Field(default_factory=new_id)
    title: Annotated[str, Field(min_length=1, max_length=200)]
    kind: Annotated[str, Field(max_length=100)] = "note"
    text: Annotated[str, Field(max_length=100_000)] = ""
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def listed(cls) -> Query[ContextSummary]:
        """The contexts of a tenant, newest first, without their texts."""
        return cls.by_type.query().descending().select(ContextSummary)


class ContextSummary(BaseModel):
    """A context in a list."""

    context_id: str
    title: str
    kind: str
    version: int = 0


class Asset(Entity, table=cms):
    """A public image or video; its bytes are in the storage under `storage_key`."""

    key = Key(OF_TENANT, "ASSET#{asset_id}")
    events = Outbox(title="name", snapshot=("name", "mime", "size"))

    tenant_id: str = FROM_SCOPE
    asset_id: str = Field(default_factory=new_id)
    name: Annotated[str, Field(min_length=1, max_length=255)]
    mime: str
    size: Annotated[int, Field(ge=0)]
    status: FileStatus = "pending"
    alt: Annotated[str, Field(max_length=1000)] = ""
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0

    @property
    def storage_key(self) -> str:
        """The storage key of the bytes, made from ids, never from the file's name."""
        return f"{self.tenant_id}/assets/{self.asset_id}"

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The assets of a tenant with all attributes, for an erasure."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[AssetSummary]:
        """The assets of a tenant, newest first."""
        return cls.key.query().descending().select(AssetSummary)


class AssetSummary(BaseModel):
    """An asset in a list."""

    asset_id: str
    name: str
    mime: str
    size: int
    status: FileStatus
    alt: str = ""
    created: datetime | None = None
    version: int = 0


class Resource(Entity, table=cms):
    """A file for leads or buyers; its bytes are in the storage under `storage_key`."""

    key = Key(OF_TENANT, "RESOURCE#{resource_id}")
    events = Outbox(title="name", snapshot=("name", "mime", "size", "gate"))

    tenant_id: str = FROM_SCOPE
    resource_id: str = Field(default_factory=new_id)
    name: Annotated[str, Field(min_length=1, max_length=255)]
    mime: str
    size: Annotated[int, Field(ge=0)]
    status: FileStatus = "pending"
    gate: Gate = "lead"
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0

    @property
    def storage_key(self) -> str:
        """The storage key of the bytes, made from ids, never from the file's name."""
        return f"{self.tenant_id}/resources/{self.resource_id}"

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The resources of a tenant with all attributes, for an erasure."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[ResourceSummary]:
        """The resources of a tenant, newest first."""
        return cls.key.query().descending().select(ResourceSummary)


class ResourceSummary(BaseModel):
    """A resource in a list."""

    resource_id: str
    name: str
    mime: str
    size: int
    status: FileStatus
    gate: Gate
    created: datetime | None = None
    version: int = 0


class Signal(Entity, table=cms):
    """An observation that may be worth a page."""

    key = Key(OF_TENANT, "SIGNAL#{signal_id}")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "SIGNAL#{signal_id}", index="GSI_Status")
    events = Outbox(title="title", snapshot=("title", "source", "status"))

    tenant_id: str = FROM_SCOPE
    signal_id: str = Field(default_factory=new_id)
    title: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[str, Field(max_length=400)] = ""
    status: SignalStatus = "new"
    data: Annotated[dict[str, Any], max_json_bytes(20_000), Json()] = Field(default_factory=dict)
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[SignalSummary]:
        """The signals of a tenant, newest first."""
        return cls.key.query().descending().select(SignalSummary)

    @pattern
    @classmethod
    def in_status(cls, status: SignalStatus) -> Query[SignalSummary]:
        """The signals in a status."""
        return cls.by_status.query(status=status).select(SignalSummary)


class SignalSummary(BaseModel):
    """A signal in a list."""

    signal_id: str
    title: str
    source: str = ""
    status: SignalStatus
    created: datetime | None = None
    version: int = 0
