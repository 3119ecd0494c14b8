"""New epochs for all spaces of an installation, after writes that the log does not have."""

from __future__ import annotations

import asyncio

from solotable import AsyncDatabase
from solotable.sync import Sync
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.entities.library import PHRASES_SPACE
from solotable.systems.surveys.entities.surveys import SurveyMeta

from .rights import survey_space


async def reset_all_spaces(db: AsyncDatabase, sync: Sync) -> int:
    """Let every device load its surveys again; return the number of spaces.

    Call it after a restore, and after a migration has written items without the store.
    """
    count = 0
    async for tenant in db.all(Tenant.listed()):
        surveys = db.tenant(tenant.id).all(SurveyMeta.listed())
        spaces = [survey_space(survey.survey_id) async for survey in surveys]
        await asyncio.to_thread(sync.reset, tenant.id, PHRASES_SPACE, *spaces)
        count += 1 + len(spaces)
    return count
