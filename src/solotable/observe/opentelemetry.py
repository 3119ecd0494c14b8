"""Record requests as OpenTelemetry spans and metrics, by the conventions for DynamoDB."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from solotable._store.observation import Observation

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SYSTEM = "aws.dynamodb"
#: The boundaries that the conventions advise for `db.client.operation.duration`.
_BOUNDARIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)


class OpenTelemetryObserver:
    """Records a CLIENT span and the duration metric for each request; needs `opentelemetry-api`.

    Without providers it uses the global ones. A span is a child of the caller's current span.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise ImportError(
                "OpenTelemetryObserver needs opentelemetry-api, which is not installed. "
                "Try: pip install 'solotable[opentelemetry]'",
                name=error.name,
            ) from error
        self._trace: Any = trace
        self._tracer = trace.get_tracer("solotable", tracer_provider=tracer_provider)
        meter = metrics.get_meter("solotable", meter_provider=meter_provider)
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of database client operations.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._units = meter.create_counter(
            "solotable.consumed_capacity", unit="{unit}", description="Capacity units that requests consumed."
        )

    def __call__(self, observation: Observation) -> None:
        """Record one request."""
        seen = observation
        ended = time.time_ns()
        common: dict[str, Any] = {"db.system.name": _SYSTEM, "db.operation.name": seen.operation}
        if len(seen.tables) == 1:
            common["db.collection.name"] = seen.tables[0]
        if seen.error is not None:
            common["error.type"] = seen.error
        span = self._tracer.start_span(
            f"DynamoDB.{seen.operation}",
            kind=self._trace.SpanKind.CLIENT,
            attributes=common | _span_attributes(seen),
            start_time=ended - int(seen.seconds * 1e9),
        )
        if seen.error is not None:
            span.set_status(self._trace.StatusCode.ERROR)
        span.end(end_time=ended)
        self._duration.record(seen.seconds, common)
        for name, units in seen.consumed.tables.items():
            for kind, amount in (("read", units.rcu), ("write", units.wcu)):
                if amount:
                    self._units.add(amount, {"db.collection.name": name, "solotable.capacity.kind": kind})


def _span_attributes(seen: Observation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "aws.dynamodb.table_names": list(seen.tables),
        "aws.dynamodb.index_name": seen.index,
        "solotable.entity": seen.entity,
        "solotable.pattern": seen.pattern,
        "solotable.items": seen.items,
    }
    if seen.attempt > 1:
        found["solotable.attempt"] = seen.attempt
    if seen.operation in ("Query", "Scan") and seen.error is None:
        found |= {"aws.dynamodb.count": seen.items, "aws.dynamodb.scanned_count": seen.scanned}
    if seen.consumed.tables:
        found["aws.dynamodb.consumed_capacity"] = [
            json.dumps({"TableName": name, "ReadCapacityUnits": units.rcu, "WriteCapacityUnits": units.wcu})
            for name, units in seen.consumed.tables.items()
        ]
    return {name: value for name, value in found.items() if value is not None}
