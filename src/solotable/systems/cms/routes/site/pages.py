"""The public site: `GET /{path}` (a page, or 301), `sitemap.xml`, `robots.txt`, `health`.

The host name decides the site. The Accept header decides between JSON and HTML. Unpublished pages are a 404;
another spelling of a page's path redirects to the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from solotable.systems.cms.entities import Content, ContentKind
from solotable.systems.cms.formats.slugs import RESERVED
from solotable.systems.cms.routes.dependencies import clock_of
from solotable.systems.cms.services import PathRedirect, Routes, Tenants
from solotable.systems.cms.theme.brand import brand_css, is_colour
from solotable.systems.cms.theme.render import Theme
from solotable.systems.routes import PUBLIC, JsonRoute
from solotable.web import DatabaseDep, HostStore, HostTenantId, HostTenants, get_database, not_modified
from solotable.web.tenancy.dependencies import get_host_tenant_id

from .contact import SENT, FormRoute, send_message, show_sent
from .markup import url_path
from .page_html import CONTACT, html_page, site_of
from .previews import PARAMETER, show_preview
from .sitemaps import MAX_PARTS, sitemaps


class PagePath(Convertor[str]):
    """Paths that a page can have: all but those of the API.

    So the page route comes first, and a page is not matched against every route of the API.
    """

    regex = rf"(?!(?:{'|'.join(re.escape(each.replace('-', '.')) for each in sorted(RESERVED))})(?:/|$)).*"

    def convert(self, value: str) -> str:
        """Return the path as it is."""
        return value

    def to_string(self, value: str) -> str:
        """Return the path as it is."""
        return value


register_url_convertor("page", PagePath())
router = APIRouter(tags=["site"], route_class=JsonRoute)

_CACHE_HEADERS = {"cache-control": "public, max-age=60", "vary": "accept, host"}
_RAW_CACHE_HEADERS = [(name.encode(), value.encode()) for name, value in _CACHE_HEADERS.items()]
_DEFAULT_PORTS = {"http": 80, "https": 443}
RESPONSES: dict[int | str, dict[str, Any]] = {
    301: {"description": "The page has another path now."},
    304: {"description": "The client has this version of the page."},
}
Part = Annotated[int | None, Query(ge=1, le=MAX_PARTS, description="The number of a part of a long sitemap.")]


class PublicPage(BaseModel):
    """A published page."""

    id: str
    path: str
    title: str
    kind: ContentKind
    description: str
    blocks: list[dict[str, Any]]
    seo: dict[str, Any]
    updated: datetime | None


class Health(BaseModel):
    """The state of the application."""

    status: str = "ok"


def prefers_html(accept: str) -> bool:
    """Return whether an Accept header prefers HTML to JSON.

    >>> prefers_html("text/html,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    """
    if "text/html" not in accept:
        return False
    weights = {"text/html": 0.0, "application/json": 0.0}
    for part in accept.split(","):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        if kind in weights:
            given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
            try:
                weights[kind] = float(given)
            except ValueError:
                weights[kind] = 0.0
    return weights["text/html"] > weights["application/json"]


async def base_url(request: Request, db: DatabaseDep, owner: str) -> str:
    """Return the base URL of a tenant's site, from its domain and not from the client's headers."""
    domain = (await Tenants(db).get(owner)).domain or ""
    port = cast(HostTenants, request.app.state.hosts).port_of(request)
    shown = "" if port is None or port == _DEFAULT_PORTS.get(request.url.scheme) else f":{port}"
    return f"{request.url.scheme}://{domain}{shown}"


class PageRoute(APIRoute):
    """The route of pages, the most frequent requests: it does not use FastAPI's dependencies.

    Dependencies cost FastAPI as much as a page's two reads. The route belongs to the app itself, because
    matching an included router costs time too. The app's handlers answer errors, as for every route.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        self.app = _serve_page


async def _serve_page(scope: Scope, receive: Receive, send: Send) -> None:
    response = await render(scope["path_params"]["path"], Request(scope, receive))
    await response(scope, receive, send)


def serve_pages(app: FastAPI) -> None:
    """Add the page route as the first of an app; its paths exclude those of other routes."""
    route = PageRoute(
        "/{path:page}",
        render,
        methods=["GET"],
        tags=["site"],
        response_model=PublicPage,
        responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **RESPONSES},
        **PUBLIC,
    )
    form = FormRoute(CONTACT, send_message, methods=["POST"], include_in_schema=False)
    theme = cast(Theme, app.state.theme)
    app.router.routes[:0] = [
        route,
        form,
        Route("/public/theme/brand/{colour}.css", serve_brand, include_in_schema=False),
        Route(theme.assets.path, theme.assets.serve, include_in_schema=False),
    ]


async def serve_brand(request: Request) -> Response:
    """Serve the stylesheet of a brand colour; its content depends on the colour only."""
    colour = f"#{request.path_params['colour']}"
    if not is_colour(colour):
        raise HTTPException(404, "This file does not exist.")
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(brand_css(colour), media_type="text/css", headers=headers)


async def render(path: str, request: Request) -> Response:
    """Serve the page at a path as JSON or HTML, or redirect to its current path."""
    tenant = await get_host_tenant_id(request)
    # A store without an actor: it only reads.
    store = get_database(request).tenant(tenant)
    html = prefers_html(",".join(request.headers.getlist("accept")))
    if html:
        await site_of(request, tenant)
    query = request.query_params if request.scope["query_string"] else {}
    if PARAMETER in query:
        return await show_preview(request, store, query[PARAMETER])
    found = await Routes(store, now=clock_of(request)).resolve(f"/{path}")
    if found is None:
        raise HTTPException(404, "No page has this path.")
    target = found.to if isinstance(found, PathRedirect) else found.slug
    if isinstance(found, PathRedirect) or target != f"/{path}":
        return RedirectResponse(url_path(target), status_code=301, headers=_CACHE_HEADERS)
    if not html:
        return json_page(request, found)
    if SENT in query and found.slug == CONTACT:
        return await show_sent(request, store, found)
    return await html_page(request, found, store)


def json_page(request: Request, page: Content) -> Response:
    """Return a page as JSON, or 304 if the client has it."""
    # Another page may take this path with the same version.
    tag = f'"{page.node_id}-{page.version}-json"'
    if not_modified(request, tag):
        response = Response(status_code=304)
    else:
        # The fields of a PublicPage without the model: it would cost more than the reads.
        body = {
            "id": page.node_id,
            "path": page.slug,
            "title": page.title,
            "kind": page.kind,
            "description": page.description,
            "blocks": page.blocks,
            "seo": page.seo,
            "updated": page.updated,
        }
        response = Response(to_json(body), media_type="application/json")
    response.raw_headers += [*_RAW_CACHE_HEADERS, (b"etag", tag.encode("latin-1"))]
    return response


@router.get("/health", **PUBLIC)
async def health() -> Health:
    """Return that the application runs; it does not read the database."""
    return Health()


@router.get("/robots.txt", response_class=PlainTextResponse, **PUBLIC)
async def robots(request: Request, db: DatabaseDep, owner: HostTenantId) -> PlainTextResponse:
    """Return the rules for crawlers."""
    base = await base_url(request, db, owner)
    text = f"User-agent: *\nAllow: /\nDisallow: /docs\n\nSitemap: {base}/sitemap.xml\n"
    return PlainTextResponse(text, headers=_CACHE_HEADERS)


@router.get(
    "/sitemap.xml",
    response_class=Response,
    responses={
        200: {"description": "A sitemap.", "content": {"application/xml": {"schema": {"type": "string"}}}}
    },
    **PUBLIC,
)
async def sitemap(
    request: Request, db: DatabaseDep, owner: HostTenantId, store: HostStore, part: Part = None
) -> Response:
    """Return the published pages of the site; for a long list its parts."""
    text = await sitemaps(request).text(store, part, base=await base_url(request, db, owner))
    if text is None:
        raise HTTPException(404, "The sitemap does not have this part.")
    return Response(text, media_type="application/xml", headers=_CACHE_HEADERS)


def without_body(response: Response) -> Response:
    """Return a response without its body; the headers stay, Content-Length too."""
    response.body = b""
    return response


@router.head("/{path:page}", response_class=Response, responses=RESPONSES, **PUBLIC)
async def head_page(path: str, request: Request) -> Response:
    """Return the headers of GET for a page."""
    return without_body(await render(path, request))


@router.head("/robots.txt", response_class=Response, **PUBLIC)
async def head_robots(request: Request, db: DatabaseDep, owner: HostTenantId) -> Response:
    """Return the headers of GET for robots.txt."""
    return without_body(await robots(request, db, owner))


@router.head("/sitemap.xml", response_class=Response, **PUBLIC)
async def head_sitemap(
    request: Request, db: DatabaseDep, owner: HostTenantId, store: HostStore, part: Part = None
) -> Response:
    """Return the headers of GET for the sitemap."""
    return without_body(await sitemap(request, db, owner, store, part))
