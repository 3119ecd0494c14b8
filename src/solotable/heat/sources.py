"""Read the recorded heat of an engine or a store, wherever it is kept."""

from __future__ import annotations

from typing import Any

from solotable._protocol.engine import capabilities_of
from solotable._protocol.heat import HeatLog
from solotable.errors import HeatUnavailable

_AMAZON = (
    "DynamoDB's API does not report the traffic of a partition key. Enable CloudWatch Contributor Insights: "
    "aws dynamodb update-contributor-insights --table-name TABLE --contributor-insights-action ENABLE. "
    "The AWS console then shows the most accessed and most throttled keys in the table's Monitor tab."
)
_OFF = (
    "This database records no heat: it was opened with heat=False (serve --no-heat, or ?heat=off in its URL)."
)
_UNKNOWN = "The endpoint {where} records no heat. `solotable serve` does, and so does a database file."


def read_heat(source: Any, *, since: float = 0.0) -> HeatLog:
    """Return the heat that an engine, or the engine of a store, has recorded since a time.

    `since` is in seconds since the epoch. Raises HeatUnavailable on Amazon DynamoDB, on servers of other
    programs, and for a database that was opened with `heat=False`.
    """
    engine = getattr(source, "engine", source)
    capabilities = capabilities_of(engine)
    if capabilities.heat is not None:
        found = capabilities.heat(since)
        if found is not None:
            return found
    if capabilities.amazon:
        raise HeatUnavailable(_AMAZON)
    where = getattr(engine, "endpoint_url", None)
    raise HeatUnavailable(_OFF if where is None else _UNKNOWN.format(where=where))
