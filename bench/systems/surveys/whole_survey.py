"""The CPU time of reading a complete survey beside the engine's own time for the same Query."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from solotable import AsyncDatabase
from solotable._connect import open_engine, over, to_async
from solotable.systems.surveys.services.survey.surveys import Surveys
from solotable.systems.surveys.table import surveyor
from solotable.testing import RecordingEngine
from solotable.urls import Url

from .granular_layout import GranularLayout
from .workload import TENANT, Size, survey_ids


def measure(folder: Path, size: Size, *, rounds: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of CPU for the engine and the service, in memory and on a file."""
    urls = {"memory": "sqlite://", "file": f"sqlite:///{folder / 'whole.db'}"}
    return {place: asyncio.run(_measure(url, size, rounds)) for place, url in urls.items()}


async def _measure(url: str, size: Size, rounds: int) -> dict[str, float]:
    survey_id = survey_ids(size)[0]
    engine = open_engine(Url.parse(url))
    scope = over(engine, [surveyor]).scope
    async with AsyncDatabase(to_async(engine), scope) as db:
        await GranularLayout(db, size).load()
        recording = RecordingEngine(engine)
        await Surveys(AsyncDatabase(to_async(recording), scope).tenant(TENANT)).whole(survey_id)
        requests = recording.journal.requests("Query")

        async def ask() -> None:
            for request in requests:
                engine.handle(request)

        service = Surveys(db.tenant(TENANT))
        best = {"engine": float("inf"), "service": float("inf")}
        for _ in range(rounds):
            # In turn, so that a slow moment of the machine hits both.
            best["engine"] = min(best["engine"], await _cpu(ask))
            best["service"] = min(best["service"], await _cpu(lambda: service.whole(survey_id)))
    return {**best, "requests": len(requests)}


async def _cpu(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        await work()
        return (time.process_time() - began) * 1e3
    finally:
        gc.enable()
