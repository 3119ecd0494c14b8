"""`/acquire`, `/check`, `/leases`: take tokens, and report afterwards what was needed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Response

from solotable.systems.limiter.http.limit_responses import headers_of
from solotable.systems.limiter.lease import AcquireRequest
from solotable.web import CurrentPrincipal, IfMatch, etag

from .access import APPS, OPERATORS, allow
from .bodies import AcquireBody, AcquireOut, AdjustBody, CheckBody, CheckOut, LeaseOut
from .dependencies import Idempotency, LeasePath, Leases, LimiterDep
from .limit_bodies import limits_of

router = APIRouter(tags=["leases"])


@router.post("/acquire", status_code=201, **allow(*APPS))
async def acquire(
    body: AcquireBody,
    leases: Leases,
    principal: CurrentPrincipal,
    response: Response,
    key: Idempotency = None,
) -> AcquireOut:
    """Take tokens from every limit that is named, or from none and respond with 429."""
    if body.limits is not None and not principal.has(*OPERATORS):
        raise HTTPException(403, "Only operators may send limits.")
    request = AcquireRequest(
        body.entity, body.resource, body.consume, limits_of(body.limits), body.on_unavailable, body.also
    )
    # Each caller chooses its own keys, so two may choose the same.
    acquired = await leases.acquire(request, key=None if key is None else f"{principal.id} {key}")
    response.headers.update(headers_of(acquired.statuses))
    if acquired.lease is not None:
        response.headers["etag"] = etag(acquired.lease.version)
        response.headers["location"] = f"/leases/{acquired.lease.lease_id}"
    return AcquireOut.of(acquired)


@router.post("/check", **allow(*APPS))
async def check(body: CheckBody, limiter: LimiterDep) -> CheckOut:
    """Return whether an acquire would be admitted now; nothing is taken."""
    return CheckOut.of(await limiter.check(body.entity, body.resource, body.consume, also=body.also))


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
    """Set what the call has consumed in all: the difference is taken, into debt too, or given back."""
    found = await leases.adjust(lease_id, body.consumed, also=body.also, version=expected)
    response.headers["etag"] = etag(found.version)
    return LeaseOut.of(found)


@router.post("/leases/{lease_id}/extend", **allow(*APPS))
async def extend_lease(
    lease_id: LeasePath, leases: Leases, expected: IfMatch, response: Response
) -> LeaseOut:
    """Keep a lease, and its tokens of concurrency limits, for the whole time from now; 409 if it is over."""
    found = await leases.extend(lease_id, version=expected)
    response.headers["etag"] = etag(found.version)
    return LeaseOut.of(found)


@router.delete("/leases/{lease_id}", status_code=204, **allow(*APPS))
async def end_lease(
    lease_id: LeasePath,
    leases: Leases,
    expected: IfMatch,
    keep: Annotated[bool, Query(description="Keep what is consumed: the call succeeded.")] = False,
) -> None:
    """End a lease and give everything back, as after a call that failed; only the first end counts."""
    await leases.end(lease_id, keep=keep, version=expected)
