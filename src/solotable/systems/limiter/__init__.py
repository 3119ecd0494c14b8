"""A rate limiter on one table: token buckets, exact, with one conditional write for each call.

    from solotable.systems.limiter import Limit, Limiter

    limiter = Limiter.open("sqlite:///limits.db", limits=[Limit.per_minute("rpm", 60)])
    with limiter.acquire("user-1", "gpt-4", {"rpm": 1}):
        ...

Start at `blocking` (or `awaiting`) and `lease`; the arithmetic is in `gauge`, the write in `charge`.
"""

from .awaiting import AsyncLimiter
from .blocking import Limiter
from .bucket import Bucket
from .entities import LimitedEntity, StoredLimits
from .errors import (
    LeaseExpired,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
)
from .lease import AsyncLease, Lease
from .limits import Limit
from .names import DEFAULT
from .table import limiter

__all__ = [
    "DEFAULT",
    "AsyncLease",
    "AsyncLimiter",
    "Bucket",
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
    "StoredLimits",
    "limiter",
]
