"""What the routes of all systems share: roles in the OpenAPI document, versions, limits of bodies."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Protocol, TypeVar, cast

from fastapi import Depends, Path, Request, Response
from fastapi.routing import APIRoute

from solotable import ANY
from solotable.web import IfMatch, etag, limit_body, requires

MAX_JSON_BYTES = 1_000_000

#: `**PUBLIC`: a route without a credential.
PUBLIC: dict[str, Any] = {"openapi_extra": {"x-roles": [], "security": []}}


def allow(*roles: str, **extra: Any) -> dict[str, Any]:
    """Return the arguments for a route that requires roles: `@router.get("/content", **allow(*EDITORS))`."""
    return {
        "dependencies": [Depends(requires(*roles))],
        "openapi_extra": {"x-roles": sorted(roles), **extra},
    }


class JsonRoute(APIRoute):
    """A route with a JSON body: 413 for a larger body, before it is parsed.

    The app's own limit is the size of a file; no JSON body needs that much memory.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with the lower limit."""
        handle = super().get_route_handler()
        if self.methods is not None and self.methods <= {"GET", "HEAD"}:
            return handle

        async def handle_limited(request: Request) -> Response:
            limit_body(request, MAX_JSON_BYTES)
            return await handle(request)

        return handle_limited


class Versioned(Protocol):
    """An object with a version."""

    @property
    def version(self) -> int: ...


VersionedT = TypeVar("VersionedT", bound=Versioned)
Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$", examples=["01JD0QK7V3M8Z6X2T9R4C5B1AE"])]


async def get_expected_version(expected: IfMatch) -> int | None:
    """Return the version in If-Match; None for any version."""
    return None if expected is None or expected is ANY else cast(int, expected)


def set_etag(response: Response, stored: VersionedT) -> VersionedT:
    """Set the ETag of a response to the version of what it returns."""
    response.headers["etag"] = etag(stored.version)
    return stored


ExpectedVersion = Annotated[int | None, Depends(get_expected_version)]
