"""The active `routed` blocks, and the patches in botocore while a block is active."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from solotable._protocol.engine import Engine
from solotable.errors import EngineError
from solotable.fork_safe import new_lock

from .environment import set_dummy_environment
from .respond import is_dynamodb, respond

DYNAMODB_HOST = re.compile(
    r"(?:^|\.)(?:streams[.-])?(?:dynamodb|ddb)(?:-fips)?\.[a-z]+(?:-[a-z]+)+-\d+\."
    r"(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws|api\.amazonwebservices\.com\.cn)$"
)


class Route:
    """One active block: its engine, and whether the block owns it."""

    def __init__(self, engine: Engine, *, owned: bool) -> None:
        self.engine = engine
        self._owned = owned

    def close(self) -> None:
        """Close the engine if the block owns it."""
        if self._owned:
            self.engine.close()


class Routes:
    """The active blocks; the first one patches botocore, the last one restores it."""

    def __init__(self) -> None:
        self._lock = new_lock()
        # An immutable tuple, so that `current` needs no lock.
        self._active: tuple[Route, ...] = ()
        self._undo: list[Callable[[], None]] = []

    def current(self) -> Route | None:
        """Return the block that answers: the last one entered."""
        active = self._active
        return active[-1] if active else None

    def add(self, route: Route) -> None:
        """Activate a block; it answers until a later one is entered."""
        with self._lock:
            if not self._active:
                self._undo = [set_dummy_environment(), *_wrap_botocore(self)]
            self._active = (*self._active, route)

    def remove(self, route: Route) -> None:
        """Deactivate a block."""
        with self._lock:
            # By identity: blocks of several threads may end in any order.
            self._active = tuple(active for active in self._active if active is not route)
            if not self._active:
                while self._undo:
                    self._undo.pop()()


def _wrap_botocore(routes: Routes) -> Iterator[Callable[[], None]]:
    """Patch sending and signing; yield a function that undoes each patch."""
    from botocore.httpsession import URLLib3Session
    from botocore.signers import RequestSigner

    send, sign = URLLib3Session.send, RequestSigner.sign

    def routed_send(self: Any, request: Any) -> Any:
        route = routes.current()
        if route is None:
            return send(self, request)
        if is_dynamodb(request):
            return respond(route.engine, request)
        host = urlsplit(request.url).hostname or ""
        if DYNAMODB_HOST.search(host):
            raise EngineError(f"A request to {host} does not use DynamoDB's 2012-08-10 API; it was not sent.")
        return send(self, request)

    def routed_sign(self: Any, operation_name: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if routes.current() is not None and is_dynamodb(request):
            return None
        return sign(self, operation_name, request, *args, **kwargs)

    yield _replace(URLLib3Session, "send", routed_send)
    yield _replace(RequestSigner, "sign", routed_sign)


def _replace(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)

    def undo() -> None:
        # Keep a patch that another tool has put on top; without an active route it passes requests on.
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo
