"""The JSON form of recorded heat, as a server answers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .records import HeatInterval, HeatLog, PartitionTraffic, Traffic


def encode_heat(log: HeatLog) -> dict[str, Any]:
    """Return a log as JSON members."""
    return {"Intervals": [_encode_interval(each) for each in log.intervals]}


def decode_heat(members: Mapping[str, Any]) -> HeatLog:
    """Return the log of JSON members."""
    return HeatLog(intervals=tuple(_decode_interval(each) for each in members.get("Intervals", ())))


def _encode_interval(interval: HeatInterval) -> dict[str, Any]:
    members: dict[str, Any] = {
        "Start": interval.start,
        "Seconds": interval.seconds,
        "TableName": interval.table,
        "ReadUnits": interval.read_units,
        "WriteUnits": interval.write_units,
        "Partitions": [_encode_partition(each) for each in interval.partitions],
    }
    return members if interval.index is None else members | {"IndexName": interval.index}


def _decode_interval(members: Mapping[str, Any]) -> HeatInterval:
    return HeatInterval(
        start=members["Start"],
        seconds=members["Seconds"],
        table=members["TableName"],
        index=members.get("IndexName"),
        read_units=members["ReadUnits"],
        write_units=members["WriteUnits"],
        partitions=tuple(_decode_partition(each) for each in members["Partitions"]),
    )


def _encode_partition(partition: PartitionTraffic) -> dict[str, Any]:
    members: dict[str, Any] = {} if partition.key is None else {"Key": partition.key}
    for name, traffic in (("Reads", partition.reads), ("Writes", partition.writes)):
        if traffic.units:
            members[name] = [traffic.units, traffic.peak, traffic.over]
    return members | {"Error": partition.error} if partition.error else members


def _decode_partition(members: Mapping[str, Any]) -> PartitionTraffic:
    return PartitionTraffic(
        key=members.get("Key"),
        reads=_decode_traffic(members.get("Reads", ())),
        writes=_decode_traffic(members.get("Writes", ())),
        error=members.get("Error", 0.0),
    )


def _decode_traffic(values: Iterable[float]) -> Traffic:
    units, peak, over = (*values, 0.0, 0.0, 0.0)[:3]
    return Traffic(units=units, peak=peak, over=over)
