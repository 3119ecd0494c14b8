"""Built sites at their subdomains: `alice.example.org` shows the live files of the site `alice`.

`SiteServer` finds a file by host and path; `SitesByHost` is the middleware of an app. A path is looked up in
the manifest of the build, so no path leads out of it. Pages run no script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from solotable import AsyncDatabase
from solotable.cache import TTLCache
from solotable.errors import NotFound
from solotable.systems.community.entities.builds import SiteFiles
from solotable.systems.community.services.sites import Sites
from solotable.systems.storage import Storage
from solotable.web import canonical_host

from .publish import MANIFEST, PublishedFile, decode_manifest, media_type

_MISSING: Final = "404.html"
#: A site runs nothing, loads its own styles and pictures, and is in no frame.
POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "strict-origin-when-cross-origin",
    "cross-origin-opener-policy": "same-origin",
}
#: Pages are checked by their ETag at each visit, so a build shows at once; the rest may be minutes behind.
_PAGE_CACHE: Final = "public, no-cache"
_ASSET_CACHE: Final = "public, max-age=300"
_MOST_SITES = 10_000
#: Paths in all manifests that are cached.
_MOST_PATHS = 200_000
#: A manifest never changes. This bounds how long the one of an unused site stays.
_MANIFEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a live build; `missing` if it is the page for paths that do not exist."""

    key: str
    path: str
    file: PublishedFile
    missing: bool = False

    @property
    def etag(self) -> str:
        """The ETag, from the bytes alone: a build that changes nothing keeps it."""
        return f'"{self.file.digest[:32]}"'


class SiteServer:
    """Finds and sends the files of live builds below a domain.

    It remembers which build of a site is live for `cache_seconds`. That must be less than the time for which
    a worker keeps replaced files.
    """

    def __init__(
        self, db: AsyncDatabase, storage: Storage, *, domain: str, cache_seconds: float = 2.0
    ) -> None:
        self.domain = domain
        self._sites = Sites(db)
        self._storage = storage
        self._live: TTLCache[str, str | None] = TTLCache(ttl_seconds=cache_seconds, max_size=_MOST_SITES)
        self._manifests: TTLCache[str, dict[str, PublishedFile]] = TTLCache(
            ttl_seconds=_MANIFEST_SECONDS, max_size=_MOST_PATHS, size_of=len
        )

    def subdomain_of(self, host: str) -> str | None:
        """Return the subdomain that a Host header names; None for a host that is not a site."""
        name = canonical_host(host)
        if name is None or not name.endswith(f".{self.domain}"):
            return None
        label = name.removesuffix(f".{self.domain}")
        return label if label and "." not in label else None

    async def respond(self, request: Request, subdomain: str) -> Response:
        """Answer a request for a site."""
        if request.method not in ("GET", "HEAD"):
            return _plain("This site takes no forms.", 405, allow="GET, HEAD")
        try:
            return await self._answer(request, subdomain)
        except NotFound:
            # The files were replaced and removed since the server remembered them.
            self._live.forget(subdomain)
            return await self._answer(request, subdomain)

    async def find(self, subdomain: str, path: str) -> FoundFile | None:
        """Return the file of a path, or the site's page for missing ones; None without a live build."""
        prefix = await self._live.load_async(subdomain, lambda: self._find_live(subdomain))
        if prefix is None:
            return None
        manifest = await self._manifests.load_async(prefix, lambda: self._read_manifest(prefix))
        name = unquote(path).lstrip("/")
        candidates = (name or "index.html", f"{name}index.html" if name.endswith("/") else f"{name}.html")
        for each in candidates:
            if each in manifest:
                return FoundFile(f"{prefix}/{each}", each, manifest[each], each == _MISSING)
        if _MISSING not in manifest:
            return None
        return FoundFile(f"{prefix}/{_MISSING}", _MISSING, manifest[_MISSING], missing=True)

    async def _find_live(self, subdomain: str) -> str | None:
        try:
            site = await self._sites.at_subdomain(subdomain)
        except NotFound:
            return None
        if site.live_job_id is None or site.live_token is None:
            return None
        return SiteFiles.prefix_of(site.site_id, site.live_job_id, site.live_token)

    async def _read_manifest(self, prefix: str) -> dict[str, PublishedFile]:
        try:
            return decode_manifest(await self._storage.get(f"{prefix}/{MANIFEST}"))
        except NotFound:
            return {}

    async def _answer(self, request: Request, subdomain: str) -> Response:
        found = await self.find(subdomain, request.url.path)
        if found is None:
            return _plain("No site has this address.", 404)
        return await self._send(request, found)

    async def _send(self, request: Request, found: FoundFile) -> Response:
        page = found.path.endswith(".html")
        headers = {
            **_HEADERS,
            "etag": found.etag,
            "cache-control": _PAGE_CACHE if page else _ASSET_CACHE,
        }
        status = 404 if found.missing else 200
        if status == 200 and _matches(request.headers.get("if-none-match", ""), found.etag):
            return Response(status_code=304, headers=headers)
        if request.method == "HEAD":
            headers["content-length"] = str(found.file.size)
            return Response(status_code=status, headers=headers, media_type=media_type(found.path))
        data = await self._storage.get(found.key)
        return Response(data, status_code=status, headers=headers, media_type=media_type(found.path))


class SitesByHost:
    """Middleware: requests for subdomains go to `app.state.sites`, all others to the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        server: SiteServer | None = getattr(scope["app"].state, "sites", None) if "app" in scope else None
        if scope["type"] == "http" and server is not None:
            request = Request(scope, receive)
            subdomain = server.subdomain_of(request.headers.get("host", ""))
            if subdomain is not None:
                await (await server.respond(request, subdomain))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _plain(text: str, status: int, **headers: str) -> Response:
    return PlainTextResponse(f"{text}\n", status_code=status, headers={**_HEADERS, **headers})


def _matches(header: str, etag: str) -> bool:
    """Whether an If-None-Match header names the ETag (RFC 9110: a weak comparison)."""
    tags = (each.strip().removeprefix("W/") for each in header.split(","))
    return header.strip() == "*" or etag in tags
