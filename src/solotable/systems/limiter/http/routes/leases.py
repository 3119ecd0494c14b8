"""`/acquire`, `/leases`: taking tokens, and saying afterwards what was needed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, HTTPException, Query, Response

from solotable.systems.limiter.http.http_errors import headers_of
from solotable.systems.limiter.http.http_leases import LeaseRequest
from solotable.web import CurrentPrincipal, IfMatch, etag

from .access import APPS, OPERATORS, allow
from .bodies import AcquireBody, AcquireOut, AdjustBody, LeaseOut
from .dependencies import LeasePath, Leases

router = APIRouter(tags=["leases"])

Idempotency = Annotated[
    str | None,
    Header(
        alias="idempotency-key",
        pattern=r"^[\x21-\x7e]{1,200}$",
        description="The same key and body again, by the same caller, give the lease that is there, and take "
        "nothing.",
    ),
]


@router.post("/acquire", status_code=201, **allow(*APPS))
async def acquire(
    body: AcquireBody,
    leases: Leases,
    principal: CurrentPrincipal,
    response: Response,
    key: Idempotency = None,
) -> AcquireOut:
    """Take tokens from every limit that is named, or from none and answer with 429."""
    if body.limits is not None and not principal.has(*OPERATORS):
        raise HTTPException(403, "Limits of a call's own are for operators.")
    wish = LeaseRequest(
        entity=body.entity,
        resource=body.resource,
        consume=body.consume,
        limits=None if body.limits is None else [each.limit() for each in body.limits],
        on_unavailable=body.on_unavailable,
    )
    # Callers choose their keys alone, so that two may well choose the same.
    held = await leases.acquire(wish, key=None if key is None else f"{principal.id} {key}")
    response.headers.update(headers_of(held.statuses))
    if held.lease is not None:
        response.headers["etag"] = etag(held.lease.version)
        response.headers["location"] = f"/leases/{held.lease.lease_id}"
    return AcquireOut.of(held)


@router.get("/leases/{lease_id}", **allow(*APPS))
async def get_lease(lease_id: LeasePath, leases: Leases, response: Response) -> LeaseOut:
    """Return a lease."""
    found = await leases.get(lease_id)
    response.headers["etag"] = etag(found.version)
    return LeaseOut.of(found)


@router.patch("/leases/{lease_id}", **allow(*APPS))
async def adjust_lease(
    lease_id: LeasePath, body: AdjustBody, leases: Leases, expected: IfMatch, response: Response
) -> LeaseOut:
    """Say what the call has consumed in all: more is taken, into debt if need be, or the rest given back."""
    found = await leases.adjust(lease_id, body.consumed, version=expected)
    response.headers["etag"] = etag(found.version)
    return LeaseOut.of(found)


@router.delete("/leases/{lease_id}", status_code=204, **allow(*APPS))
async def end_lease(
    lease_id: LeasePath,
    leases: Leases,
    expected: IfMatch,
    keep: Annotated[bool, Query(description="Keep what is consumed: the call went well.")] = False,
) -> None:
    """End a lease and give everything back, as after a call that failed; the first end counts."""
    await leases.end(lease_id, keep=keep, version=expected)
