"""Drive zae-limiter, in its own environment: `python -m bench.systems.limiter_zae ENDPOINT sync|async`.

Its table comes from its own definition, not from its CloudFormation stack, which no local endpoint
has. Its limits are stored as its system's defaults, and it writes speculatively, as it does by default.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import warnings
from typing import Any

from bench.systems.limiter_rounds import CONSUME, RATES, RESOURCE, aserve, serve

_REGION = "us-east-1"
_NAMESPACE = "bench"


def main(endpoint: str, kind: str) -> None:
    """Make the table and the limits, and do the rounds."""
    # Only its deprecated constructor does without the stack.
    warnings.simplefilter("ignore")
    # It is no dependency of ours, so nothing knows its types.
    zae: Any = importlib.import_module("zae_limiter")
    limits = [zae.Limit.per_minute(name, rate, burst=burst) for name, (rate, burst) in RATES.items()]
    # Its stacks take letters, digits and hyphens.
    where = {"name": f"bench-{kind}", "region": _REGION, "endpoint_url": endpoint}
    about = {"version": str(zae.__version__)}
    if kind == "async":
        asyncio.run(_awaited(zae, zae.Repository(**where), limits, about))
    else:
        _blocking(zae, zae.SyncRepository(**where), limits, about)


def _blocking(zae: Any, repository: Any, limits: list[Any], about: dict[str, Any]) -> None:
    repository.create_table()
    repository.register_namespace(_NAMESPACE)
    scoped = repository.namespace(_NAMESPACE)
    scoped.set_system_defaults(limits=limits)
    limiter = zae.SyncRateLimiter(repository=scoped)

    def acquire(entity: str) -> None:
        with limiter.acquire(entity_id=entity, resource=RESOURCE, consume=CONSUME):
            pass

    serve(acquire, about)


async def _awaited(zae: Any, repository: Any, limits: list[Any], about: dict[str, Any]) -> None:
    await repository.create_table()
    await repository.register_namespace(_NAMESPACE)
    scoped = await repository.namespace(_NAMESPACE)
    await scoped.set_system_defaults(limits=limits)
    limiter = zae.RateLimiter(repository=scoped)

    async def acquire(entity: str) -> None:
        async with limiter.acquire(entity_id=entity, resource=RESOURCE, consume=CONSUME):
            pass

    await aserve(acquire, about)
    await repository.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
