"""Random CreateTable and UpdateTable requests, most of them with something wrong."""

from __future__ import annotations

import copy

from tests.conformance.harness import Json
from tests.conformance.tables import index, table

from .values import Values

_TYPES = ["S", "N", "B"]
_THROUGHPUT = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


class Definitions:
    """Makes tables that are not among those that the other requests use."""

    def __init__(self, values: Values) -> None:
        self._random = values.random

    def create(self) -> tuple[str, Json]:
        payload = copy.deepcopy(
            table(
                f"Made{self._random.randrange(3)}",
                f"pk:{self._random.choice(_TYPES)}",
                f"sk:{self._random.choice(_TYPES)}" if self._random.random() < 0.6 else None,
                types=self._types(),
                gsi=[self._global(place) for place in range(self._random.randrange(3))],
                lsi=[self._local(place) for place in range(self._random.choice([0, 0, 0, 1, 2]))],
            )
        )
        if self._random.random() < 0.3:
            payload["BillingMode"] = self._random.choice(["PROVISIONED", "PAY_PER_REQUEST"])
            if self._random.random() < 0.5:
                payload["ProvisionedThroughput"] = dict(_THROUGHPUT)
        if self._random.random() < 0.2:
            payload["StreamSpecification"] = self._random.choice(
                [
                    {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
                    {"StreamEnabled": True},
                    {"StreamEnabled": False},
                    {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"},
                ]
            )
        return "CreateTable", payload

    def update(self) -> tuple[str, Json]:
        payload: Json = {"TableName": f"Made{self._random.randrange(3)}"}
        for member in self._random.sample(
            ["attributes", "billing", "index", "stream"], self._random.randint(0, 2)
        ):
            match member:
                case "attributes":
                    payload["AttributeDefinitions"] = [
                        {"AttributeName": name, "AttributeType": kind} for name, kind in self._types().items()
                    ]
                case "billing":
                    payload["BillingMode"] = self._random.choice(["PROVISIONED", "PAY_PER_REQUEST", "FREE"])
                case "index":
                    payload["GlobalSecondaryIndexUpdates"] = [self._index_update()]
                case _:
                    payload["StreamSpecification"] = {"StreamEnabled": self._random.random() < 0.5}
        return "UpdateTable", payload

    def _index_update(self) -> Json:
        match self._random.randrange(4):
            case 0:
                return {"Delete": {"IndexName": f"index{self._random.randrange(3)}"}}
            case 1:
                return {
                    "Update": {
                        "IndexName": f"index{self._random.randrange(3)}",
                        "ProvisionedThroughput": dict(_THROUGHPUT),
                    }
                }
            case 2:
                return {}
            case _:
                return {"Create": self._global(self._random.randrange(3))}

    def _types(self) -> dict[str, str]:
        names = self._random.sample(["a", "b", "c", "pk", "sk"], self._random.randint(0, 3))
        return {name: self._random.choice(_TYPES) for name in names}

    def _global(self, place: int) -> Json:
        keys = self._random.sample(["a", "b", "c", "pk", "sk"], self._random.choice([0, 1, 1, 2, 2, 3]))
        return self._projected(index(f"index{place}", *keys))

    def _local(self, place: int) -> Json:
        keys = ["pk" if self._random.random() < 0.8 else "a", self._random.choice(["a", "b", "sk"])]
        return self._projected(index(f"local{place}", *keys[: self._random.choice([1, 2, 2, 2])]))

    def _projected(self, made: Json) -> Json:
        match self._random.randrange(6):
            case 0:
                made["Projection"] = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}
            case 1:
                made["Projection"] = self._random.choice(
                    [{}, {"ProjectionType": "INCLUDE"}, {"ProjectionType": "ALL", "NonKeyAttributes": ["x"]}]
                )
            case 2:
                made["Projection"] = {"ProjectionType": "KEYS_ONLY"}
        return made
