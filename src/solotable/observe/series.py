"""Counters and histograms with labels, and their Prometheus text. Their owner holds the lock.

After `most_series` combinations of labels, new ones are counted under `other`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: The value of every label of a series beyond the limit.
OTHER = "other"
#: The media type of the text.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class CounterSeries:
    """One counter metric."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, most_series: int = 1000) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._most_series = most_series
        self._counts: dict[tuple[str, ...], float] = {}

    def add(self, values: tuple[str, ...], amount: float = 1) -> None:
        """Add to the counter of these label values."""
        counts = self._counts
        if values not in counts and len(counts) >= self._most_series:
            values = (OTHER,) * len(values)
        counts[values] = counts.get(values, 0) + amount

    def lines(self) -> Iterator[str]:
        """Return the metric as text."""
        yield f"# HELP {self._name} {self._text}\n# TYPE {self._name} counter\n"
        for values, count in sorted(self._counts.items()):
            yield f"{self._name}{_labels(self._labels, values)} {count:.15g}\n"


@dataclass(slots=True)
class _Durations:
    buckets: list[int] = field(default_factory=lambda: [0] * len(DURATION_BUCKETS))
    total: float = 0.0
    count: int = 0


class DurationSeries:
    """One histogram metric of seconds."""

    def __init__(self, name: str, text: str, labels: Sequence[str], *, most_series: int = 1000) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._most_series = most_series
        self._durations: dict[tuple[str, ...], _Durations] = {}

    def observe(self, values: tuple[str, ...], seconds: float) -> None:
        """Count one duration of these label values."""
        if values not in self._durations and len(self._durations) >= self._most_series:
            values = (OTHER,) * len(values)
        durations = self._durations.setdefault(values, _Durations())
        durations.total += seconds
        durations.count += 1
        for at, bound in enumerate(DURATION_BUCKETS):
            if seconds <= bound:
                durations.buckets[at] += 1

    def lines(self) -> Iterator[str]:
        """Return the metric as text."""
        name, labels = self._name, self._labels
        yield f"# HELP {name} {self._text}\n# TYPE {name} histogram\n"
        for values, durations in sorted(self._durations.items()):
            for bound, count in zip(DURATION_BUCKETS, durations.buckets, strict=True):
                yield f"{name}_bucket{_labels((*labels, 'le'), (*values, f'{bound:g}'))} {count}\n"
            yield f"{name}_bucket{_labels((*labels, 'le'), (*values, '+Inf'))} {durations.count}\n"
            yield f"{name}_sum{_labels(labels, values)} {durations.total:.9g}\n"
            yield f"{name}_count{_labels(labels, values)} {durations.count}\n"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    return (
        "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
