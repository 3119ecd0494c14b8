"""Rate limiter on one table: exact token buckets, one conditional write per call.

    from solotable.systems.limiter import Limit, Limiter

    limiter = Limiter.open("sqlite:///limits.db", limits=[Limit.per_minute("rpm", 60)])
    with limiter.acquire("user-1", "gpt-4", {"rpm": 1}):
        ...

Start at `rate_limiter` and `lease`. The packages:

    buckets/     token-bucket arithmetic, a bucket's item and its one write, shards, all limits of a call
    admin/       entities, limits and which apply, namespaces, the audit trail
    usage/       what was consumed by hour, day and month
    http/        the HTTP API, the ASGI middleware, the FastAPI dependency
    observe/     one record per decision, and metrics for Prometheus and OpenTelemetry
    manifest/    files of limits, for `solotable limiter limits`
"""

from .admin.entities import LimitedEntity, Mode, StoredLimits
from .admin.limits import Limit
from .admin.names import DEFAULT
from .admin.schedule import Schedule, ScheduleWindow
from .buckets.acquire import Decision
from .buckets.bucket import Bucket
from .errors import (
    EntityDenied,
    LeaseExpired,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
    TopUpInProgress,
    UnreadableBucket,
)
from .http.http_leases import HttpLeases, StoredLease
from .lease import AsyncLease, Lease
from .rate_limiter import AsyncLimiter, Limiter
from .table import limiter

__all__ = [
    "DEFAULT",
    "AsyncLease",
    "AsyncLimiter",
    "Bucket",
    "Decision",
    "EntityDenied",
    "HttpLeases",
    "Lease",
    "LeaseExpired",
    "Limit",
    "LimitStatus",
    "LimitedEntity",
    "Limiter",
    "LimiterUnavailable",
    "Mode",
    "NeverSatisfiable",
    "NoLimits",
    "RateLimitExceeded",
    "Schedule",
    "ScheduleWindow",
    "StoredLease",
    "StoredLimits",
    "TopUpInProgress",
    "UnreadableBucket",
    "limiter",
]
