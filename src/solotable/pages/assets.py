"""Stylesheets and scripts of pages, each under a URL that names its content.

A browser keeps a file for a year, and asks for another URL when the file changes.
"""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {"cache-control": "public, max-age=31536000, immutable"}


class Assets:
    """The files in `static` of packages, a later one before an earlier one; serve them at `path`."""

    def __init__(self, *packages: str, prefix: str = "/static") -> None:
        self._prefix = prefix
        #: The files by name.
        self.files = {name: data for package in packages for name, data in _read(package).items()}
        self._versions = {name: hashlib.sha256(data).hexdigest()[:12] for name, data in self.files.items()}

    @property
    def path(self) -> str:
        """The path of the files, for a route."""
        return f"{self._prefix}/{{version}}/{{name}}"

    def url(self, name: str) -> str:
        """Return the URL of a file."""
        return f"{self._prefix}/{self._versions[name]}/{name}"

    async def serve(self, request: Request) -> Response:
        """Serve a file; 404 for another name or an earlier content."""
        name, version = request.path_params["name"], request.path_params["version"]
        if self._versions.get(name) != version:
            raise HTTPException(404, "This file does not exist.")
        kind = name.rpartition(".")[2]
        return Response(self.files[name], media_type=_TYPES[kind], headers=_HEADERS)


def _read(package: str) -> dict[str, bytes]:
    folder = resources.files(package) / "static"
    return {
        each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES
    }
