"""Traffic by partition key and minute: records, and their JSON form."""

from .json_form import decode_heat, encode_heat
from .records import (
    MINUTE,
    READ_LIMIT,
    WRITE_LIMIT,
    HeatInterval,
    HeatLog,
    PartitionTraffic,
    Traffic,
)

__all__ = [
    "MINUTE",
    "READ_LIMIT",
    "WRITE_LIMIT",
    "HeatInterval",
    "HeatLog",
    "PartitionTraffic",
    "Traffic",
    "decode_heat",
    "encode_heat",
]
