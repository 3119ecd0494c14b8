"""Tools for tests of code that uses a store: recording and faulty engines, a clock, sample data.

`plugin` offers them as pytest fixtures. Every pytest run loads it where this package is installed, so this
package imports names on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solotable.seeding import Factory, Row, seed, seed_async

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
    "Factory": "solotable.seeding",
    "Row": "solotable.seeding",
    "assert_cost": "cost",
    "assert_no_scan": "cost",
    "seed": "solotable.seeding",
    "seed_async": "solotable.seeding",
}

__all__ = [
    "Clock",
    "Factory",
    "Fault",
    "Faults",
    "FaultyEngine",
    "Journal",
    "Record",
    "RecordingEngine",
    "Row",
    "assert_cost",
    "assert_no_scan",
    "seed",
    "seed_async",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = home if home.startswith("solotable.") else f"{__name__}.{home}"
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
