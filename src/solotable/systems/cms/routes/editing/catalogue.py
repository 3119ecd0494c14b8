"""`/products`, `/context`, `/signals`: what pages are made with; and the active products for everybody."""

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
from solotable.systems.cms.routes.access import ADMINS, EDITORS, PUBLIC, READERS, allow
from solotable.systems.cms.routes.body_limits import JsonRoute
from solotable.systems.cms.routes.dependencies import Expected, Id, SiteStore, tagged
from solotable.systems.cms.services import (
    ContextDraft,
    Contexts,
    ProductDraft,
    Products,
    SignalDraft,
    Signals,
)
from solotable.web import HostStore, Page, Paging

#: Letters of every script, as paths of pages have them.
SlugOrId = Annotated[str, Path(min_length=1, max_length=300, examples=["blue-mug"])]
MOVED: dict[int | str, dict[str, Any]] = {301: {"description": "The product has another slug now."}}
Title = Annotated[str, Field(min_length=1, max_length=200)]
router = APIRouter(tags=["catalogue"], route_class=JsonRoute)


def changes_of(body: BaseModel) -> dict[str, Any]:
    """Return the fields that were given: a field that is absent stays as it is."""
    return {name: getattr(body, name) for name in body.model_fields_set}


class ProductChange(ProductDraft):
    """A change of a product; what is not given stays as it is."""

    title: Title = ""


class ContextChange(ContextDraft):
    """A change of a context; what is not given stays as it is."""

    title: Title = ""


class SignalChange(SignalDraft):
    """A change of a signal; what is not given stays as it is."""

    title: Title = ""


@router.get("/products", **allow(*READERS))
async def list_products(
    store: SiteStore,
    paging: Paging,
    status: Annotated[ProductStatus | None, Query(description="Only these.")] = None,
) -> Page[ProductSummary]:
    """List products, newest first, without their descriptions."""
    products = Products(store)
    if status is None:
        found = await products.list(limit=paging.limit, cursor=paging.cursor)
    else:
        found = await products.in_status(status, limit=paging.limit, cursor=paging.cursor)
    return Page[ProductSummary].of(found)


@router.post("/products", status_code=201, **allow(*EDITORS))
async def create_product(draft: ProductDraft, store: SiteStore, response: Response) -> Product:
    """Make a product."""
    return tagged(response, await Products(store).create(draft))


@router.get("/products/{product_id}", **allow(*READERS))
async def get_product(product_id: Id, store: SiteStore, response: Response) -> Product:
    """Return a product."""
    return tagged(response, await Products(store).get(product_id))


@router.put("/products/{product_id}", **allow(*EDITORS))
async def update_product(
    product_id: Id, body: ProductChange, store: SiteStore, version: Expected, response: Response
) -> Product:
    """Change the fields that are given."""
    return tagged(response, await Products(store).update(product_id, changes_of(body), version=version))


@router.delete("/products/{product_id}", status_code=204, **allow(*EDITORS))
async def delete_product(product_id: Id, store: SiteStore, version: Expected) -> None:
    """Delete a product."""
    await Products(store).delete(product_id, version=version)


@router.get("/public/products", **PUBLIC)
async def list_active_products(store: HostStore, paging: Paging) -> Page[ProductSummary]:
    """List the active products of the site."""
    found = await Products(store).in_status("active", limit=paging.limit, cursor=paging.cursor)
    return Page[ProductSummary].of(found)


@router.get("/public/products/{slug}", response_model=Product, responses=MOVED, **PUBLIC)
async def get_active_product(slug: SlugOrId, store: HostStore) -> Product | Response:
    """Return an active product of the site by its slug, or by its id; a former slug is a 301."""
    products = Products(store)
    found = await products.by_slug(slug)
    if isinstance(found, Redirect):
        # A redirect must not tell the slug of a product that is not for sale.
        there = await products.by_slug(found.to)
        if isinstance(there, Product) and there.status == "active":
            headers = {"cache-control": "public, max-age=60"}
            return RedirectResponse(f"/public/products/{quote(found.to)}", status_code=301, headers=headers)
        found = None
    if found is None:
        found = await store.get(Product, product_id=slug)
    if found is None or found.status != "active":
        raise HTTPException(404, "There is no such item.")
    return found


@router.get("/products/by-slug/{slug}", **allow(*READERS))
async def get_product_by_slug(slug: SlugOrId, store: SiteStore, response: Response) -> Product:
    """Return a product by its slug, or by one that it had before."""
    products = Products(store)
    found = await products.by_slug(slug)
    if isinstance(found, Redirect):
        found = await products.by_slug(found.to)
    if not isinstance(found, Product):
        raise HTTPException(404, "There is no such item.")
    return tagged(response, found)


@router.get("/context", **allow(*EDITORS))
async def list_contexts(store: SiteStore, paging: Paging) -> Page[ContextSummary]:
    """List contexts, newest first, without their texts."""
    return Page[ContextSummary].of(await Contexts(store).list(limit=paging.limit, cursor=paging.cursor))


@router.post("/context", status_code=201, **allow(*EDITORS))
async def create_context(draft: ContextDraft, store: SiteStore, response: Response) -> Context:
    """Make a context."""
    return tagged(response, await Contexts(store).create(draft))


@router.get("/context/{context_id}", **allow(*EDITORS))
async def get_context(context_id: Id, store: SiteStore, response: Response) -> Context:
    """Return a context."""
    return tagged(response, await Contexts(store).get(context_id))


@router.put("/context/{context_id}", **allow(*EDITORS))
async def update_context(
    context_id: Id, body: ContextChange, store: SiteStore, version: Expected, response: Response
) -> Context:
    """Change the fields that are given."""
    return tagged(response, await Contexts(store).update(context_id, changes_of(body), version=version))


@router.delete("/context/{context_id}", status_code=204, **allow(*EDITORS))
async def delete_context(context_id: Id, store: SiteStore, version: Expected) -> None:
    """Delete a context."""
    await Contexts(store).delete(context_id, version=version)


@router.get("/signals", **allow(*ADMINS))
async def list_signals(
    store: SiteStore,
    paging: Paging,
    status: Annotated[SignalStatus | None, Query(description="Only these: the inbox.")] = None,
) -> Page[SignalSummary]:
    """List signals, newest first, or those in a status."""
    signals = Signals(store)
    if status is None:
        return Page[SignalSummary].of(await signals.list(limit=paging.limit, cursor=paging.cursor))
    return Page[SignalSummary].of(await signals.inbox(status, limit=paging.limit, cursor=paging.cursor))


@router.post("/signals", status_code=201, **allow(*ADMINS))
async def create_signal(draft: SignalDraft, store: SiteStore, response: Response) -> Signal:
    """Note a signal."""
    return tagged(response, await Signals(store).create(draft))


@router.put("/signals/{signal_id}", **allow(*ADMINS))
async def update_signal(
    signal_id: Id, body: SignalChange, store: SiteStore, version: Expected, response: Response
) -> Signal:
    """Change the fields that are given, such as the status."""
    return tagged(response, await Signals(store).update(signal_id, changes_of(body), version=version))
