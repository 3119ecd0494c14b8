"""The standard tables that cases name. A case gets each one empty."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def table(
    name: str,
    partition: str,
    sort: str | None = None,
    *,
    gsi: list[Json] | None = None,
    lsi: list[Json] | None = None,
    types: dict[str, str] | None = None,
    **more: Any,
) -> Json:
    """A CreateTable request; `partition` and `sort` read `name:type`."""
    keys = [entry.split(":") for entry in (partition, sort) if entry]
    attributes = dict(keys) | (types or {})
    request: Json = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": name_, "KeyType": kind}
            for (name_, _), kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "AttributeDefinitions": [
            {"AttributeName": name_, "AttributeType": type_} for name_, type_ in attributes.items()
        ],
        **more,
    }
    if gsi:
        request["GlobalSecondaryIndexes"] = gsi
    if lsi:
        request["LocalSecondaryIndexes"] = lsi
    return request


def index(
    name: str, *keys: str, projection: str = "ALL", include: list[str] | None = None, partitions: int = 1
) -> Json:
    """An index; the first `partitions` of `keys` are partition attributes."""
    shape: Json = {"ProjectionType": projection}
    if include is not None:
        shape["NonKeyAttributes"] = include
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": key, "KeyType": "HASH" if place < partitions else "RANGE"}
            for place, key in enumerate(keys)
        ],
        "Projection": shape,
    }


TABLES: dict[str, Json] = {
    request["TableName"]: request
    for request in (
        table("Hash", "pk:S"),
        table("Pair", "pk:S", "sk:S"),
        table("NumberHash", "pk:N"),
        table("NumberSort", "pk:S", "sk:N"),
        table("BinarySort", "pk:S", "sk:B"),
        table(
            "Indexed",
            "pk:S",
            "sk:S",
            types={"gp": "S", "gs": "N", "gb": "B", "ls": "S", "ln": "N"},
            gsi=[
                index("gall", "gp", "gs"),
                index("gkeys", "gp", projection="KEYS_ONLY"),
                index("ginc", "gp", "sk", projection="INCLUDE", include=["x", "y"]),
                index("gbin", "gp", "gb"),
            ],
            lsi=[
                index("lall", "pk", "ls"),
                index("lkeys", "pk", "ln", projection="KEYS_ONLY"),
                index("linc", "pk", "ls", projection="INCLUDE", include=["x"]),
            ],
        ),
        table(
            "Streamed",
            "pk:S",
            "sk:S",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        ),
        table(
            "Lone",
            "pk:S",
            "sk:S",
            types={"g": "S", "n": "N"},
            gsi=[index("byg", "g", projection="INCLUDE", include=["x"])],
            lsi=[index("byn", "pk", "n", projection="KEYS_ONLY")],
        ),
        table(
            "Multi",
            "id:S",
            types={"p1": "S", "p2": "N", "s1": "S", "s2": "N", "s3": "B"},
            gsi=[
                index("multi", "p1", "p2", "s1", "s2", "s3", partitions=2),
                index("pair", "p1", "p2", projection="KEYS_ONLY", partitions=2),
            ],
        ),
    )
}
