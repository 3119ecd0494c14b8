"""Stylesheets and scripts of the pages, each under a URL that names its content.

A browser keeps a file for a year, and asks for another URL when the file changes.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Final

from fastapi import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {"cache-control": "public, max-age=31536000, immutable"}


def _read_assets() -> dict[str, bytes]:
    folder = resources.files("solotable.systems.portal.pages") / "static"
    return {
        each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES
    }


#: The files by name.
ASSETS: Final = _read_assets()
_VERSIONS = {name: hashlib.sha256(data).hexdigest()[:12] for name, data in ASSETS.items()}


def asset_url(name: str) -> str:
    """Return the URL of a file."""
    return f"/static/{_VERSIONS[name]}/{name}"


async def serve_asset(request: Request) -> Response:
    """Serve a file; 404 for another name or an earlier content."""
    name, version = request.path_params["name"], request.path_params["version"]
    if _VERSIONS.get(name) != version:
        raise HTTPException(404, "This file does not exist.")
    kind = name.rpartition(".")[2]
    return Response(ASSETS[name], media_type=_TYPES[kind], headers=_HEADERS)
