"""`/docs` as Swagger UI from the installed package fastapi-swagger: no CDN, no inline script.

FastAPI's own pages load their scripts from a CDN. `serve_docs` replaces them, and redirects `/redoc` to
`/docs`. Without the package, the page links the OpenAPI document.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from html import escape
from importlib import resources, util
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route

_PACKAGE = "fastapi_swagger"
_INSTALL = "pip install fastapi-swagger"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_STYLES = ("swagger-ui.css", "docs.css")
_SCRIPTS = ("swagger-ui-bundle.js", "docs.js")
#: Swagger UI sets styles by script, and has its pictures as data in its stylesheet.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_IMMUTABLE = {"cache-control": "public, max-age=31536000, immutable"}


def serve_docs(app: FastAPI) -> None:
    """Replace the documentation pages of an app by ones that load everything from the app."""
    routes = app.router.routes
    pages = (app.docs_url, app.redoc_url, app.swagger_ui_oauth2_redirect_url)
    found = [each for each in routes if isinstance(each, Route) and each.path in pages]
    if not found:
        return
    path = app.docs_url or app.redoc_url or ""
    docs = _Docs(app, path)
    added = [
        Route(path, docs.page, include_in_schema=False),
        Route(f"{path}/{{version}}/{{name}}", docs.file, include_in_schema=False),
    ]
    if app.redoc_url not in (None, path):
        added.append(Route(app.redoc_url or "", docs.redirect, include_in_schema=False))
    start = routes.index(found[0])
    routes[:] = [each for each in routes if each not in found]
    routes[start:start] = added


class _Docs:
    """The documentation page of one app, and its files."""

    def __init__(self, app: FastAPI, path: str) -> None:
        self._app = app
        self._path = path

    async def page(self, request: Request) -> Response:
        """Show the API, or link its OpenAPI document if no files are installed."""
        root = _root(request)
        document = f"{root}{self._app.openapi_url or ''}"
        files = _files()
        link = f'<a href="{escape(document)}">{escape(document)}</a>'
        text = f'<p class="fallback">The API is described in {link}. '
        if files:
            text += "This page shows it if scripts may run.</p>"
        else:
            text += f"To read it here, install Swagger UI: <code>{_INSTALL}</code>.</p>"
        base = f"{root}{self._path}"
        given = {**(self._app.swagger_ui_parameters or {}), "url": document}
        options = escape(json.dumps(jsonable_encoder(given)))
        lines = [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(self._app.title)}: API documentation</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # A browser would ask for /favicon.ico.
            '<link rel="icon" href="data:,">',
            *(
                f'<link rel="stylesheet" href="{escape(_url(base, files, name))}">'
                for name in _STYLES
                if files
            ),
            *(
                f'<script defer src="{escape(_url(base, files, name))}"></script>'
                for name in _SCRIPTS
                if files
            ),
            "</head><body>",
            f'<div id="swagger-ui" data-options="{options}">{text}</div>',
            "</body></html>",
        ]
        return HTMLResponse("\n".join(lines) + "\n", headers={"content-security-policy": POLICY})

    async def file(self, request: Request) -> Response:
        """Serve a script or stylesheet under a URL that names its content."""
        name, version = request.path_params["name"], request.path_params["version"]
        data = _files().get(name)
        if data is None or _version(data) != version:
            raise HTTPException(404, "This file does not exist.")
        return Response(data, media_type=_TYPES[name.rpartition(".")[2]], headers=_IMMUTABLE)

    async def redirect(self, request: Request) -> Response:
        """Redirect the path of ReDoc, which needs files from other hosts."""
        return RedirectResponse(_root(request) + self._path)


def _root(request: Request) -> str:
    """Return the prefix of the app's paths."""
    path: str = request.scope.get("root_path", "")
    return path.rstrip("/")


def _url(base: str, files: dict[str, bytes], name: str) -> str:
    return f"{base}/{_version(files[name])}/{name}"


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


@cache
def _files() -> dict[str, bytes]:
    """Return the files of the page by name; empty if Swagger UI is not installed."""
    if util.find_spec(_PACKAGE) is None:
        return {}
    installed = resources.files(_PACKAGE) / "resources"
    own: Any = resources.files("solotable.web.http") / "static"
    names = dict.fromkeys((_STYLES[0], _SCRIPTS[0]), installed) | {_STYLES[1]: own, _SCRIPTS[1]: own}
    return {name: (folder / name).read_bytes() for name, folder in names.items()}
