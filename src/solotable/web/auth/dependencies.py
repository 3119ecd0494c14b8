"""A dependency that needs a credential, and says so in OpenAPI, for the price of one dependency.

FastAPI spends some 20 microseconds on each dependency of a request, as much as a small read takes.
So who asks, whether they may and for which tenant is one dependency and not six; its marker is
written out in the OpenAPI document as credentials and header by `openapi`.
"""

# Without postponed annotations: older FastAPIs cannot resolve those of an object's `__call__`.

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from fastapi import Request
from fastapi.openapi.models import APIKey, APIKeyIn
from fastapi.security.base import SecurityBase

T = TypeVar("T")

#: The names that stand for "a credential", and for "a credential, and a tenant of it".
CREDENTIAL: Final = "SolotableCredential"
TENANT: Final = "SolotableTenant"


class Guard(SecurityBase, Generic[T]):
    """What a route depends on that needs a credential."""

    def __init__(self, marker: str, answer: Callable[[Request], Awaitable[T]]) -> None:
        self.model = APIKey.model_validate({"in": APIKeyIn.header, "name": "x-api-key"})
        self.scheme_name = marker
        self.__doc__ = answer.__doc__
        self._answer = answer

    async def __call__(self, request: Request) -> T:
        """Answer for one request, or refuse it."""
        return await self._answer(request)
