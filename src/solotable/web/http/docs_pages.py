"""FastAPI's documentation pages with a text for browsers that cannot load their scripts.

The scripts come from a CDN. Swagger UI and ReDoc replace the text when they start; without them it stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.routing import Route

Endpoint = Callable[[Request], Awaitable[HTMLResponse]]


def add_docs_fallback(app: FastAPI) -> None:
    """Replace the routes of an app's documentation pages by ones with the text."""
    routes = app.router.routes
    for number, route in enumerate(routes):
        if isinstance(route, Route) and route.path in (app.docs_url, app.redoc_url):
            endpoint = _with_fallback(app, route.endpoint)
            routes[number] = Route(route.path, endpoint, name=route.name, include_in_schema=False)


def _with_fallback(app: FastAPI, endpoint: Endpoint) -> Endpoint:
    async def page(request: Request) -> HTMLResponse:
        html = bytes((await endpoint(request)).body).decode()
        link = escape(request.scope.get("root_path", "").rstrip("/") + (app.openapi_url or ""))
        text = (
            "<p>This page loads its scripts from cdn.jsdelivr.net. If this text stays, your browser "
            f'cannot load them: read the OpenAPI document at <a href="{link}">{link}</a> instead.</p>'
        )
        html = html.replace('<div id="swagger-ui">', f'<div id="swagger-ui">{text}')
        return HTMLResponse(html.replace("</redoc>", f"{text}</redoc>"))

    return page
