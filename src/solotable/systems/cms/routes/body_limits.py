"""How large and how deep a body may be. Bytes of files have a route class of their own: the plain one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field
from starlette.types import Message

MOST_JSON_BYTES = 1_000_000
DEEPEST = 32


class JsonRoute(APIRoute):
    """A route whose body is JSON: it is refused when it grows beyond a page, before it is parsed.

    The app's own limit is that of a film; no JSON needs that much memory.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler behind a counter of bytes."""
        handle = super().get_route_handler()
        if self.methods is not None and self.methods <= {"GET", "HEAD"}:
            return handle

        async def counted(request: Request) -> Response:
            received = 0

            async def receive() -> Message:
                nonlocal received
                message = await request.receive()
                received += len(message.get("body", b""))
                if received > MOST_JSON_BYTES:
                    raise HTTPException(413, f"JSON has at most {MOST_JSON_BYTES} bytes here.")
                return message

            return await handle(Request(request.scope, receive))

        return counted


def shallow(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree of JSON, or refuse one that is nested too deeply to be merged.

    >>> shallow({"a": {"b": 1}})
    {'a': {'b': 1}}
    """
    level: list[Any] = [tree]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return tree
    raise ValueError(f"is nested more than {DEEPEST} deep")


Tree = Annotated[dict[str, Any], AfterValidator(shallow)]
Email = Annotated[str, Field(min_length=3, max_length=254)]
IdText = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
#: C0.13: it is part of a key, so an e-mail address is none.
VisitorId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
