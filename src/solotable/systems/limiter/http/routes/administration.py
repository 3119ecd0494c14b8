"""`/api/entities`, `/api/limits`, `/defaults`: limited entities, and their limits.

The last writer of a level wins; the audit trail has them all.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException

from solotable.systems.limiter.admin.entities import StoredLimits
from solotable.web import CurrentPrincipal, Page, Paging

from .access import OPERATORS, allow
from .bodies import EntityBody, EntityOut, ModeBody, ParentBody, ResetBody, TopUpBody, TopUpOut
from .dependencies import EntityPath, Idempotency, LimiterDep, OneResource, ResourcePath
from .limit_bodies import EffectiveOut, EntityLimitsOut, LevelOut, LimitsBody, SystemBody

router = APIRouter()
SYSTEM, RESOURCES = "/defaults/system", "/defaults/resources/{resource:path}"


@router.post("/api/entities", status_code=201, tags=["entities"], **allow(*OPERATORS))
async def create_entity(body: EntityBody, limiter: LimiterDep) -> EntityOut:
    """Create an entity; a parent must exist and have no parent itself."""
    return EntityOut.model_validate(await limiter.create_entity(**body.model_dump()))


@router.get("/api/entities", tags=["entities"], **allow(*OPERATORS))
async def list_entities(limiter: LimiterDep, paging: Paging) -> Page[EntityOut]:
    """List entities, each parent before its children."""
    found = await limiter.entities(limit=paging.limit, cursor=paging.cursor)
    return Page[EntityOut].of(found, EntityOut.model_validate)


@router.get("/api/entities/{entity}", tags=["entities"], **allow(*OPERATORS))
async def get_entity(entity: EntityPath, limiter: LimiterDep) -> EntityOut:
    """Return an entity that was created."""
    found = await limiter.get_entity(entity)
    if found is None:
        raise HTTPException(404, "The entity does not exist.")
    return EntityOut.model_validate(found)


@router.delete("/api/entities/{entity}", status_code=204, tags=["entities"], **allow(*OPERATORS))
async def delete_entity(entity: EntityPath, limiter: LimiterDep) -> None:
    """Delete an entity and its limits; one that has children is a 409."""
    await limiter.delete_entity(entity)


@router.get("/api/entities/{entity}/children", tags=["entities"], **allow(*OPERATORS))
async def list_children(entity: EntityPath, limiter: LimiterDep, paging: Paging) -> Page[EntityOut]:
    """List the children of an entity."""
    found = await limiter.children(entity, limit=paging.limit, cursor=paging.cursor)
    return Page[EntityOut].of(found, EntityOut.model_validate)


@router.put("/api/entities/{entity}/parent", tags=["entities"], **allow(*OPERATORS))
async def set_parent(entity: EntityPath, body: ParentBody, limiter: LimiterDep) -> EntityOut:
    """Give an entity another parent, or none."""
    changed = await limiter.set_parent(entity, body.parent, cascade=body.cascade)
    return EntityOut.model_validate(changed)


@router.put("/api/entities/{entity}/mode", tags=["limits"], **allow(*OPERATORS))
async def set_mode(
    entity: EntityPath, body: ModeBody, limiter: LimiterDep, resource: OneResource = None
) -> LevelOut:
    """Deny an entity, let it bypass its limits, or set how its own limits apply; the limits stay."""
    return LevelOut.of(await limiter.set_mode(entity, body.mode, resource=resource))


@router.post("/api/entities/{entity}/reset", tags=["limits"], status_code=204, **allow(*OPERATORS))
async def reset(entity: EntityPath, body: ResetBody, limiter: LimiterDep) -> None:
    """Make limits of an entity full again."""
    await limiter.reset(entity, resource=body.resource, limits=body.limits)


@router.post("/api/entities/{entity}/top-up", tags=["limits"], **allow(*OPERATORS))
async def top_up(
    entity: EntityPath,
    body: TopUpBody,
    limiter: LimiterDep,
    principal: CurrentPrincipal,
    key: Idempotency = None,
) -> TopUpOut:
    """Add tokens to limits of an entity, up to their capacity."""
    # Each caller chooses its own keys, so two may choose the same.
    own = None if key is None else f"{principal.id} {key}"
    available = await limiter.top_up(entity, body.resource, body.tokens, key=own)
    return TopUpOut(entity=entity, resource=body.resource, available=available)


@router.get("/api/limits/{entity}", tags=["limits"], **allow(*OPERATORS))
async def get_limits(
    entity: EntityPath, limiter: LimiterDep, resource: OneResource = None
) -> EntityLimitsOut:
    """Return the levels of an entity; with a resource also what applies to that, and of which level."""
    levels = await limiter.limited_resources(entity=entity)
    effective = None if resource is None else await limiter.effective_limits(entity, resource)
    return EntityLimitsOut(
        entity=entity,
        levels=[LevelOut.of(each) for each in levels],
        effective=None if effective is None else EffectiveOut.of(effective),
    )


@router.put("/api/limits/{entity}", tags=["limits"], **allow(*OPERATORS))
async def set_limits(
    entity: EntityPath, body: LimitsBody, limiter: LimiterDep, resource: OneResource = None
) -> LevelOut:
    """Set the limits of an entity, for a resource or for all without their own."""
    stored = await limiter.set_limits(body.content(), entity=entity, resource=resource, mode=body.mode)
    return LevelOut.of(stored)


@router.delete("/api/limits/{entity}", status_code=204, tags=["limits"], **allow(*OPERATORS))
async def delete_limits(entity: EntityPath, limiter: LimiterDep, resource: OneResource = None) -> None:
    """Delete the limits of a level, so that the next one applies."""
    _require(await limiter.delete_limits(entity=entity, resource=resource))


@router.get(SYSTEM, tags=["defaults"], **allow(*OPERATORS))
async def get_system(limiter: LimiterDep) -> LevelOut:
    """Return the system's limits."""
    return LevelOut.of(_require(await limiter.get_limits()))


@router.put(SYSTEM, tags=["defaults"], **allow(*OPERATORS))
async def set_system(body: SystemBody, limiter: LimiterDep) -> LevelOut:
    """Set the system's limits, and what happens when the table is unavailable."""
    stored = await limiter.set_limits(body.content(), on_unavailable=body.on_unavailable, mode=body.mode)
    return LevelOut.of(stored)


@router.delete(SYSTEM, status_code=204, tags=["defaults"], **allow(*OPERATORS))
async def delete_system(limiter: LimiterDep) -> None:
    """Delete the system's limits."""
    _require(await limiter.delete_limits())


@router.get(RESOURCES, tags=["defaults"], **allow(*OPERATORS))
async def get_resource(resource: ResourcePath, limiter: LimiterDep) -> LevelOut:
    """Return the limits of a resource for all entities."""
    return LevelOut.of(_require(await limiter.get_limits(resource=resource)))


@router.put(RESOURCES, tags=["defaults"], **allow(*OPERATORS))
async def set_resource(resource: ResourcePath, body: LimitsBody, limiter: LimiterDep) -> LevelOut:
    """Set the limits of a resource, for every entity without its own."""
    return LevelOut.of(await limiter.set_limits(body.content(), resource=resource, mode=body.mode))


@router.delete(RESOURCES, status_code=204, tags=["defaults"], **allow(*OPERATORS))
async def delete_resource(resource: ResourcePath, limiter: LimiterDep) -> None:
    """Delete the limits of a resource."""
    _require(await limiter.delete_limits(resource=resource))


def _require(found: StoredLimits | None) -> StoredLimits:
    if found is None:
        raise HTTPException(404, "No limits are set here.")
    return found
