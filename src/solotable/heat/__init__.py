"""Heat: the read and write units of each partition key by the minute, and advice on hot ones.

The embedded engine counts the units of its requests as it answers them; `solotable serve` does too.

>>> from solotable import Entity, Key, Table
>>> shop = Table("Shop")
>>> class Stock(Entity, table=shop):
...     key = Key("STOCK#{sku}", "STOCK")
...     sku: str
>>> db = shop.open("sqlite://", clock=lambda: 1_800_000_000.0)
>>> _ = db.put(Stock(sku="a"))
>>> log = read_heat(db)
>>> heat = build_heat_map(log, "Shop", "write", until=1_800_000_060.0)
>>> heat.rows[0].label, heat.rows[0].peak, heat.limit
('STOCK#a', 1.0, 1000.0)
"""

from solotable._protocol.heat import (
    READ_LIMIT,
    WRITE_LIMIT,
    HeatInterval,
    HeatLog,
    PartitionTraffic,
    Traffic,
)
from solotable.errors import HeatUnavailable

from .advice import Advice, advise
from .heat_map import Direction, HeatMap, HeatRow, build_heat_map, shade
from .sources import read_heat

__all__ = [
    "READ_LIMIT",
    "WRITE_LIMIT",
    "Advice",
    "Direction",
    "HeatInterval",
    "HeatLog",
    "HeatMap",
    "HeatRow",
    "HeatUnavailable",
    "PartitionTraffic",
    "Traffic",
    "advise",
    "build_heat_map",
    "read_heat",
    "shade",
]
