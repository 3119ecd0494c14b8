"""Editors of one survey, each of one section.

Run as `python -m tests.systems.surveys.editing URL SURVEY FIRST LAST`: the editors FIRST to LAST, each in a
thread with an event loop and a store. Each edit names the version before it, so that a conflict is an error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from solotable import AsyncDatabase
from solotable.systems.surveys.services.drafts import SectionPatch
from solotable.systems.surveys.services.survey.parts import Sections
from solotable.systems.surveys.table import surveyor

TENANT = "acme"
EDITS = 5
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


async def edit(db: AsyncDatabase, survey_id: str, section_id: str) -> None:
    """Write some notes of a section, then complete it."""
    sections = Sections(db.tenant(TENANT), survey_id)
    for number in range(1, EDITS + 1):
        await sections.update(section_id, SectionPatch(notes=f"note {number}"), version=number)
    await sections.update(section_id, SectionPatch(completed_at=NOON), version=EDITS + 1)


def edit_all(opened: Callable[[], AsyncDatabase], survey_id: str, editors: range) -> None:
    """Let each editor edit a section in a thread; raise the first error."""

    async def one(number: int) -> None:
        async with opened() as db:
            await edit(db, survey_id, f"room{number}")

    with ThreadPoolExecutor(len(editors)) as threads:
        list(threads.map(lambda number: asyncio.run(one(number)), editors))


if __name__ == "__main__":
    url, survey, first, last = sys.argv[1:]
    edit_all(lambda: surveyor.open_async(url), survey, range(int(first), int(last) + 1))
