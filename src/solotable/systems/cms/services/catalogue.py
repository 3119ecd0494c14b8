"""Products, contexts and signals: create, change, list and delete them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from solotable import ANY, AsyncStore, Page, Query, Redirect
from solotable.errors import DataError
from solotable.systems.cms.entities.catalogue import (
    Context,
    ContextSummary,
    Product,
    ProductRoute,
    ProductStatus,
    ProductSummary,
    Signal,
    SignalStatus,
    SignalSummary,
)
from solotable.systems.cms.errors import SlugTaken, unwrap_slug_failure
from solotable.systems.cms.formats.slugs import product_slug
from solotable.systems.errors import InvalidInput, unwrap_failure, validate

EntityT = TypeVar("EntityT", bound=Product | Context | Signal)
RowT = TypeVar("RowT", bound=BaseModel)


class ProductDraft(BaseModel):
    """A new product; in a change, absent fields keep their values."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)]
    #: Without one it is made from the title.
    slug: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    description: Annotated[str, Field(max_length=100_000)] = ""
    price: Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=2)] = Decimal(0)
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "EUR"
    status: ProductStatus = "draft"
    data: dict[str, Any] = {}


class ContextDraft(BaseModel):
    """A new context."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)]
    kind: Annotated[str, Field(max_length=100)] = "note"
    text: Annotated[str, Field(max_length=100_000)] = ""


class SignalDraft(BaseModel):
    """A new signal."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[str, Field(max_length=400)] = ""
    status: SignalStatus = "new"
    data: dict[str, Any] = {}


class _Catalogue(Generic[EntityT]):
    """The verbs of entities with an id and no related items."""

    def __init__(
        self, store: AsyncStore, entity: type[EntityT], id_field: str, draft: type[BaseModel]
    ) -> None:
        self._store = store
        self._entity = entity
        self._id = id_field
        self._fields = frozenset(draft.model_fields)

    async def create(self, draft: BaseModel) -> EntityT:
        """Create an entity."""
        return await self._store.create(validate(self._entity, **draft.model_dump()))

    async def get(self, id: str) -> EntityT:  # noqa: A002 - the services' name for an entity's id
        """Return an entity, or raise NotFound."""
        return await self._store.require(self._entity, **self._key(id))

    async def update(self, id: str, changes: dict[str, Any], *, version: int | None = None) -> EntityT:  # noqa: A002
        """Change the given fields."""
        if not changes:
            return await self.get(id)
        if unknown := sorted(set(changes) - self._fields):
            raise InvalidInput(f"{self._entity.__name__}.{unknown[0]} cannot be changed.")
        expected = ANY if version is None else version
        return await self._store.update(self._entity, version=expected, set=changes, **self._key(id))

    async def delete(self, id: str, *, version: int | None = None) -> None:  # noqa: A002
        """Delete an entity, or raise NotFound."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        expected = found.version if version is None else version
        await self._store.delete(self._entity, version=expected, **self._key(id))

    def _key(self, id: str) -> dict[str, Any]:  # noqa: A002
        return {self._id: id}

    async def _page(self, query: Query[RowT], limit: int, cursor: str | None) -> Page[RowT]:
        return await self._store.page(query, limit=limit, cursor=cursor)


class Products(_Catalogue[Product]):
    """The products of one tenant, each with a route for its slug."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(store, Product, "product_id", ProductDraft)

    async def create(self, draft: BaseModel) -> Product:
        """Create a product and its route, or raise SlugTaken for a given slug."""
        fields = dict(draft)
        product = validate(Product, **{**fields, "slug": None})
        if fields["slug"] is not None:
            return await self._create(product, product_slug(fields["slug"]))
        try:
            return await self._create(product, _slug_of(product))
        except SlugTaken:
            return await self._create(product, f"{_slug_of(product)}-{product.product_id[-8:].lower()}")

    async def _create(self, product: Product, slug: str) -> Product:
        with unwrap_slug_failure(slug):
            async with self._store.transaction() as tx:
                created = tx.create(product.model_copy(update={"slug": slug}))
                tx.create(ProductRoute(slug=slug, product_id=product.product_id))
        return created

    async def by_slug(self, slug: str) -> Product | Redirect[ProductRoute] | None:
        """Return the product with a slug, the redirect of a former slug, or None."""
        try:
            name = product_slug(slug)
        except DataError:  # no product can have such a slug
            return None
        found = await self._store.names(ProductRoute).resolve(name, follow=True) if name else None
        if found is None or isinstance(found, Redirect):
            return found
        return await self._store.get(Product, product_id=found.product_id)

    async def update(self, id: str, changes: dict[str, Any], *, version: int | None = None) -> Product:  # noqa: A002
        """Change the given fields; a new slug leaves a redirect at the old one."""
        slug = changes.get("slug")
        if slug is None:
            rest = {name: value for name, value in changes.items() if name != "slug"}
            return await super().update(id, rest, version=version)
        return await self._move(id, {**changes, "slug": product_slug(slug)}, version)

    async def _move(self, id: str, changes: dict[str, Any], version: int | None) -> Product:  # noqa: A002
        current = await self._store.require(Product, product_id=id, consistent=True)
        if changes["slug"] == current.slug:
            return await super().update(id, changes, version=version)
        expected = current.version if version is None else version
        with unwrap_slug_failure(changes["slug"]):
            async with self._store.transaction() as tx:
                tx.update(Product, product_id=id, version=expected, set=changes)
                if current.slug is None:
                    tx.create(ProductRoute(slug=changes["slug"], product_id=id))
                else:
                    names = self._store.names(ProductRoute)
                    tx.include(names.renaming(current.slug, to=changes["slug"], version=ANY))
        return await self._store.require(Product, product_id=id, consistent=True)

    async def delete(self, id: str, *, version: int | None = None) -> None:  # noqa: A002
        """Delete a product, its route and its redirects, or raise NotFound."""
        found = await self._store.require(Product, product_id=id, consistent=True)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                tx.delete(Product, product_id=id, version=found.version if version is None else version)
                if found.slug is not None:
                    tx.delete(ProductRoute, slug=found.slug, version=ANY)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ProductSummary]:
        """Return products, newest first, without their descriptions."""
        return await self._page(Product.listed(), limit, cursor)

    async def in_status(
        self, status: ProductStatus, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ProductSummary]:
        """Return the products in a status."""
        return await self._page(Product.in_status(status), limit, cursor)


def _slug_of(product: Product) -> str:
    """Return the slug of a title; the id for a title without letters or digits."""
    try:
        return product_slug(product.title) or product.product_id.lower()
    except DataError:
        return product.product_id.lower()


class Contexts(_Catalogue[Context]):
    """The contexts of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(store, Context, "context_id", ContextDraft)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ContextSummary]:
        """Return contexts, newest first, without their texts."""
        return await self._page(Context.listed(), limit, cursor)


class Signals(_Catalogue[Signal]):
    """The signals of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        super().__init__(store, Signal, "signal_id", SignalDraft)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[SignalSummary]:
        """Return signals, newest first."""
        return await self._page(Signal.of_tenant(), limit, cursor)

    async def inbox(
        self, status: SignalStatus = "new", *, limit: int = 50, cursor: str | None = None
    ) -> Page[SignalSummary]:
        """Return the signals in a status."""
        return await self._page(Signal.in_status(status), limit, cursor)
