"""`replicache_router`: the routes of one Sync, for clients with credentials.

Only status 200 is a success for a client. It repeats everything else for ever, so a wrong mutation is an
answer with 200 as well. 503 means that a push was done in part.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from solotable.sync import Sync, SyncUnavailable
from solotable.web.auth.auth import Auth, unauthorized
from solotable.web.auth.dependencies import authenticate, tenant_headers
from solotable.web.auth.principal import Principal
from solotable.web.http.problems import problem, problem_type_of
from solotable.web.tenancy.dependencies import choose_tenant

from .body import read_body
from .events import Tickets, poke_events, ticket_of

log = logging.getLogger("solotable.web")

_GZIP = 31
_BLOCK = 64_000

Authenticate = Callable[[Request], Awaitable[Principal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sends a request, and for which tenant."""

    tenant: str
    user: str
    principal: Principal


def replicache_router(  # noqa: PLR0913 - the settings of the routes, each by name
    sync: Sync,
    *,
    auth: Auth | Authenticate | None = None,
    user: Callable[[Principal], str] = lambda principal: principal.id,
    prefix: str = "/replicache",
    max_body_bytes: int = 10_000_000,
    pause_seconds: float = 0.1,
    heartbeat_seconds: float = 30.0,
    ticket_secrets: Sequence[bytes] = (),
) -> APIRouter:
    """Return the routes POST push, POST pull, GET poke and POST ticket of a Sync.

    `auth` verifies credentials; without it, the `auth` of `install` does. A credential of several tenants
    selects one with x-tenant-id, or `?tenant=` in the URLs. `user` returns the user id for mutators, views
    and the ownership of groups. Several processes need the same `ticket_secrets`.
    """
    router = APIRouter(prefix=prefix)
    tickets = Tickets(tuple(ticket_secrets) or (secrets.token_bytes(32),))

    async def caller_of(request: Request) -> Caller:
        sync.attach(asyncio.get_running_loop())
        if isinstance(auth, Auth):
            principal = await auth.principal(request)
        else:
            principal = await (auth or authenticate)(request)
        if principal.kind == "anonymous":
            raise unauthorized("Send a credential: x-api-key, or Authorization: Bearer.")
        tenant = tenant_of_request(request, principal)
        return Caller(tenant=tenant, user=user(principal), principal=principal)

    async def push(request: Request) -> Response:
        """Run the mutations of a client group."""
        caller = await caller_of(request)
        body = await read_body(request, max_body_bytes)
        if body.is_cut and isinstance(body.value, dict):
            body.value.setdefault("schemaVersion", sync.any_schema_version)
        try:
            answer = await run_in_threadpool(
                sync.push, caller.tenant, caller.user, body.value, principal=caller.principal
            )
        except SyncUnavailable as error:
            return _unavailable(request, error)
        if body.is_cut and not answer:
            # The client sends the rest once a pull has confirmed the beginning.
            return _unavailable(request, SyncUnavailable("The body was too large, and was run in part."))
        return JSONResponse(answer)

    async def pull(request: Request) -> Response:
        """Return the changes since the client's cookie."""
        caller = await caller_of(request)
        body = await read_body(request, max_body_bytes)

        def begin() -> tuple[str, Iterator[str]]:
            pieces = iter(sync.pull_stream(caller.tenant, caller.user, body.value))
            return next(pieces), pieces

        try:
            first, rest = await run_in_threadpool(begin)
        except SyncUnavailable as error:
            return _unavailable(request, error)
        return _json_stream(request, first, rest)

    async def ticket(request: Request) -> Response:
        """Return a ticket for GET poke, valid for a minute."""
        caller = await caller_of(request)
        return JSONResponse({"ticket": tickets.issue(caller.tenant, caller.user)})

    async def poke(request: Request) -> Response:
        """Return server-sent events, one after each commit."""
        given = ticket_of(request)
        if given is None:
            caller = await caller_of(request)
            tenant, name = caller.tenant, caller.user
        else:
            sync.attach(asyncio.get_running_loop())
            tenant, name = tickets.verify(given)
        events = poke_events(
            sync, tenant, name, pause_seconds=pause_seconds, heartbeat_seconds=heartbeat_seconds
        )
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    router.add_api_route("/push", push, methods=["POST"], response_model=None)
    router.add_api_route("/pull", pull, methods=["POST"], response_model=None)
    router.add_api_route("/ticket", ticket, methods=["POST"], response_model=None)
    router.add_api_route("/poke", poke, methods=["GET"], response_model=None)
    return router


def tenant_of_request(request: Request, principal: Principal) -> str:
    """Return the tenant that a request of the protocol selects: x-tenant-id, or `?tenant=`."""
    given = tenant_headers(request) or request.query_params.getlist("tenant")
    return choose_tenant(principal, given[0] if given else None)


def _unavailable(request: Request, error: SyncUnavailable) -> Response:
    """Return a 503; it is backpressure, so it is not logged as an error."""
    log.info("%s: %s", request.url.path, error)
    return problem(request, problem_type_of(error, conditional=False, more={}))


def _json_stream(request: Request, first: str, rest: Iterator[str]) -> Response:
    """Return pieces of JSON as one response, packed if the client accepts gzip."""
    zips = "gzip" in request.headers.get("accept-encoding", "").lower()
    if not zips:
        return StreamingResponse(_grouped(chain((first,), rest)), media_type="application/json")
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    packed = _packed(_grouped(chain((first,), rest)))
    return StreamingResponse(packed, media_type="application/json", headers=headers)


def _grouped(pieces: Iterator[str]) -> Iterator[bytes]:
    """Yield pieces in blocks, because each block costs a switch of threads."""
    block: list[str] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size > _BLOCK:
            yield "".join(block).encode()
            block, size = [], 0
    yield "".join(block).encode()


def _packed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    for block in blocks:
        packed = packer.compress(block)
        if packed:
            yield packed
    yield packer.flush()
