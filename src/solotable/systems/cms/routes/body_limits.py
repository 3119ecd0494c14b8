"""Limits of JSON bodies in size and depth, and the text fields that bodies share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field

from solotable.web import limit_body

MAX_JSON_BYTES = 1_000_000
MAX_DEPTH = 32


class JsonRoute(APIRoute):
    """A route with a JSON body: 413 for a larger body, before it is parsed.

    The app's own limit is the size of a video; no JSON body needs that much memory.
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


def check_depth(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON tree, or raise ValueError when it is nested too deeply to be merged.

    >>> check_depth({"a": {"b": 1}})
    {'a': {'b': 1}}
    """
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return tree
    raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")


Tree = Annotated[dict[str, Any], AfterValidator(check_depth)]
Email = Annotated[str, Field(min_length=3, max_length=254)]
IdText = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
#: C0.13: it becomes part of a key, so the pattern excludes e-mail addresses.
VisitorId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
