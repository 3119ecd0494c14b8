"""A rate limiter on one table: token buckets, exact, with one conditional write for each call.

    from solotable.systems.limiter import Limit, Limiter

    limiter = Limiter.open("sqlite:///limits.db", limits=[Limit.per_minute("rpm", 60)])
    with limiter.acquire("user-1", "gpt-4", {"rpm": 1}):
        ...

Start at `blocking` (or `awaiting`) and `lease`. Where things are:

    token_bucket, limits, names            the arithmetic: pure
    bucket, flat, charge, memory    a bucket's item, and the one write of it
    shards, acquire                 several items of a hot bucket; all limits of a call, and its parent
    entities, settings, resolve     who is limited and by what, and which level counts
    namespaces, trail, usage/       the registry, who changed what, what was consumed
    middleware, dependency          around an application; with `callers`, `refusals`
    app, routes/, held, watch       the HTTP API, leases and streams in it; `demo` with `chat`
    manifest/                       files of limits, for `solotable limiter limits`
"""

from .admin.entities import LimitedEntity, StoredLimits
from .admin.limits import Limit
from .admin.names import DEFAULT
from .async_rate_limiter import AsyncLimiter
from .buckets.bucket import Bucket
from .errors import (
    LeaseExpired,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
    UnreadableBucket,
)
from .http.http_leases import HttpLeases, StoredLease
from .lease import AsyncLease, Lease
from .rate_limiter import Limiter
from .table import limiter

__all__ = [
    "DEFAULT",
    "AsyncLease",
    "AsyncLimiter",
    "Bucket",
    "HttpLeases",
    "Lease",
    "LeaseExpired",
    "Limit",
    "LimitStatus",
    "LimitedEntity",
    "Limiter",
    "LimiterUnavailable",
    "NeverSatisfiable",
    "NoLimits",
    "RateLimitExceeded",
    "StoredLease",
    "StoredLimits",
    "UnreadableBucket",
    "limiter",
]
