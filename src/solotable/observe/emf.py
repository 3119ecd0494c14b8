"""Write CloudWatch metrics as lines in the embedded metric format (EMF)."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from solotable._store.observation import Observation
from solotable.fork_safe import new_lock

_METRICS = (
    {"Name": "Duration", "Unit": "Milliseconds"},
    {"Name": "Success", "Unit": "Count"},
    {"Name": "Failure", "Unit": "Count"},
    {"Name": "ConsumedReadCapacityUnits", "Unit": "Count"},
    {"Name": "ConsumedWriteCapacityUnits", "Unit": "Count"},
)
_DIMENSIONS = (("Operation",), ("Table", "Operation"))


class EmfObserver:
    """Writes one JSON line per request, which CloudWatch Logs turns into metrics.

    The metrics have the dimensions Operation, and Table with Operation. Entity, pattern, index, attempt and
    error are properties of the line: CloudWatch Logs Insights can query them, and they cost no metric.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        namespace: str = "Solotable/DynamoDB",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._namespace = namespace
        self._clock = clock
        self._lock = new_lock()

    def __call__(self, observation: Observation) -> None:
        """Write the line of one request."""
        seen = observation
        line: dict[str, Any] = {
            "_aws": {
                "Timestamp": int(self._clock() * 1000),
                "CloudWatchMetrics": [
                    {"Namespace": self._namespace, "Dimensions": _DIMENSIONS, "Metrics": _METRICS}
                ],
            },
            "Operation": seen.operation,
            "Table": ",".join(seen.tables) or "none",
            "Duration": round(seen.seconds * 1000, 3),
            "Success": int(seen.error is None),
            "Failure": int(seen.error is not None),
            "ConsumedReadCapacityUnits": seen.consumed.rcu,
            "ConsumedWriteCapacityUnits": seen.consumed.wcu,
            "Items": seen.items,
            "Attempt": seen.attempt,
        }
        properties = {
            "Index": seen.index,
            "Entity": seen.entity,
            "Pattern": seen.pattern,
            "Error": seen.error,
        }
        line |= {name: value for name, value in properties.items() if value is not None}
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._stream.write(text)
            self._stream.flush()
