"""The public site: `GET /{path}` (a page, or 301), `sitemap.xml`, `robots.txt`, `health`.

The host name says whose site it is. A page is JSON, or HTML for who prefers that. What is not published
is not there; a path that is written otherwise than the page's own is sent to that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Receive, Scope, Send

from solotable.systems.cms.entities import Content, ContentKind
from solotable.systems.cms.formats.slugs import RESERVED
from solotable.systems.cms.routes.access import PUBLIC
from solotable.systems.cms.routes.body_limits import JsonRoute
from solotable.systems.cms.services import Moved, Routes, Tenants
from solotable.web import DatabaseDep, HostStore, HostTenant, HostTenants, host_tenant, not_modified
from solotable.web.tenancy.tenants import opened

from .markup import address, page_html
from .sitemaps import MOST_PARTS, sitemaps


class PagePath(Convertor[str]):
    """Paths that a page may have: none that begins as the application's own do.

    So the site can be asked first, and a page need not be held against every route of the API.
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

_FRESH = {"cache-control": "public, max-age=60", "vary": "accept, host"}
_FRESH_LINES = [(name.encode(), value.encode()) for name, value in _FRESH.items()]
_DEFAULT_PORTS = {"http": 80, "https": 443}
MOVED: dict[int | str, dict[str, Any]] = {
    301: {"description": "The page has another path now."},
    304: {"description": "The page is the one that the client has."},
}
Part = Annotated[
    int | None, Query(ge=1, le=MOST_PARTS, description="A part of a long sitemap, as its index names it.")
]


class PublicPage(BaseModel):
    """A page as everybody may see it."""

    id: str
    path: str
    title: str
    kind: ContentKind
    description: str
    blocks: list[dict[str, Any]]
    seo: dict[str, Any]
    updated: datetime | None


class Health(BaseModel):
    """That the application answers."""

    status: str = "ok"


def prefers_html(accept: str) -> bool:
    """Say whether an Accept header would rather have HTML than JSON.

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
    """Return where the tenant's site is, by its own domain and not by what the client says."""
    domain = (await Tenants(db).get(owner)).domain or ""
    port = cast(HostTenants, request.app.state.hosts).port_of(request)
    shown = "" if port is None or port == _DEFAULT_PORTS.get(request.url.scheme) else f":{port}"
    return f"{request.url.scheme}://{domain}{shown}"


class PageRoute(APIRoute):
    """The route of pages, which are asked for most: a page is answered without solving dependencies.

    They cost FastAPI as much as a page's two reads. So it takes no dependency of a router: it belongs to
    the app itself, which also saves the matching of a router that was included. Errors are answered by
    the app's handlers, as those of every route.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        self.app = _serve_page


async def _serve_page(scope: Scope, receive: Receive, send: Send) -> None:
    response = await render(scope["path_params"]["path"], Request(scope, receive))
    await response(scope, receive, send)


def serve_pages(app: FastAPI) -> None:
    """Have an app serve pages, by the first of its routes: it takes no path that is another's."""
    route = PageRoute(
        "/{path:page}",
        render,
        methods=["GET"],
        tags=["site"],
        response_model=PublicPage,
        responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **MOVED},
        **PUBLIC,
    )
    app.router.routes.insert(0, route)


async def render(path: str, request: Request) -> Response:
    """Serve the page at a path as JSON or HTML, or say where it is now."""
    # Nobody is acting: nothing is written.
    store = opened(request).tenant(await host_tenant(request))
    found = await Routes(store).resolve(f"/{path}")
    if found is None:
        raise HTTPException(404, "There is no page at this path.")
    target = found.to if isinstance(found, Moved) else found.slug
    if isinstance(found, Moved) or target != f"/{path}":
        return RedirectResponse(address(target), status_code=301, headers=_FRESH)
    return represent(request, found)


def represent(request: Request, page: Content) -> Response:
    """Return a page in the form that the client prefers."""
    html = prefers_html(",".join(request.headers.getlist("accept")))
    # Another page may come to this path with the same version, and HTML is not the JSON of it.
    tag = f'"{page.node_id}-{page.version}-{"html" if html else "json"}"'
    if not_modified(request, tag):
        response = Response(status_code=304)
    elif html:
        response = HTMLResponse(page_html(page))
    else:
        # A PublicPage without being one: what was read is valid, and models cost more than the reads.
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
    response.raw_headers += [*_FRESH_LINES, (b"etag", tag.encode("latin-1"))]
    return response


@router.get("/health", **PUBLIC)
async def health() -> Health:
    """Say that the application answers; the database is not asked."""
    return Health()


@router.get("/robots.txt", response_class=PlainTextResponse, **PUBLIC)
async def robots(request: Request, db: DatabaseDep, owner: HostTenant) -> PlainTextResponse:
    """Tell robots what is theirs to read."""
    base = await base_url(request, db, owner)
    text = f"User-agent: *\nAllow: /\nDisallow: /docs\n\nSitemap: {base}/sitemap.xml\n"
    return PlainTextResponse(text, headers=_FRESH)


@router.get(
    "/sitemap.xml",
    response_class=Response,
    responses={
        200: {"description": "A sitemap.", "content": {"application/xml": {"schema": {"type": "string"}}}}
    },
    **PUBLIC,
)
async def sitemap(
    request: Request, db: DatabaseDep, owner: HostTenant, store: HostStore, part: Part = None
) -> Response:
    """List the published pages of the site, or the parts of that list where it is a long one."""
    text = await sitemaps(request).text(store, part, base=await base_url(request, db, owner))
    if text is None:
        raise HTTPException(404, "The sitemap has no such part.")
    return Response(text, media_type="application/xml", headers=_FRESH)


def bodiless(answer: Response) -> Response:
    """Return an answer without its body; its headers stay, also how long the body would be."""
    answer.body = b""
    return answer


@router.head("/{path:page}", response_class=Response, responses=MOVED, **PUBLIC)
async def head_page(path: str, request: Request) -> Response:
    """Say what GET of a page would, without the page."""
    return bodiless(await render(path, request))


@router.head("/robots.txt", response_class=Response, **PUBLIC)
async def head_robots(request: Request, db: DatabaseDep, owner: HostTenant) -> Response:
    """Say what GET of robots.txt would, without the text."""
    return bodiless(await robots(request, db, owner))


@router.head("/sitemap.xml", response_class=Response, **PUBLIC)
async def head_sitemap(
    request: Request, db: DatabaseDep, owner: HostTenant, store: HostStore, part: Part = None
) -> Response:
    """Say what GET of the sitemap would, without the list."""
    return bodiless(await sitemap(request, db, owner, store, part))
