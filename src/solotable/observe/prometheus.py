"""Count requests in process, and render the counts as Prometheus text."""

from __future__ import annotations

from solotable._store.observation import Observation
from solotable.fork_safe import new_lock

from .series import CounterSeries, DurationSeries

_PLACE = ("table", "operation")


class PrometheusObserver:
    """Aggregates requests; `render()` returns the text for a `/metrics` route.

    Labels are names from your declarations, so their number is bounded. After `most_series` combinations, new
    ones are counted under `other`.
    """

    def __init__(self, *, most_series: int = 1000) -> None:
        self._lock = new_lock()
        self._requests = CounterSeries(
            "solotable_requests_total",
            "Requests sent; error is the class of the error, empty for a success.",
            (*_PLACE, "entity", "pattern", "error"),
            most_series=most_series,
        )
        self._retries = CounterSeries(
            "solotable_retries_total", "Attempts after the first.", _PLACE, most_series=most_series
        )
        self._items = CounterSeries(
            "solotable_items_total", "Items returned or written.", _PLACE, most_series=most_series
        )
        self._units = CounterSeries(
            "solotable_consumed_capacity_units_total",
            "Capacity units consumed by a table (empty index) and its indexes.",
            ("table", "index", "kind"),
            most_series=most_series,
        )
        self._durations = DurationSeries(
            "solotable_request_duration_seconds",
            "Time from sending a request to its reply.",
            _PLACE,
            most_series=most_series,
        )

    def __call__(self, observation: Observation) -> None:
        """Count one request."""
        seen = observation
        table = ",".join(seen.tables)
        place = (table, seen.operation)
        named = (*place, seen.entity or "", seen.pattern or "")
        with self._lock:
            self._requests.add((*named, seen.error or ""))
            self._items.add(place, seen.items)
            if seen.attempt > 1:
                self._retries.add(place)
            for name, units in seen.consumed.tables.items():
                indexed = [
                    (index.rpartition("/")[2], each)
                    for index, each in seen.consumed.indexes.items()
                    if index.rpartition("/")[0] == name
                ]
                # DynamoDB: the units of a table include those of its indexes.
                own_rcu = units.rcu - sum(each.rcu for _, each in indexed)
                own_wcu = units.wcu - sum(each.wcu for _, each in indexed)
                self._add_units(name, "", own_rcu, own_wcu)
                for index, each in indexed:
                    self._add_units(name, index, each.rcu, each.wcu)
            self._durations.observe(place, seen.seconds)

    def render(self) -> str:
        """Return all metrics in Prometheus' text format."""
        with self._lock:
            series = (self._requests, self._retries, self._items, self._units, self._durations)
            return "".join(line for each in series for line in each.lines())

    def _add_units(self, table: str, index: str, rcu: float, wcu: float) -> None:
        for kind, units in (("read", rcu), ("write", wcu)):
            if units:
                self._units.add((table, index, kind), units)
