"""`/health`: whether the app answers."""

from __future__ import annotations

from fastapi import APIRouter

from solotable.systems.routes import PUBLIC

from .schemas.bodies import Health

router = APIRouter(tags=["health"])


@router.get("/health", **PUBLIC)
async def get_health() -> Health:
    """Return `ok`; it reads no table."""
    return Health(status="ok")
