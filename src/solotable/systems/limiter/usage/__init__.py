"""Usage: what entities consumed of resources by hour, day and month, counted from the stream.

Rows stay for 90 days (hours, days) and 400 days (months) after their window. They follow the buckets with
the delay of the job, and are exact: nothing is counted twice or left out.
"""

from solotable.systems.ledger import AggregateResult

from .job import aggregate, aggregate_async
from .report import LimitUsage, UsagePage, UsageSummary, usage, usage_summary
from .rows import Usage, UsageRow
from .windows import Window

__all__ = [
    "AggregateResult",
    "LimitUsage",
    "Usage",
    "UsagePage",
    "UsageRow",
    "UsageSummary",
    "Window",
    "aggregate",
    "aggregate_async",
    "usage",
    "usage_summary",
]
