"""Tools for tests of code that uses a store: a recording engine, a faulty engine, a controlled clock.

`plugin` offers them as pytest fixtures. Every pytest run loads it where this package is installed, so this
package imports names on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .clock import Clock
    from .cost import assert_cost, assert_no_scan
    from .engines.faults import Fault, Faults
    from .engines.faulty import FaultyEngine
    from .engines.journal import Journal, Record
    from .engines.recording import RecordingEngine

_HOMES = {
    "Clock": "clock",
    "Fault": "engines.faults",
    "Faults": "engines.faults",
    "FaultyEngine": "engines.faulty",
    "Journal": "engines.journal",
    "Record": "engines.journal",
    "RecordingEngine": "engines.recording",
    "assert_cost": "cost",
    "assert_no_scan": "cost",
}

__all__ = [
    "Clock",
    "Fault",
    "Faults",
    "FaultyEngine",
    "Journal",
    "Record",
    "RecordingEngine",
    "assert_cost",
    "assert_no_scan",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
