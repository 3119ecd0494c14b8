"""Observe the requests of a store: one record per request, and sinks for logs, metrics and traces.

An observer is a function of one argument. Pass it to `connect` or `Table.open`:

>>> from solotable import Entity, Key, Table
>>> shop = Table("Shop")
>>> class Stock(Entity, table=shop):
...     key = Key("STOCK#{sku}", "STOCK")
...     sku: str
>>> seen: list[Observation] = []
>>> db = shop.open("sqlite://", observer=seen.append)
>>> _ = db.put(Stock(sku="a"))
>>> seen[0].operation, seen[0].entity, seen[0].consumed.wcu
('PutItem', 'Stock', 1.0)

An observation has names and numbers only: no keys, no values, no tenant. The observer runs in the thread or
task of the caller, so it can read the caller's context variables.
"""

from solotable._flows.consumption import Consumed, Units
from solotable._store.observation import Observation, Observer

from .combine import combine
from .emf import EmfObserver
from .log import LogObserver
from .opentelemetry import OpenTelemetryObserver
from .prometheus import PrometheusObserver

__all__ = [
    "Consumed",
    "EmfObserver",
    "LogObserver",
    "Observation",
    "Observer",
    "OpenTelemetryObserver",
    "PrometheusObserver",
    "Units",
    "combine",
]
