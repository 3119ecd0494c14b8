"""Count the decisions of limiters in process, render them as Prometheus text, and serve it over ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from solotable.fork_safe import new_lock
from solotable.observe.series import CONTENT_TYPE, CounterSeries, DurationSeries

from .observation import AcquireObservation, BoundedNames

AsgiApp = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class LimiterPrometheusObserver:
    """Aggregates acquires by resource, outcome and limit; `render()` returns the text of `/metrics`.

    Resources and limits beyond the first `most_resources` and `most_limits` are counted as `other`.
    """

    def __init__(self, *, most_resources: int = 100, most_limits: int = 100) -> None:
        self._lock = new_lock()
        self._resource = BoundedNames(most_resources)
        self._limit = BoundedNames(most_limits)
        # The names are bounded, so the series are.
        most = (most_resources + 1) * (most_limits + 1) * 8
        self._acquires = CounterSeries(
            "solotable_limiter_acquires_total",
            "Acquires by outcome; shadow_refused ones were admitted.",
            ("resource", "outcome"),
            most_series=most,
        )
        self._refusals = CounterSeries(
            "solotable_limiter_refusals_total",
            "Limits that refused an acquire, or would have in shadow mode.",
            ("resource", "limit", "outcome"),
            most_series=most,
        )
        pair = ("resource", "limit")
        self._exceeded = CounterSeries(
            "solotable_limiter_soft_limits_exceeded_total",
            "Soft limits that had too few tokens.",
            pair,
            most_series=most,
        )
        self._ignored = CounterSeries(
            "solotable_limiter_unknown_limits_total",
            "Limits that a call named and the entity does not have.",
            pair,
            most_series=most,
        )
        self._attempts = CounterSeries(
            "solotable_limiter_attempts_total",
            "Conditional writes sent; more than one an acquire and bucket is contention.",
            ("resource",),
            most_series=most,
        )
        self._durations = DurationSeries(
            "solotable_limiter_acquire_duration_seconds",
            "Time from the first request of an acquire to its decision.",
            ("resource",),
            most_series=most,
        )

    def __call__(self, observation: AcquireObservation) -> None:
        """Count one acquire."""
        seen = observation
        with self._lock:
            resource = self._resource(seen.resource)
            self._acquires.add((resource, seen.outcome))
            self._attempts.add((resource,), seen.attempts)
            self._durations.observe((resource,), seen.seconds)
            for name, limit in seen.limits:
                self._refusals.add((self._resource(name), self._limit(limit), seen.outcome))
            for name, limit in seen.exceeded:
                self._exceeded.add((self._resource(name), self._limit(limit)))
            for name, limit in seen.ignored:
                self._ignored.add((self._resource(name), self._limit(limit)))

    def render(self) -> str:
        """Return all metrics in Prometheus' text format."""
        with self._lock:
            counters = (self._acquires, self._refusals, self._exceeded, self._ignored, self._attempts)
            return "".join(line for each in (*counters, self._durations) for line in each.lines())


def metrics_app(observer: LimiterPrometheusObserver) -> AsgiApp:
    """Return an ASGI application that responds with the metrics, to mount at `/metrics`.

    It asks for no credential: mount it where only your monitoring can reach it.
    """

    async def respond(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"metrics_app serves HTTP, not {scope['type']}.")
        body = observer.render().encode()
        headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return respond
