"""The job that counts usage: from the stream to the rows, all namespaces at once.

It may be killed at any time and started again, or run twice at the same time: the ledger counts each record
once. No acquire waits for it.
"""

from __future__ import annotations

from typing import Unpack

from solotable import AdminStore, AsyncAdminStore, AsyncDatabase, Database
from solotable.flow import arun, run, scope_of
from solotable.systems.ledger import AggregateOptions, AggregateResult

from .ledger import USAGE


def aggregate(db: Database | AdminStore, **options: Unpack[AggregateOptions]) -> AggregateResult:
    """Count all consumption that was not counted yet, and return how much that was.

    `follow` waits for more. After a FeedTrimmed, `recover` continues with what the stream still has: what
    it has dropped stays uncounted.
    """
    return run(USAGE.aggregate(scope_of(db).of_admin(), **options), db)


async def aggregate_async(
    db: AsyncDatabase | AsyncAdminStore, **options: Unpack[AggregateOptions]
) -> AggregateResult:
    """Count all consumption that was not counted yet; `aggregate` for asyncio."""
    return await arun(USAGE.aggregate(scope_of(db).of_admin(), **options), db)
