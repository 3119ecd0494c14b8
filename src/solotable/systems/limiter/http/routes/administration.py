"""`/api/entities`, `/api/limits`, `/defaults`: whose calls are limited, and by what.

The last writer of a level wins; the audit trail has them all.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException

from solotable.systems.limiter.admin.entities import StoredLimits
from solotable.web import Page, Paging

from .access import OPERATORS, allow
from .bodies import (
    EffectiveOut,
    EntityBody,
    EntityLimitsOut,
    EntityOut,
    LevelOut,
    LimitBody,
    LimitsBody,
    SystemBody,
)
from .dependencies import EntityPath, LimiterDep, OneResource, ResourcePath

router = APIRouter()


@router.post("/api/entities", status_code=201, tags=["entities"], **allow(*OPERATORS))
async def create_entity(body: EntityBody, limiter: LimiterDep) -> EntityOut:
    """Make an entity; a parent must be there and have no parent itself."""
    made = await limiter.create_entity(
        body.entity_id, name=body.name, parent=body.parent, cascade=body.cascade, metadata=body.metadata
    )
    return EntityOut.of(made)


@router.get("/api/entities", tags=["entities"], **allow(*OPERATORS))
async def list_entities(limiter: LimiterDep, paging: Paging) -> Page[EntityOut]:
    """List entities, each parent before its children."""
    return Page[EntityOut].of(await limiter.entities(limit=paging.limit, cursor=paging.cursor), EntityOut.of)


@router.get("/api/entities/{entity}", tags=["entities"], **allow(*OPERATORS))
async def get_entity(entity: EntityPath, limiter: LimiterDep) -> EntityOut:
    """Return an entity that was made."""
    found = await limiter.get_entity(entity)
    if found is None:
        raise HTTPException(404, "There is no such entity.")
    return EntityOut.of(found)


@router.delete("/api/entities/{entity}", status_code=204, tags=["entities"], **allow(*OPERATORS))
async def delete_entity(entity: EntityPath, limiter: LimiterDep) -> None:
    """Remove an entity and its limits; one that has children is a 409."""
    await limiter.delete_entity(entity)


@router.get("/api/entities/{entity}/children", tags=["entities"], **allow(*OPERATORS))
async def list_children(entity: EntityPath, limiter: LimiterDep, paging: Paging) -> Page[EntityOut]:
    """List the children of an entity."""
    found = await limiter.children(entity, limit=paging.limit, cursor=paging.cursor)
    return Page[EntityOut].of(found, EntityOut.of)


@router.get("/api/limits/{entity}", tags=["limits"], **allow(*OPERATORS))
async def get_limits(
    entity: EntityPath, limiter: LimiterDep, resource: OneResource = None
) -> EntityLimitsOut:
    """Return the levels of an entity; with a resource also what counts for that, and by which level."""
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
    """Set the limits of an entity, for a resource or for all that have none of their own."""
    return await _set(limiter, body.limits, entity=entity, resource=resource)


@router.delete("/api/limits/{entity}", status_code=204, tags=["limits"], **allow(*OPERATORS))
async def delete_limits(entity: EntityPath, limiter: LimiterDep, resource: OneResource = None) -> None:
    """Remove the limits of a level, so that the next one counts."""
    _there(await limiter.delete_limits(entity=entity, resource=resource))


@router.get("/defaults/system", tags=["defaults"], **allow(*OPERATORS))
async def get_system(limiter: LimiterDep) -> LevelOut:
    """Return the limits of last resort."""
    return LevelOut.of(_there(await limiter.get_limits()))


@router.put("/defaults/system", tags=["defaults"], **allow(*OPERATORS))
async def set_system(body: SystemBody, limiter: LimiterDep) -> LevelOut:
    """Set the limits of last resort, and what happens when the table cannot be asked."""
    limits = None if body.limits is None else [each.limit() for each in body.limits]
    return LevelOut.of(await limiter.set_limits(limits, on_unavailable=body.on_unavailable))


@router.delete("/defaults/system", status_code=204, tags=["defaults"], **allow(*OPERATORS))
async def delete_system(limiter: LimiterDep) -> None:
    """Remove the limits of last resort."""
    _there(await limiter.delete_limits())


@router.get("/defaults/resources/{resource:path}", tags=["defaults"], **allow(*OPERATORS))
async def get_resource(resource: ResourcePath, limiter: LimiterDep) -> LevelOut:
    """Return the limits of a resource for all entities."""
    return LevelOut.of(_there(await limiter.get_limits(resource=resource)))


@router.put("/defaults/resources/{resource:path}", tags=["defaults"], **allow(*OPERATORS))
async def set_resource(resource: ResourcePath, body: LimitsBody, limiter: LimiterDep) -> LevelOut:
    """Set the limits of a resource, for every entity that has none of its own."""
    return await _set(limiter, body.limits, entity=None, resource=resource)


@router.delete("/defaults/resources/{resource:path}", status_code=204, tags=["defaults"], **allow(*OPERATORS))
async def delete_resource(resource: ResourcePath, limiter: LimiterDep) -> None:
    """Remove the limits of a resource."""
    _there(await limiter.delete_limits(resource=resource))


async def _set(
    limiter: LimiterDep, limits: list[LimitBody], *, entity: str | None, resource: str | None
) -> LevelOut:
    given = [each.limit() for each in limits]
    return LevelOut.of(await limiter.set_limits(given, entity=entity, resource=resource))


def _there(found: StoredLimits | None) -> StoredLimits:
    if found is None:
        raise HTTPException(404, "No limits are set here.")
    return found
