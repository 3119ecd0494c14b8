"""The active blocks of `routed`, and what is changed in botocore while there are any."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from solotable._protocol.engine import Engine
from solotable.errors import EngineError
from solotable.fork_safe import new_lock

from .environment import supply_environment
from .respond import is_dynamodb, respond

DYNAMODB_HOST = re.compile(
    r"(?:^|\.)(?:streams[.-])?(?:dynamodb|ddb)(?:-fips)?\.[a-z]+(?:-[a-z]+)+-\d+\."
    r"(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws|api\.amazonwebservices\.com\.cn)$"
)


class Route:
    """One active block: its engine, and whether that ends with it."""

    def __init__(self, engine: Engine, *, owned: bool) -> None:
        self.engine = engine
        self._owned = owned

    def close(self) -> None:
        """Close the engine if it was opened for the block."""
        if self._owned:
            self.engine.close()


class Routes:
    """The active blocks; the first to come changes botocore, the last to go restores it."""

    def __init__(self) -> None:
        self._lock = new_lock()
        # Replaced, never changed, so that `current` needs no lock.
        self._active: tuple[Route, ...] = ()
        self._undo: list[Callable[[], None]] = []

    def current(self) -> Route | None:
        """Return the block that answers: the one entered last."""
        active = self._active
        return active[-1] if active else None

    def add(self, route: Route) -> None:
        """Let this block answer from now on."""
        with self._lock:
            if not self._active:
                self._undo = [supply_environment(), *_wrap_botocore(self)]
            self._active = (*self._active, route)

    def remove(self, route: Route) -> None:
        """Let this block answer no longer."""
        with self._lock:
            # By identity, wherever it is: blocks of several threads need not end in order.
            self._active = tuple(active for active in self._active if active is not route)
            if not self._active:
                while self._undo:
                    self._undo.pop()()


def _wrap_botocore(routes: Routes) -> Iterator[Callable[[], None]]:
    """Wrap sending and signing; yields how to undo each."""
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
            raise EngineError(
                f"A request to {host} is not of DynamoDB's 2012-08-10 API: neither answered nor sent."
            )
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
        # Whoever has wrapped ours meanwhile keeps it; without an active route it only passes on.
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo
