"""The state of a comparison in a file, from which a killed one resumes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from solotable._values import Item
from solotable.errors import DataError

from .digests import BucketSums

Stage = Literal["expected", "actual", "done"]
_FORMAT = 1


@dataclass(slots=True, kw_only=True)
class DiffState:
    """How far the scans of a comparison are, and their sums."""

    migration: str
    fingerprint: str
    forward: bool
    flips: int
    stage: Stage = "expected"
    #: The position of the table in the list of the side, and the key after which its next page begins.
    table: int = 0
    start: Item | None = None
    expected: int = 0
    actual: int = 0
    dead_letters: int = 0
    dead: list[dict[str, Any]] = field(default_factory=list)
    sums: BucketSums = field(default_factory=BucketSums)

    def save(self, path: Path) -> None:
        """Write the state to a file; a kill leaves the former one."""
        members = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "sums"}
        header = json.dumps({"format": _FORMAT, **members}).encode()
        beside = path.with_name(path.name + ".tmp")
        with beside.open("wb") as file:
            file.write(header + b"\n" + self.sums.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    @classmethod
    def load(cls, path: Path) -> DiffState:
        """Read a state, or raise DataError."""
        header, _, content = path.read_bytes().partition(b"\n")
        try:
            members = json.loads(header)
            if members.pop("format") != _FORMAT:
                raise ValueError("it has another format")
            return cls(**members, sums=BucketSums(content))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path} is not the state of a comparison: {error}; delete it.") from error
