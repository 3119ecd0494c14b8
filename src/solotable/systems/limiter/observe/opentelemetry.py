"""Record the decisions of limiters as OpenTelemetry metrics; needs `opentelemetry-api`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .observation import AcquireObservation, BoundedNames

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_BOUNDARIES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)


class LimiterOpenTelemetryObserver:
    """Records acquires by resource, outcome and limit; without a provider it uses the global one.

    Resources and limits beyond the first `most_resources` and `most_limits` are counted as `other`.
    """

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        most_resources: int = 100,
        most_limits: int = 100,
    ) -> None:
        try:
            from opentelemetry import metrics
        except ImportError as error:
            raise ImportError(
                "LimiterOpenTelemetryObserver needs opentelemetry-api, which is not installed. "
                "Try: pip install 'solotable[opentelemetry]'",
                name=error.name,
            ) from error
        self._resource = BoundedNames(most_resources)
        self._limit = BoundedNames(most_limits)
        meter = metrics.get_meter("solotable.limiter", meter_provider=meter_provider)
        self._duration = meter.create_histogram(
            "solotable.limiter.acquire.duration",
            unit="s",
            description="Time from the first request of an acquire to its decision.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._attempts = meter.create_counter(
            "solotable.limiter.attempts", unit="{write}", description="Conditional writes sent."
        )
        self._refusals = meter.create_counter(
            "solotable.limiter.refusals",
            unit="{limit}",
            description="Limits that refused an acquire, or would have in shadow mode.",
        )
        self._exceeded = meter.create_counter(
            "solotable.limiter.soft_limits_exceeded",
            unit="{limit}",
            description="Soft limits that had too few tokens.",
        )
        self._ignored = meter.create_counter(
            "solotable.limiter.unknown_limits",
            unit="{limit}",
            description="Limits that a call named and the entity does not have.",
        )

    def __call__(self, observation: AcquireObservation) -> None:
        """Record one acquire."""
        seen = observation
        common = {
            "solotable.limiter.resource": self._resource(seen.resource),
            "solotable.limiter.outcome": seen.outcome,
        }
        if seen.error is not None:
            common["error.type"] = seen.error
        self._duration.record(seen.seconds, common)
        self._attempts.add(seen.attempts, common)
        for counter, pairs in (
            (self._refusals, seen.limits),
            (self._exceeded, seen.exceeded),
            (self._ignored, seen.ignored),
        ):
            for resource, limit in pairs:
                counter.add(
                    1,
                    {
                        "solotable.limiter.resource": self._resource(resource),
                        "solotable.limiter.limit": self._limit(limit),
                        "solotable.limiter.outcome": seen.outcome,
                    },
                )
