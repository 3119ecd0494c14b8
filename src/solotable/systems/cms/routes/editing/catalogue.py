"""`/products`, `/context`, `/signals`: the catalogue; active products are public."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from solotable import Redirect
from solotable.systems.cms.entities import (
    Context,
    ContextSummary,
    Product,
    ProductStatus,
    ProductSummary,
    Signal,
    SignalStatus,
    SignalSummary,
)
from solotable.systems.cms.routes.access import ADMINS, EDITORS, READERS
from solotable.systems.cms.routes.dependencies import ActiveStore
from solotable.systems.cms.services import (
    ContextDraft,
    Contexts,
    ProductDraft,
    Products,
    SignalDraft,
    Signals,
)
from solotable.systems.routes import PUBLIC, ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.web import HostStore, Page, Paging

#: Letters of every script, as in the paths of pages.
SlugOrId = Annotated[str, Path(min_length=1, max_length=300, examples=["blue-mug"])]
RESPONSES: dict[int | str, dict[str, Any]] = {301: {"description": "The product has another slug now."}}
Title = Annotated[str, Field(min_length=1, max_length=200)]
router = APIRouter(tags=["catalogue"], route_class=JsonRoute)


def changes_of(body: BaseModel) -> dict[str, Any]:
    """Return the given fields; an absent field keeps its value."""
    return {name: getattr(body, name) for name in body.model_fields_set}


class ProductChange(ProductDraft):
    """A change of a product; an absent field keeps its value."""

    title: Title = ""


class ContextChange(ContextDraft):
    """A change of a context; an absent field keeps its value."""

    title: Title = ""


class SignalChange(SignalDraft):
    """A change of a signal; an absent field keeps its value."""

    title: Title = ""


@router.get("/products", **allow(*READERS))
async def list_products(
    store: ActiveStore,
    paging: Paging,
    status: Annotated[ProductStatus | None, Query(description="Only products in this status.")] = None,
) -> Page[ProductSummary]:
    """List products, newest first, without their descriptions."""
    products = Products(store)
    if status is None:
        found = await products.list(limit=paging.limit, cursor=paging.cursor)
    else:
        found = await products.in_status(status, limit=paging.limit, cursor=paging.cursor)
    return Page[ProductSummary].of(found)


@router.post("/products", status_code=201, **allow(*EDITORS))
async def create_product(draft: ProductDraft, store: ActiveStore, response: Response) -> Product:
    """Create a product; 409 if another product has the slug."""
    return set_etag(response, await Products(store).create(draft))


@router.get("/products/{product_id}", **allow(*READERS))
async def get_product(product_id: Id, store: ActiveStore, response: Response) -> Product:
    """Return a product."""
    return set_etag(response, await Products(store).get(product_id))


@router.put("/products/{product_id}", **allow(*EDITORS))
async def update_product(
    product_id: Id, body: ProductChange, store: ActiveStore, version: ExpectedVersion, response: Response
) -> Product:
    """Change the given fields."""
    return set_etag(response, await Products(store).update(product_id, changes_of(body), version=version))


@router.delete("/products/{product_id}", status_code=204, **allow(*EDITORS))
async def delete_product(product_id: Id, store: ActiveStore, version: ExpectedVersion) -> None:
    """Delete a product."""
    await Products(store).delete(product_id, version=version)


@router.get("/public/products", **PUBLIC)
async def list_active_products(store: HostStore, paging: Paging) -> Page[ProductSummary]:
    """List the active products of the site."""
    found = await Products(store).in_status("active", limit=paging.limit, cursor=paging.cursor)
    return Page[ProductSummary].of(found)


@router.get("/public/products/{slug}", response_model=Product, responses=RESPONSES, **PUBLIC)
async def get_active_product(slug: SlugOrId, store: HostStore) -> Product | Response:
    """Return an active product of the site by slug or id; a former slug is a 301."""
    products = Products(store)
    found = await products.by_slug(slug)
    if isinstance(found, Redirect):
        # A redirect must not reveal the slug of a product that is not for sale.
        target = await products.by_slug(found.to)
        if isinstance(target, Product) and target.status == "active":
            headers = {"cache-control": "public, max-age=60"}
            return RedirectResponse(f"/public/products/{quote(found.to)}", status_code=301, headers=headers)
        found = None
    if found is None:
        found = await store.get(Product, product_id=slug)
    if found is None or found.status != "active":
        raise HTTPException(404, "The item does not exist.")
    return found


@router.get("/products/by-slug/{slug}", **allow(*READERS))
async def get_product_by_slug(slug: SlugOrId, store: ActiveStore, response: Response) -> Product:
    """Return a product by its slug, or by a former one."""
    products = Products(store)
    found = await products.by_slug(slug)
    if isinstance(found, Redirect):
        found = await products.by_slug(found.to)
    if not isinstance(found, Product):
        raise HTTPException(404, "The item does not exist.")
    return set_etag(response, found)


@router.get("/context", **allow(*EDITORS))
async def list_contexts(store: ActiveStore, paging: Paging) -> Page[ContextSummary]:
    """List contexts, newest first, without their texts."""
    return Page[ContextSummary].of(await Contexts(store).list(limit=paging.limit, cursor=paging.cursor))


@router.post("/context", status_code=201, **allow(*EDITORS))
async def create_context(draft: ContextDraft, store: ActiveStore, response: Response) -> Context:
    """Create a context."""
    return set_etag(response, await Contexts(store).create(draft))


@router.get("/context/{context_id}", **allow(*EDITORS))
async def get_context(context_id: Id, store: ActiveStore, response: Response) -> Context:
    """Return a context."""
    return set_etag(response, await Contexts(store).get(context_id))


@router.put("/context/{context_id}", **allow(*EDITORS))
async def update_context(
    context_id: Id, body: ContextChange, store: ActiveStore, version: ExpectedVersion, response: Response
) -> Context:
    """Change the given fields."""
    return set_etag(response, await Contexts(store).update(context_id, changes_of(body), version=version))


@router.delete("/context/{context_id}", status_code=204, **allow(*EDITORS))
async def delete_context(context_id: Id, store: ActiveStore, version: ExpectedVersion) -> None:
    """Delete a context."""
    await Contexts(store).delete(context_id, version=version)


@router.get("/signals", **allow(*ADMINS))
async def list_signals(
    store: ActiveStore,
    paging: Paging,
    status: Annotated[SignalStatus | None, Query(description="Only signals in this status.")] = None,
) -> Page[SignalSummary]:
    """List signals, newest first, or those in a status."""
    signals = Signals(store)
    if status is None:
        return Page[SignalSummary].of(await signals.list(limit=paging.limit, cursor=paging.cursor))
    return Page[SignalSummary].of(await signals.inbox(status, limit=paging.limit, cursor=paging.cursor))


@router.post("/signals", status_code=201, **allow(*ADMINS))
async def create_signal(draft: SignalDraft, store: ActiveStore, response: Response) -> Signal:
    """Create a signal."""
    return set_etag(response, await Signals(store).create(draft))


@router.put("/signals/{signal_id}", **allow(*ADMINS))
async def update_signal(
    signal_id: Id, body: SignalChange, store: ActiveStore, version: ExpectedVersion, response: Response
) -> Signal:
    """Change the given fields, such as the status."""
    return set_etag(response, await Signals(store).update(signal_id, changes_of(body), version=version))
