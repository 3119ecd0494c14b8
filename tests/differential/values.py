"""Random attribute values, keys and items.

They come from a short list, so that they meet: a condition finds what a write has left.
"""

from __future__ import annotations

import random

from tests.conformance.harness import Json
from tests.conformance.tables import TABLES

TABLE_NAMES = ("Indexed", "NumberSort", "Streamed", "Multi")
ATTRIBUTES = ["x", "y", "z", "gp", "gs", "ls", "ln", "m", "l", "ss", "ns", "missing", "name", "status"]
MULTI_ATTRIBUTES = ["p1", "p2", "s1", "s2", "s3"]
TEXTS = ["", "a", "b", "ab", "abc", "B", "é", "1", "10", "a%", "a_"]
BINARIES = ["", "YQ==", "YWI=", "/w==", "AAA="]
NUMBERS = ["0", "1", "-1", "2", "10", "0.5", "1e2", "-0", "007", "1E-130", "9" * 38, "1E125", "-" + "9" * 38]
#: What no number may be.
NO_NUMBERS = ["1E126", "1E-131", "1" * 39, "", " 1", "NaN", "0x1", "1_0", "Infinity", "1e", "."]


def tables() -> list[Json]:
    """Return the CreateTable requests that the generated requests need."""
    return [TABLES[name] for name in TABLE_NAMES]


class Values:
    """Makes values from the given dice."""

    def __init__(self, dice: random.Random) -> None:
        self.random = dice

    def value(self, depth: int = 2) -> Json:
        kinds = ["S", "N", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS"] + (["M", "L"] if depth else [])
        kind = self.random.choice(kinds)
        match kind:
            case "S":
                return {"S": self.text()}
            case "N":
                return {"N": self.number()}
            case "B":
                return {"B": self.random.choice(BINARIES)}
            case "BOOL":
                return {"BOOL": self.random.random() < 0.5}
            case "NULL":
                return {"NULL": True}
            case "SS":
                return {"SS": self.random.sample(["a", "b", "ab", "", "é"], self.random.randint(1, 3))}
            case "NS":
                return {"NS": self.random.sample(["1", "2", "10", "-1", "0.5"], self.random.randint(1, 3))}
            case "BS":
                return {"BS": self.random.sample(BINARIES, self.random.randint(1, 3))}
            case "L":
                return {"L": [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]}
            case _:
                names = self.random.sample(["a", "b", "c"], self.random.randint(0, 3))
                return {"M": {name: self.value(depth - 1) for name in names}}

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def number(self) -> str:
        if self.random.random() < 0.02:
            return self.random.choice(NO_NUMBERS)
        return self.random.choice(NUMBERS)

    def table(self) -> str:
        return self.random.choices(TABLE_NAMES, weights=[5, 3, 2, 1])[0]

    def key(self, table: str) -> Json:
        match table:
            case "Multi":
                return {"id": {"S": self.random.choice(["a", "b", "c"])}}
            case "NumberSort":
                sort = {"N": self.random.choice(["-1", "0", "1", "1.0", "10", "2"])}
            case _:
                sort = {"S": self.random.choice(["a", "ab", "b", "c"])}
        return {"pk": {"S": self.random.choice(["p", "q"])}, "sk": sort}

    def item(self, table: str) -> Json:
        item = self.key(table)
        if table == "Multi":
            for name in self.random.sample(MULTI_ATTRIBUTES, self.random.choice([3, 4, 5, 5])):
                item[name] = self.fitting(name)
        for name in self.random.sample(ATTRIBUTES, self.random.randint(0, 5)):
            item[name] = self.fitting(name)
        return item

    def fitting(self, name: str) -> Json:
        """Usually the type that the attribute's name promises."""
        if self.random.random() < 0.1:
            return self.value()
        match name:
            case "x":
                return {"S": self.text()}
            case "gp" | "ls" | "p1" | "s1":
                return {"S": self.random.choice(["a", "b", "ab"])}
            case "gs" | "ln" | "y" | "p2" | "s2":
                return {"N": self.number()}
            case "s3":
                return {"B": self.random.choice(BINARIES[1:])}
            case "m":
                return {"M": {"a": self.value(1), "b": {"N": "1"}, "c": {"M": {"d": self.value(0)}}}}
            case "l":
                return {"L": [self.value(1) for _ in range(self.random.randint(0, 4))]}
            case "ss":
                return {"SS": ["a", "b"]}
            case "ns":
                return {"NS": ["1", "2"]}
            case _:
                return self.value()
