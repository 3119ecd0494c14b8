"""Count requests in process, and render the counts as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from solotable._store.observation import Observation
from solotable.fork_safe import new_lock

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: The value of every label of a series beyond the limit.
_OTHER = "other"


@dataclass(slots=True)
class _Durations:
    buckets: list[int] = field(default_factory=lambda: [0] * len(_BUCKETS))
    total: float = 0.0
    count: int = 0


class PrometheusObserver:
    """Aggregates requests; `render()` returns the text for a `/metrics` route.

    Labels are names from your declarations, so their number is bounded. After `most_series` combinations, new
    ones are counted under `other`.
    """

    def __init__(self, *, most_series: int = 1000) -> None:
        self._most_series = most_series
        self._lock = new_lock()
        self._requests: dict[tuple[str, ...], float] = {}
        self._retries: dict[tuple[str, ...], float] = {}
        self._units: dict[tuple[str, ...], float] = {}
        self._items: dict[tuple[str, ...], float] = {}
        self._durations: dict[tuple[str, ...], _Durations] = {}

    def __call__(self, observation: Observation) -> None:
        """Count one request."""
        seen = observation
        table = ",".join(seen.tables)
        place = (table, seen.operation)
        named = (*place, seen.entity or "", seen.pattern or "")
        with self._lock:
            self._add(self._requests, (*named, seen.error or ""), 1)
            self._add(self._items, place, seen.items)
            if seen.attempt > 1:
                self._add(self._retries, place, 1)
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
            self._observe(place, seen.seconds)

    def render(self) -> str:
        """Return all metrics in Prometheus' text format."""
        with self._lock:
            return "".join(self._lines())

    def _lines(self) -> Iterator[str]:
        labels = ("table", "operation")
        yield from _counter(
            "solotable_requests_total",
            "Requests sent; error is the class of the error, empty for a success.",
            (*labels, "entity", "pattern", "error"),
            self._requests,
        )
        yield from _counter("solotable_retries_total", "Attempts after the first.", labels, self._retries)
        yield from _counter("solotable_items_total", "Items returned or written.", labels, self._items)
        yield from _counter(
            "solotable_consumed_capacity_units_total",
            "Capacity units consumed by a table (empty index) and its indexes.",
            ("table", "index", "kind"),
            self._units,
        )
        name = "solotable_request_duration_seconds"
        yield f"# HELP {name} Time from sending a request to its reply.\n# TYPE {name} histogram\n"
        for values, durations in sorted(self._durations.items()):
            for bound, count in zip(_BUCKETS, durations.buckets, strict=True):
                yield f"{name}_bucket{_labels((*labels, 'le'), (*values, f'{bound:g}'))} {count}\n"
            yield f"{name}_bucket{_labels((*labels, 'le'), (*values, '+Inf'))} {durations.count}\n"
            yield f"{name}_sum{_labels(labels, values)} {durations.total:.9g}\n"
            yield f"{name}_count{_labels(labels, values)} {durations.count}\n"

    def _add(self, counts: dict[tuple[str, ...], float], values: tuple[str, ...], amount: float) -> None:
        if values not in counts and len(counts) >= self._most_series:
            values = (_OTHER,) * len(values)
        counts[values] = counts.get(values, 0) + amount

    def _add_units(self, table: str, index: str, rcu: float, wcu: float) -> None:
        for kind, units in (("read", rcu), ("write", wcu)):
            if units:
                self._add(self._units, (table, index, kind), units)

    def _observe(self, values: tuple[str, ...], seconds: float) -> None:
        if values not in self._durations and len(self._durations) >= self._most_series:
            values = (_OTHER,) * len(values)
        durations = self._durations.setdefault(values, _Durations())
        durations.total += seconds
        durations.count += 1
        for at, bound in enumerate(_BUCKETS):
            if seconds <= bound:
                durations.buckets[at] += 1


def _counter(
    name: str, text: str, labels: Sequence[str], counts: dict[tuple[str, ...], float]
) -> Iterator[str]:
    yield f"# HELP {name} {text}\n# TYPE {name} counter\n"
    for values, count in sorted(counts.items()):
        yield f"{name}{_labels(labels, values)} {count:.15g}\n"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    return (
        "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
