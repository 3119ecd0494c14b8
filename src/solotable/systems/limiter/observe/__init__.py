"""Observe a limiter: one record per acquire, and sinks for Prometheus and OpenTelemetry.

    prometheus = LimiterPrometheusObserver()
    limiter = Limiter.open(url, observer=prometheus)

`solotable.observe.combine` joins several observers.
"""

from .observation import AcquireObservation, AcquireObserver, AcquireOutcome
from .opentelemetry import LimiterOpenTelemetryObserver
from .prometheus import LimiterPrometheusObserver, metrics_app

__all__ = [
    "AcquireObservation",
    "AcquireObserver",
    "AcquireOutcome",
    "LimiterOpenTelemetryObserver",
    "LimiterPrometheusObserver",
    "metrics_app",
]
