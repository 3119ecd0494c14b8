"""The driver of our own limiter: `python -m bench.systems.limiter_ours URL sync|async`.

On an endpoint the table is made first; a file has it made as it is opened. The limits are stored as
the system's, as the peer has them.
"""

from __future__ import annotations

import asyncio
import sys

from bench.systems.limiter_rounds import CONSUME, RATES, RESOURCE, aserve, serve
from solotable import __version__
from solotable._connect import ensure, open_engine
from solotable.systems.limiter import AsyncLimiter, Limit, Limiter
from solotable.systems.limiter import limiter as table
from solotable.urls import Url

_ABOUT = {"version": __version__}
_LIMITS = [Limit.per_minute(name, rate, burst=burst) for name, (rate, burst) in RATES.items()]


def main(url: str, kind: str) -> None:
    """Open the limiter and do the rounds."""
    if url.startswith("http"):
        # The two kinds share the endpoint, so each has a table of its own.
        url = f"{url}/{table.name}-{kind}"
        address = Url.parse(url)
        engine = open_engine(address)
        ensure(engine, table, address.table or table.name)
        engine.close()
    if kind == "async":
        asyncio.run(_awaited(url))
    else:
        _blocking(url)


def _blocking(url: str) -> None:
    limiter = Limiter.open(url, "bench")
    limiter.set_limits(_LIMITS)

    def acquire(entity: str) -> None:
        with limiter.acquire(entity, RESOURCE, CONSUME):
            pass

    serve(acquire, _ABOUT)
    limiter.close()


async def _awaited(url: str) -> None:
    limiter = AsyncLimiter.open(url, "bench")
    await limiter.set_limits(_LIMITS)

    async def acquire(entity: str) -> None:
        async with limiter.acquire(entity, RESOURCE, CONSUME):
            pass

    await aserve(acquire, _ABOUT)
    await limiter.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
